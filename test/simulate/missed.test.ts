import { expect, test } from "vitest";

import { time } from "./aDay.ts";
import { EVERY_MAKE, missedDay, ON_ONE_PHASE, switchingDay } from "./missedDay.ts";
import { playDay } from "./playDay.ts";

/** Without openWB as a primary, which is the broker itself: the gateway notices that it is away. */
const MAKES = EVERY_MAKE.filter(({ profile }) => profile !== "openwb-simpleapi");
const SWITCHING = EVERY_MAKE.filter(({ switchesPhases }) => switchesPhases);

test.each(MAKES)(
  "F80 F88: $profile that missed a pause, a level, a resume or a release does what is asked soon after its return",
  async (make) => {
    const { failure, watched } = await playDay(missedDay(make));
    expect(failure).toBeNull();
    expect(watched.all).toBeGreaterThan(1_000);
  },
);

/** The last minute of the event is left out. */
const EVENT_ENDS = time("00:24");
/** Three phases with all that the charger has, W. */
const FREE = 16 * 3 * 230;

test.each(SWITCHING)(
  "F80: $profile that missed a step of a switch of phases never goes on with more than is asked, nor on one phase",
  async (make) => {
    const { day, judged } = switchingDay(make);
    const wrong = new Set<string>();
    let looks = 0;
    const { failure } = await playDay(day, {
      onLook: (at, floor) => {
        for (const { id, under, free } of judged) {
          const power = Math.round(floor.power(id));
          const isUnder = under !== null && at > under && at < EVENT_ENDS;
          looks += isUnder || at > free ? 1 : 0;
          if (isUnder && power > ON_ONE_PHASE + 1) wrong.add(`${id} draws ${power} W`);
          if (at > free && power < FREE - 1) wrong.add(`${id}, released, draws ${power} W`);
        }
      },
    });
    expect({ failure, wrong: [...wrong] }).toEqual({ failure: null, wrong: [] });
    expect(looks).toBeGreaterThan(1_000);
  },
);
