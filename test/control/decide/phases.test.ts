import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CommandRecord } from "../../../src/domain/command.ts";
import { phased } from "../../../src/control/decide/phases.ts";
import { reconcile } from "../../../src/control/decide/reconcile.ts";
import { type Desired, levelOnRecord, onSamePhases, switchedIn } from "../../../src/domain/setpoint.ts";
import {
  after,
  amperes,
  between,
  chargerId,
  type Instant,
  instant,
  type Millis,
  millis,
  minutes,
  seconds,
  watts,
} from "../../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";
import { aDispatch, at } from "../../support/anEvent.ts";
import { circumstancesOf, verdict } from "../../support/aVerdict.ts";

const EVERY = minutes(15);
const phaseSwitching = { every: EVERY, settle: seconds(10), deadTime: seconds(60) };
const SETTINGS = settingsWith();
const FAR = at("23:00");

interface Told {
  readonly at: Instant;
  readonly desired: Desired;
  /** W asked at that moment; null: nothing. */
  readonly asked: number | null;
}

/** One charger that does what it is told: what it is asked changes, time passes, and it is looked at whenever it wants to be. */
class Outlet {
  readonly told: Told[] = [];
  record: CommandRecord | undefined;
  now = at("08:00");
  /** What becomes of a command. */
  progress: CommandRecord["progress"] = "acknowledged";
  #asked: number | null = null;
  #until = FAR;
  #evaluateAt: Instant | null = null;
  readonly #charger;

  constructor(charger: Parameters<typeof aCharger>[0] = {}) {
    this.#charger = aCharger({ phaseSwitching, takesWatts: false, refresh: null, ...charger });
  }

  /** From now on, in W; null: the event is over. */
  asks(power: number | null, until = FAR): this {
    [this.#asked, this.#until] = [power, until];
    this.look();
    return this;
  }

  passes(span: Millis): this {
    const end = after(this.now, span);
    for (let looks = 0; this.#evaluateAt !== null && this.#evaluateAt <= end; looks += 1) {
      if (looks > 500) throw new Error("it looks in circles");
      this.now = instant(Math.max(this.now, this.#evaluateAt));
      this.look();
    }
    this.now = end;
    return this;
  }

  /** "08:00:00 pause". */
  get words(): readonly string[] {
    return this.told.map(
      ({ at: when, desired }) => `${new Date(when).toISOString().slice(11, 19)} ${levelOnRecord(desired)}`,
    );
  }

  look(): void {
    const { now, record: last } = this;
    const setpoint = { kind: "power", watts: watts(this.#asked ?? 0) } as const;
    const inForce =
      this.#asked === null ? [] : [aDispatch({ setpoint, from: at("07:00"), until: this.#until })];
    const should = verdict(circumstancesOf(inForce, { charger: this.#charger }), SETTINGS);
    const { verdict: may, evaluateAt } = phased(should, last, now);
    const step = reconcile(may, {
      now,
      last,
      reassert: false,
      assertOnce: false,
      isOutnumbered: false,
      isLastInForce: false,
      startsAllowed: true,
      writableAt: now,
      rampAt: now,
    });
    const wishes = [
      evaluateAt,
      "evaluateAt" in step ? step.evaluateAt : null,
      step.kind === "nothing" ? null : step.deferral?.until,
    ];
    this.#evaluateAt = wishes.reduce<Instant | null>(
      (first, wish) => (wish == null || wish <= now || (first !== null && first <= wish) ? first : wish),
      null,
    );
    if (step.kind !== "decide") return;
    const replaces = last?.command.desired ?? null;
    const desired = onSamePhases(step.decision.desired, replaces);
    this.told.push({ at: now, desired, asked: this.#asked });
    this.record = {
      command: {
        ...step.decision,
        desired,
        charger: chargerId("bay-01"),
        epoch: 1,
        seq: this.told.length,
        decidedAt: now,
      },
      progress: this.progress,
      sentAt: this.progress === "planned" || this.progress === "observed" ? null : now,
      sends: 1,
      failures: 0,
      replaces,
      judgeAt: null,
      resends: 0,
    };
  }
}

describe("a charger whose phases may be switched", () => {
  test("pauses, is switched, rests, and charges on one phase where an event leaves too little for three", () => {
    const outlet = new Outlet().asks(11_000).passes(minutes(10)).asks(2300).passes(minutes(10));
    expect(outlet.words).toEqual([
      "08:00:00 15.9 A",
      "08:10:00 pause",
      "08:10:10 pause on 1 phase",
      "08:11:10 10 A on 1 phase",
    ]);
  });

  test("follows each change on one phase at once, and goes back when three can do it, but not sooner than it may", () => {
    const outlet = new Outlet()
      .asks(2300)
      .passes(minutes(5))
      .asks(1500)
      .passes(minutes(1))
      .asks(6900)
      .passes(minutes(20));
    expect(outlet.words.slice(2)).toEqual([
      "08:01:10 10 A on 1 phase",
      "08:05:00 6.5 A on 1 phase",
      "08:06:00 30 A on 1 phase",
      "08:15:10 pause on 1 phase",
      "08:15:20 pause on 3 phases",
      "08:16:20 10 A on 3 phases",
    ]);
  });

  test("pauses at once, and waits for its turn, where a switch came shortly before", () => {
    const outlet = new Outlet()
      .asks(2300)
      .passes(minutes(20))
      .asks(6900)
      .passes(minutes(5))
      .asks(2300)
      .passes(minutes(20));
    expect(outlet.words.slice(3)).toEqual([
      "08:20:00 pause on 1 phase",
      "08:20:10 pause on 3 phases",
      "08:21:10 10 A on 3 phases",
      "08:25:00 pause on 3 phases",
      "08:35:10 pause on 1 phase",
      "08:36:10 10 A on 1 phase",
    ]);
  });

  test("is not switched for a window that ends before it could be switched back", () => {
    const outlet = new Outlet().asks(2300, at("08:15")).passes(minutes(14));
    expect(outlet.words).toEqual(["08:00:00 pause"]);
  });

  test("is released when its window ends, and a release that comes sooner waits for the interval", () => {
    const planned = new Outlet().asks(2300, at("08:20")).passes(minutes(20)).asks(null).passes(minutes(1));
    expect(planned.words.at(-1)).toBe("08:20:00 release");
    const sooner = new Outlet().asks(2300).passes(minutes(5)).asks(null).passes(minutes(30));
    expect(sooner.words.at(-1)).toBe("08:15:10 release");
  });

  test("counts a release as a switch back", () => {
    const outlet = new Outlet()
      .asks(2300, at("08:20"))
      .passes(minutes(20))
      .asks(null)
      .passes(minutes(5))
      .asks(2300);
    expect(outlet.passes(minutes(30)).words.slice(3)).toEqual([
      "08:20:00 release",
      "08:25:00 pause on 3 phases",
      "08:35:00 pause on 1 phase",
      "08:36:00 10 A on 1 phase",
    ]);
    const freed = new Outlet()
      .asks(2300)
      .passes(minutes(20))
      .asks(6900)
      .passes(minutes(2))
      .asks(null)
      .asks(2300);
    expect(freed.passes(minutes(30)).words.slice(6)).toEqual([
      "08:22:00 release",
      "08:22:00 pause on 3 phases",
      "08:35:10 pause on 1 phase",
      "08:36:10 10 A on 1 phase",
    ]);
  });

  test("was never switched after a release from three phases of its own", () => {
    const outlet = new Outlet().asks(6900).passes(minutes(1)).asks(null).asks(2300).passes(minutes(2));
    expect(outlet.words).toEqual([
      "08:00:00 10 A",
      "08:01:00 release",
      "08:01:00 pause",
      "08:01:10 pause on 1 phase",
      "08:02:10 10 A on 1 phase",
    ]);
  });

  test("charges for its least time before it is paused for more power, and not a moment longer where less is asked", () => {
    const outlet = new Outlet({ minOn: minutes(30) })
      .asks(2300)
      .passes(minutes(20))
      .asks(6900)
      .passes(minutes(20));
    expect(outlet.words.slice(2)).toEqual([
      "08:01:10 10 A on 1 phase",
      "08:20:00 30 A on 1 phase",
      "08:31:10 pause on 1 phase",
      "08:31:20 pause on 3 phases",
      "08:32:20 10 A on 3 phases",
    ]);
    expect(outlet.asks(1000).words.at(-1)).toBe("08:40:00 pause on 3 phases");
  });

  test("does not hold its minimum for longer than a switch takes, whatever its least time of charging", () => {
    const outlet = new Outlet({ minOn: minutes(30), belowMinimum: "hold" })
      .asks(6900)
      .passes(minutes(5))
      .asks(2300);
    expect(outlet.passes(minutes(40)).words).toEqual([
      "08:00:00 10 A",
      "08:05:00 pause",
      "08:05:10 pause on 1 phase",
      "08:06:10 10 A on 1 phase",
    ]);
  });

  test("while it is only observed shows the same steps, as if they had been sent", () => {
    const outlet = new Outlet();
    outlet.progress = "observed";
    expect(outlet.asks(2300).passes(minutes(3)).words).toEqual([
      "08:00:00 pause",
      "08:00:10 pause on 1 phase",
      "08:01:10 10 A on 1 phase",
    ]);
  });

  test("needs no pause of its own where its make takes both at once, but one that it has refused counts", () => {
    const atOnce = { ...phaseSwitching, settle: millis(0) };
    const outlet = new Outlet({ phaseSwitching: atOnce });
    expect(outlet.asks(2300).passes(minutes(2)).words).toEqual([
      "08:00:00 pause on 1 phase",
      "08:01:00 10 A on 1 phase",
    ]);
    const refusing = new Outlet({ phaseSwitching: atOnce });
    refusing.progress = "refused";
    expect(refusing.asks(0).asks(2300).passes(minutes(2)).words).toEqual(["08:00:00 pause"]);
  });

  test.each(["planned", "refused", "notFollowed"] as const)(
    "is not switched while its pause is %s",
    (progress) => {
      const outlet = new Outlet();
      outlet.progress = progress;
      outlet.asks(2300).passes(minutes(3));
      expect(outlet.words).toEqual(["08:00:00 pause"]);
    },
  );

  test("is switched a while after its pause went out, however long that waited for the broker", () => {
    const outlet = new Outlet();
    outlet.progress = "planned";
    outlet.asks(2300).passes(seconds(30));
    if (outlet.record === undefined) throw new Error("nothing was decided");
    outlet.record = { ...outlet.record, progress: "acknowledged", sentAt: outlet.now };
    outlet.progress = "acknowledged";
    outlet.look();
    expect(outlet.passes(minutes(1)).words).toEqual(["08:00:00 pause", "08:00:40 pause on 1 phase"]);
  });

  test("names its intermediate step, and the reason", () => {
    const by = (outlet: Outlet, power: number): readonly string[] => {
      const setpoint = { kind: "power", watts: watts(power) } as const;
      const should = verdict(
        {
          charger: aCharger({ phaseSwitching, takesWatts: false }),
          occupant: { kind: "nobody" },
          vehicle: aVehicle(),
          inForce: [aDispatch({ setpoint, until: FAR })],
          hold: null,
          measuredVoltage: null,
          measuredPhases: null,
        },
        SETTINGS,
      );
      return phased(should, outlet.record, outlet.now).verdict.limits.map(({ by: limit }) => limit);
    };
    const outlet = new Outlet().asks(2300);
    expect(by(outlet, 2300)).toEqual(["one phase", "takes amperes", "phase switch"]);
    outlet.passes(seconds(30));
    expect(by(outlet, 2300)).toEqual(["one phase", "takes amperes", "phase switch"]);
    outlet.passes(minutes(1));
    expect(by(outlet, 2300)).toEqual(["one phase", "takes amperes"]);
    expect(by(outlet, 6900)).toEqual(["one phase", "takes amperes", "phase interval"]);
  });

  test("may be switched although its last switch is in the future: the clock was set back", () => {
    const outlet = new Outlet().asks(2300).passes(minutes(5));
    outlet.now = at("07:30");
    expect(outlet.asks(6900).passes(minutes(2)).words.slice(3)).toEqual([
      "07:30:00 pause on 1 phase",
      "07:30:10 pause on 3 phases",
      "07:31:10 10 A on 3 phases",
    ]);
    const free = new Outlet().asks(2300).passes(minutes(5));
    free.now = at("07:30");
    expect(free.asks(null).words.at(-1)).toBe("07:30:00 release");
  });
});

const anAsk = fc.oneof(
  fc.integer({ min: 0, max: 12_000 }),
  fc.constantFrom(0, 1_379, 1_380, 2_300, 4_139, 4_140, 4_141, 7_360, null),
);
const aStory = fc.array(
  fc.record({
    asked: anAsk,
    passes: fc.oneof(fc.integer({ min: 1, max: 90 }), fc.integer({ min: 60, max: 3_000 })),
  }),
  { minLength: 1, maxLength: 12 },
);
const aBox = fc.record({
  currentStep: fc.constantFrom(0.1, 1).map(amperes),
  minOn: fc.constantFrom(0, 5, 20).map(minutes),
  minOff: fc.constantFrom(0, 2).map(minutes),
});

/** What is asked for may be drawn at most; nothing asked: whatever it likes. */
const drawn = (desired: Desired): number =>
  desired.kind === "current" ? desired.amperes * (switchedIn(desired)?.count ?? 3) * 230 : 0;

test("never over what is asked, never switched more often than it may be, and always at the best level in the end", () => {
  fc.assert(
    fc.property(aStory, aBox, (story, charger) => {
      const outlet = new Outlet(charger);
      for (const { asked, passes } of story) {
        outlet.asks(asked);
        const now = outlet.record?.command;
        // A reduction is told in the look that brings it.
        if (asked !== null && now !== undefined && now.cause === "event")
          expect(drawn(now.desired)).toBeLessThanOrEqual(asked + 1e-6);
        outlet.passes(seconds(passes));
      }
      for (const { desired, asked } of outlet.told)
        if (asked !== null) expect(drawn(desired)).toBeLessThanOrEqual(asked + 1e-6);

      const counts = outlet.told.map(({ at: when, desired }) => ({
        when,
        count: switchedIn(desired)?.count ?? 3,
      }));
      const switches = counts.filter(({ count }, index) => count !== (counts[index - 1]?.count ?? 3));
      for (const [index, { when }] of switches.entries()) {
        const before = switches[index - 1];
        if (before !== undefined) expect(between(before.when, when)).toBeGreaterThanOrEqual(EVERY);
      }

      const last = story.at(-1)?.asked ?? null;
      outlet.passes(minutes(60));
      const ended = outlet.record?.command.desired ?? { kind: "release" };
      if (last === null) expect(ended.kind).toBe("release");
      else {
        const [one, three] = [1, 3].map((count) => {
          const level = Math.floor(last / (count * 230) / charger.currentStep + 1e-6) * charger.currentStep;
          return level < 6 - 1e-9 ? 0 : Math.min(level, 32) * count * 230;
        });
        expect(drawn(ended)).toBeCloseTo(three || one || 0, 3);
      }
    }),
    { numRuns: 2_000 },
  );
});

test("a second call at once gives no further step", () => {
  const outlet = new Outlet().asks(2300).passes(minutes(3));
  const said = outlet.told.length;
  outlet.look();
  outlet.passes(millis(0));
  expect(outlet.told.length).toBe(said);
});
