import { describe, expect, test } from "vitest";

import { believedAt, clockTrust, lagsAlike, type Stamped } from "../../../src/core/site/ownClock.ts";
import { instant } from "../../../src/core/units.ts";

const NOON = Date.UTC(2026, 10, 22, 12);

/** Received so many seconds after noon, measured so many seconds before that. */
const stamped = (receivedAt: number, lag: number): Stamped => ({
  at: instant(NOON + (receivedAt - lag) * 1000),
  receivedAt: instant(NOON + receivedAt * 1000),
});

/** What is made of each message of a charger, given as [received, lag] in seconds. */
function trusts(...messages: readonly (readonly [number, number])[]): readonly string[] {
  const said = messages.map(([receivedAt, lag]) => stamped(receivedAt, lag));
  return said.map((next, index) => clockTrust(said[index - 1] ?? null, next));
}

describe("whether the time that a charger names is believed", () => {
  test("what is a minute late at most, or ahead, needs no second word", () => {
    expect(trusts([0, 0], [10, 60], [20, -300])).toEqual(["right", "right", "right"]);
  });

  test("a clock that is behind by minutes lags alike each time, but for the network", () => {
    expect(trusts([0, 300], [10, 300], [20, 301.9], [320, 270], [330, 270])).toEqual([
      "unknown",
      "behind",
      "behind",
      "behind",
      "behind",
    ]);
  });

  test("a buffer that is emptied catches up, whether at once or over seconds", () => {
    expect(trusts([0, 0], [600, 590], [600.01, 580.01], [602, 572], [610, 0])).toEqual(
      Array(5).fill("right"),
    );
  });

  test("a clock that is set back is behind at once, one that is set right is right at once", () => {
    expect(trusts([0, 0], [10, 300], [20, 300], [30, 0])).toEqual(["right", "behind", "behind", "right"]);
  });

  test("who names a time of a week ago has no idea of it", () => {
    const week = 7 * 24 * 3600;
    expect(trusts([0, week + 1])).toEqual(["behind"]);
    expect(trusts([0, week])).toEqual(["unknown"]);
    expect(believedAt(stamped(0, week))).toBe(stamped(0, week).at);
    expect(believedAt(stamped(0, week + 1))).toBe(NOON);
    expect(believedAt(stamped(0, -5))).toBe(NOON);
  });
});

test("two lags of half a second's difference are the same clock's", () => {
  expect(lagsAlike(stamped(0, 7), stamped(10, 7.5))).toBe(true);
  expect(lagsAlike(stamped(0, 7), stamped(10, 6.4))).toBe(false);
});
