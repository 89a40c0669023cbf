import { array, assert, boolean, integer, property, record, tuple } from "fast-check";
import { expect, test } from "vitest";

import type { AllowedStretch } from "../../src/control/decide/ahead.ts";
import { deliver } from "../../src/departures/forecast.ts";
import {
  admitted,
  type GuardPlan,
  guardHolds,
  latestStart,
  openGuardHold,
  whyOver,
} from "../../src/departures/guard.ts";
import type { Expected } from "../../src/departures/board.ts";
import { handleChargerMessage } from "../../src/control/observe/chargerMessages.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import { after, chargerId, eventId, instant, millis, minutes, vehicleId } from "../../src/domain/units.ts";
import { aCharger, aVehicle } from "../support/aCharger.ts";
import { aPicture } from "../support/aPicture.ts";

const NOW = instant(Date.parse("2026-11-23T01:00:00Z"));
const later = (mins: number) => after(NOW, minutes(mins));
const FULL = 11_000;
const AT = later(240);

const stretch = (from: number, until: number, allowedW: number): AllowedStretch => ({
  from: later(from),
  until: later(until),
  allowedW,
  withoutEventsW: FULL,
  event: eventId("EV-1"),
  hold: null,
});
const allowed = ({ allowedW }: AllowedStretch): number => allowedW;
const startOf = (stretches: readonly AllowedStretch[], wh: number) =>
  latestStart(stretches, allowed, { fullW: FULL, remainingWh: wh, at: AT });

/** Energy with the plan until `start`, and full power from then to the departure. */
const delivered = (stretches: readonly AllowedStretch[], start: number): number =>
  deliver(stretches, allowed, Infinity, instant(start)).wh + ((AT - start) / 3_600_000) * FULL;

test("a vehicle that is paused starts as long before its departure as full power needs", () => {
  expect(startOf([stretch(0, 600, 0)], 11_000)).toBe(later(180));
  expect(startOf([stretch(0, 600, 5_500)], 33_000)).toBe(later(120));
  expect(startOf([stretch(0, 600, 0)], 44_000)).toBe(later(0));
});

test("a vehicle that full power cannot help any more has no latest start", () => {
  expect(startOf([stretch(0, 600, 0)], 44_001)).toBeNull();
  expect(startOf([], 1_000)).toBeNull();
  expect(
    latestStart([stretch(300, 600, 0)], allowed, { fullW: FULL, remainingWh: 1_000, at: AT }),
  ).toBeNull();
});

const anyStretches = array(tuple(integer({ min: 1, max: 90 }), integer({ min: 0, max: FULL })), {
  minLength: 1,
  maxLength: 12,
}).map((parts) => {
  let at = 0;
  const stretches = parts.map(([span, watts]) => {
    at += span;
    return stretch(at - span, at, watts);
  });
  return [...stretches, stretch(at, at + 600, 2_000)];
});

test("the latest start suffices, and a later one does not", () => {
  assert(
    property(anyStretches, integer({ min: 1, max: 60_000 }), (stretches, wh) => {
      const start = startOf(stretches, wh);
      if (start === null) {
        expect(delivered(stretches, NOW)).toBeLessThan(wh);
        return;
      }
      expect(delivered(stretches, start)).toBeGreaterThanOrEqual(wh - 0.01);
      const isNeeded = deliver(stretches, allowed, Infinity, AT).wh < wh - 1;
      if (!isNeeded) return;
      // A stretch at full power costs nothing to wait through.
      const beyond = stretches.find(({ until, allowedW }) => until > start && allowedW < FULL);
      const moment = Math.max(start, beyond?.from ?? start) + 60_000;
      if (moment < AT) expect(delivered(stretches, moment)).toBeLessThan(wh);
    }),
  );
});

const planOf = (vehicle: string): GuardPlan => ({
  vehicle: vehicleId(vehicle),
  from: later(10),
  until: later(60),
  isInTime: true,
  because: "short",
});

test("the same one of two vehicles that have to start at the same moment is freed each time", () => {
  for (const order of [
    ["v1", "v2"],
    ["v2", "v1"],
  ])
    expect(admitted(order.map(planOf), [], 1, NOW).map(({ vehicle }) => vehicle)).toEqual(["v1"]);
});

const anyPlan = record({
  number: integer({ min: 0, max: 99 }),
  from: integer({ min: 0, max: 200 }),
  span: integer({ min: 1, max: 200 }),
}).map(({ number, from, span }): GuardPlan => ({
  vehicle: vehicleId(`v${number}`),
  from: later(from),
  until: later(from + span),
  isInTime: true,
  because: "short",
}));

test("never more than the most are freed at any moment, and no vehicle waits while a place is free", () => {
  assert(
    property(
      array(anyPlan, { maxLength: 30 }),
      array(integer({ min: 1, max: 300 }), { maxLength: 4 }),
      integer({ min: 1, max: 4 }),
      boolean(),
      (plans, ends, most, isTrimmed) => {
        const open = (isTrimmed ? ends.slice(0, most) : ends).map(later);
        const found = admitted(plans, open, most, NOW);
        const all = [...open.map((until) => ({ from: NOW, until })), ...found];
        const freedAt = (moment: number): number =>
          all.filter(({ from, until }) => from <= moment && moment < until).length;
        for (const { from } of found) expect(freedAt(from)).toBeLessThanOrEqual(Math.max(most, 0));
        for (const plan of plans)
          if (!found.includes(plan)) expect(freedAt(plan.from)).toBeGreaterThanOrEqual(most);
      },
    ),
  );
});

const SHORT = { because: "short" };

/** What the guard knows of veh-214, which leaves in four hours. */
const anExpected = (measured: Partial<Expected["measured"]> = {}): Expected => ({
  state: "short",
  readyAt: null,
  shortWh: 5_000,
  cause: "event",
  because: "short",
  missing: [],
  assumed: [],
  rampWait: millis(0),
  vehicle: aVehicle(),
  departure: {
    vehicle: aVehicle().id,
    at: AT,
    need: { kind: "soc", percent: 80 },
    source: "weekly",
    by: null,
  },
  measured: {
    charger: aCharger(),
    isPluggedIn: true,
    deliveredWh: null,
    capacityWh: null,
    bands: [],
    soc: null,
    powerW: null,
    remainingWh: 5_000,
    missing: [],
    isFinished: false,
    obstacle: null,
    drawsW: null,
    mostW: FULL,
    ...measured,
  },
  stretches: [],
  guardFrom: null,
  computedAt: NOW,
});

test.each<[string, Omit<Telemetry, "at"> | null, Partial<Expected["measured"]>, string]>([
  ["its total register", { state: "charging", energyWh: 100, sessionWh: 7 }, {}, "energyWh from 100"],
  ["the counter of its session", { state: "charging", sessionWh: 7 }, {}, "sessionWh from 7"],
  ["no register", { state: "charging" }, {}, "unplugged"],
  ["a need that is not known", { state: "charging", energyWh: 100 }, { remainingWh: null }, "unplugged"],
  ["no telemetry", null, {}, "unplugged"],
  ["no charger", null, { charger: null }, "at"],
])("a hold of the guard at a charger with %s ends as that allows", (_, telemetry, measured, end) => {
  const depot = aPicture();
  const charger = chargerId("bay-01");
  if (telemetry !== null)
    handleChargerMessage(depot, { kind: "telemetry", charger, telemetry: { at: NOW, ...telemetry } }, NOW);
  openGuardHold(depot, anExpected(measured), SHORT, 1, NOW);
  const shown = guardHolds(depot).map(({ end }) =>
    end.kind === "energy" ? `${end.meter.register} from ${end.meter.fromWh}` : end.kind,
  );
  expect(shown).toEqual([end]);
});

test("the guard opens no second hold for a vehicle, none beyond the most, and none after the departure", () => {
  const depot = aPicture();
  const open = (expected: Expected, most: number, now = NOW): number => {
    openGuardHold(depot, expected, SHORT, most, now);
    return guardHolds(depot).length;
  };
  const other = { ...anExpected(), vehicle: aVehicle({ id: "v2" }) };
  expect(open(anExpected(), 1, AT)).toBe(0);
  expect(open(anExpected(), 1)).toBe(1);
  expect(open(anExpected(), 2)).toBe(1);
  expect(open(other, 1)).toBe(1);
  expect(open(other, 2)).toBe(2);
});

test("a hold of the guard is over once the vehicle has no departure, or has what it needs", () => {
  const depot = aPicture();
  openGuardHold(depot, anExpected(), SHORT, 1, NOW);
  const [hold] = guardHolds(depot);
  if (hold === undefined) throw new Error("no hold");
  expect(whyOver(depot, hold, null)).toBe("the vehicle has no departure any more");
  expect(whyOver(depot, hold, anExpected({ remainingWh: 0 }))).toBe("the vehicle has what it needs");
  expect(whyOver(depot, hold, anExpected({ remainingWh: null }))).toBeNull();
  expect(whyOver(depot, hold, anExpected())).toBeNull();
});
