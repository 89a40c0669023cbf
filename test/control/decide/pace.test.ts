import * as fc from "fast-check";
import { expect, test } from "vitest";

import type { CommandRecord } from "../../../src/domain/command.ts";
import { deferralOf, formatDeferral, siteRise } from "../../../src/control/decide/pace.ts";
import type { Desired } from "../../../src/domain/setpoint.ts";
import { Writes } from "../../../src/control/send/sendQueue.ts";
import { amperes, chargerId, type Instant, instant, minutes, seconds } from "../../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";
import { aDispatch } from "../../support/anEvent.ts";
import { aRelease } from "../../support/aHold.ts";
import { type Circumstances, circumstancesOf, verdict } from "../../support/aVerdict.ts";

const NOON = instant(Date.UTC(2026, 10, 21, 12));
const after = (by: number): Instant => instant(NOON + seconds(by));
const A = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });
const PAUSE: Desired = { kind: "pause" };
const RELEASE: Desired = { kind: "release" };

const on = (
  charger: Parameters<typeof aCharger>[0] = {},
  occupant: Circumstances["occupant"] = { kind: "vehicle", vehicle: aVehicle().id, source: "fixed" },
  inForce: Circumstances["inForce"] = [],
) => verdict(circumstancesOf(inForce, { charger: aCharger(charger), occupant }), settingsWith());
const EVENT = [aDispatch()];

const told = (desired: Desired, until: Instant | null = null): CommandRecord => ({
  command: {
    charger: chargerId("bay-01"),
    epoch: 1,
    seq: 1,
    desired,
    until,
    vehicle: null,
    event: null,
    cause: "event",
    decidedAt: NOON,
  },
  progress: "acknowledged",
  replaces: null,
  sentAt: NOON,
  sends: 1,
  judgeAt: null,
  resends: 0,
  failures: 0,
});

const free = { writableAt: NOON, rampAt: NOON };
const busy = { writableAt: after(3600), rampAt: after(30) };

test("a reduction or a pause is never held back", () => {
  const charger = on({ minInterval: minutes(5), minOff: minutes(5), writesPerHour: 1 });
  for (const [from, to] of [
    [A(16), A(10)],
    [A(16), PAUSE],
    [PAUSE, PAUSE],
    [RELEASE, A(10)],
  ] as const)
    expect(deferralOf(told(from), to, charger, busy, after(1))).toBeNull();
});

test("an increase waits for the longest delay and names it", () => {
  expect(deferralOf(told(A(10)), A(16), on(), free, after(1))).toBeNull();
  const held = (charger: Parameters<typeof aCharger>[0], pace = free, from = A(10)) =>
    deferralOf(told(from), A(16), on(charger), pace, after(1));
  expect(held({ minInterval: seconds(10) })).toEqual({ by: "minimum interval", until: after(10) });
  expect(held({ minOff: seconds(60) }, free, PAUSE)).toEqual({ by: "minimum off time", until: after(60) });
  expect(held({ minOff: seconds(60) })).toBeNull();
  expect(held({}, { ...free, rampAt: after(30) })).toEqual({ by: "release ramp", until: after(30) });
  const rising = on({}, undefined, EVENT);
  expect(deferralOf(told(A(10)), A(16), rising, busy, after(1))).toEqual({
    by: "writes per hour",
    until: after(3600),
  });
});

test("a release, or the end of a pause, waits at most five minutes for the limit on writes", () => {
  const wearing = on({ writesPerHour: 1 });
  const worn = { ...free, writableAt: after(3600) };
  const soon = { by: "writes per hour", until: after(300) };
  expect(deferralOf(told(A(10)), RELEASE, wearing, worn, after(1))).toEqual(soon);
  expect(deferralOf(told(A(10)), A(20), wearing, worn, after(1))).toEqual(soon);
  expect(deferralOf(told(PAUSE), A(10), on({}, undefined, EVENT), worn, after(1))).toEqual(soon);
  expect(deferralOf(told(PAUSE), RELEASE, wearing, worn, after(300))).toBeNull();
  const { command, ...rest } = told(A(10), after(60));
  const longer: CommandRecord = { ...rest, command: { ...command, cause: "held" } };
  expect(deferralOf(longer, RELEASE, wearing, worn, after(1))).toMatchObject({ until: after(60) });
  expect(deferralOf(longer, RELEASE, wearing, worn, after(60))).toBeNull();
  const endless: CommandRecord = { ...longer, command: { ...longer.command, until: null } };
  expect(deferralOf(endless, RELEASE, wearing, worn, after(1))).toEqual(soon);
});

test("for any events, a reduction is sent at once, a release within five minutes, and no other write exceeds the limit", () => {
  const MOST = 4;
  const asks = fc.array(
    fc.record({
      wanted: fc.constantFrom<Desired>(PAUSE, A(6), A(10), A(16), RELEASE),
      forMinutes: fc.integer({ min: 1, max: 40 }),
    }),
    { minLength: 1, maxLength: 30 },
  );
  fc.assert(
    fc.property(asks, (stretches) => {
      const writes = new Writes();
      let [last, minute] = [told(RELEASE), 0];
      for (const { wanted, forMinutes } of stretches) {
        const verdictThen = on({ writesPerHour: MOST }, undefined, wanted.kind === "release" ? [] : EVENT);
        const [from, began] = [last.command.desired, minute];
        for (; minute < began + forMinutes; minute += 1) {
          const now = after(minute * 60);
          const { command } = last;
          if (JSON.stringify(command.desired) === JSON.stringify(wanted)) continue;
          const pace = { ...free, writableAt: writes.roomAt(command.charger, MOST, now) };
          const held = deferralOf(last, wanted, verdictThen, pace, now);
          const frees = wanted.kind === "release" || from.kind === "pause";
          const rises = from.kind === "current" && wanted.kind === "current" && wanted.amperes > from.amperes;
          if (!frees && !rises) expect(held).toBeNull();
          if (frees) expect(held === null || minute < began + 5).toBe(true);
          if (held !== null) continue;
          if (rises) expect(writes.inLastHour(command.charger, now)).toBeLessThan(MOST);
          writes.add(command.charger, now);
          last = { ...last, command: { ...command, desired: wanted, decidedAt: now } };
        }
      }
    }),
  );
});

test("an interval ends with the window that it would protect", () => {
  const charger = on({ minInterval: minutes(5) });
  expect(deferralOf(told(A(10), after(20)), RELEASE, charger, free, after(1))).toEqual({
    by: "minimum interval",
    until: after(20),
  });
});

test("a clock that was set back delays nothing", () => {
  const early = instant(NOON - 1000);
  expect(deferralOf(told(A(10)), A(16), on({ minInterval: minutes(5) }), busy, early)).toBeNull();
});

test("a charger without a vehicle lets the site rise by nothing", () => {
  const empty = on({}, { kind: "nobody" });
  expect(siteRise(A(10), RELEASE, empty, "A")).toBe(0);
  expect(siteRise(A(10), RELEASE, on(), "A")).toBe(22);
  expect(deferralOf(told(A(10)), RELEASE, empty, { ...free, rampAt: after(30) }, after(1))).toBeNull();
});

test("a release from one phase waits until phases may be switched again; unless the clock was set back, or they may be at once", () => {
  const one: Desired = {
    kind: "pause",
    phases: { count: 1, since: after(-60), chargingSince: null },
  };
  const phaseSwitching = { every: minutes(15), settle: seconds(10), deadTime: seconds(60) };
  const held = deferralOf(told(one), RELEASE, on({ phaseSwitching }), free, after(1));
  expect(held).toEqual({ by: "phase interval", until: after(14 * 60) });
  expect(deferralOf(told(one), RELEASE, on(), free, after(1))).toBeNull();
  expect(deferralOf(told(one), A(16), on({ phaseSwitching }), free, after(1))).toBeNull();
  const byHand = aRelease();
  expect(
    deferralOf(told(one), RELEASE, { ...on({ phaseSwitching }), hold: byHand }, free, after(1)),
  ).toBeNull();
  const later = { ...one, phases: { count: 1, since: after(60), chargingSince: null } } as const;
  expect(deferralOf(told(later), RELEASE, on({ phaseSwitching }), free, after(1))).toBeNull();
});

test("the cause of a delay has a text", () => {
  const words = (
    ["minimum interval", "minimum off time", "writes per hour", "release ramp", "phase interval"] as const
  ).map((by) => formatDeferral({ by, until: NOON }, 12));
  expect(words).toEqual([
    "its setpoint changed just now (minimum interval)",
    "it was paused just now (minimum off time)",
    "it allows 12 writes an hour",
    "others rise first (release ramp)",
    "its phases were switched just now (phase switching)",
  ]);
});
