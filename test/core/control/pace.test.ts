import { expect, test } from "vitest";

import type { CommandRecord } from "../../../src/core/control/command.ts";
import { heldBy, heldInWords, siteRise } from "../../../src/core/control/pace.ts";
import type { Desired } from "../../../src/core/control/setpoint.ts";
import { type Circumstances, verdict } from "../../../src/core/control/verdict.ts";
import { amperes, chargerId, type Instant, instant, minutes, seconds } from "../../../src/core/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";

const NOON = instant(Date.UTC(2026, 10, 21, 12));
const after = (by: number): Instant => instant(NOON + seconds(by));
const A = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });
const PAUSE: Desired = { kind: "pause" };
const RELEASE: Desired = { kind: "release" };

const on = (
  charger: Parameters<typeof aCharger>[0] = {},
  occupant: Circumstances["occupant"] = { kind: "vehicle", vehicle: aVehicle().id, source: "fixed" },
) =>
  verdict(
    {
      charger: aCharger(charger),
      occupant,
      vehicle: aVehicle(),
      holding: [],
      hold: null,
      measuredVoltage: null,
      measuredPhases: null,
    },
    settingsWith(),
  );

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

test("nothing ever holds a reduction or a pause back", () => {
  const charger = on({ minInterval: minutes(5), minOff: minutes(5), writesPerHour: 1 });
  for (const [from, to] of [
    [A(16), A(10)],
    [A(16), PAUSE],
    [PAUSE, PAUSE],
    [RELEASE, A(10)],
  ] as const)
    expect(heldBy(told(from), to, charger, busy, after(1))).toBeNull();
});

test("an increase waits for whatever takes longest, and says what that is", () => {
  expect(heldBy(told(A(10)), A(16), on(), free, after(1))).toBeNull();
  const held = (charger: Parameters<typeof aCharger>[0], pace = free, from = A(10)) =>
    heldBy(told(from), A(16), on(charger), pace, after(1));
  expect(held({ minInterval: seconds(10) })).toEqual({ by: "minimum interval", until: after(10) });
  expect(held({ minOff: seconds(60) }, free, PAUSE)).toEqual({ by: "minimum off time", until: after(60) });
  expect(held({ minOff: seconds(60) })).toBeNull();
  expect(held({}, { ...free, rampAt: after(30) })).toEqual({ by: "release ramp", until: after(30) });
  expect(held({}, busy)).toEqual({ by: "writes per hour", until: after(3600) });
});

test("an interval ends with the window that it would protect", () => {
  const charger = on({ minInterval: minutes(5) });
  expect(heldBy(told(A(10), after(20)), RELEASE, charger, free, after(1))).toEqual({
    by: "minimum interval",
    until: after(20),
  });
});

test("a clock that was set back holds nothing", () => {
  const early = instant(NOON - 1000);
  expect(heldBy(told(A(10)), A(16), on({ minInterval: minutes(5) }), busy, early)).toBeNull();
});

test("a charger without a vehicle lets the site rise by nothing", () => {
  const empty = on({}, { kind: "nobody" });
  expect(siteRise(A(10), RELEASE, empty, "A")).toBe(0);
  expect(siteRise(A(10), RELEASE, on(), "A")).toBe(22);
  expect(heldBy(told(A(10)), RELEASE, empty, { ...free, rampAt: after(30) }, after(1))).toBeNull();
});

test("what holds it back is said in words", () => {
  const words = (["minimum interval", "minimum off time", "writes per hour", "release ramp"] as const).map(
    (by) => heldInWords({ by, until: NOON }, 12),
  );
  expect(words).toEqual([
    "it was told something just now (minimum interval)",
    "it was paused just now (minimum off time)",
    "it bears 12 writes an hour",
    "others rise first (release ramp)",
  ]);
});
