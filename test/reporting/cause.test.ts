import { expect, test } from "vitest";
import { runToEnd } from "../../src/platform/cooperative.ts";
import type { Json } from "../../src/domain/audit.ts";
import { absences, RecordedOutages } from "../../src/reporting/cause.ts";
import { readingsOf } from "../../src/reporting/reading.ts";
import type { ChargerState } from "../../src/domain/telemetry.ts";
import {
  chargerId,
  type Instant,
  instant,
  minutes,
  type VehicleId,
  vehicleId,
} from "../../src/domain/units.ts";
import { at } from "../support/anEvent.ts";

const bus = vehicleId("veh-214");
const span = { from: at("12:00"), until: at("13:00") };
const FOR_EVER = instant(Infinity);

const recorded = (
  ...rows: readonly (readonly [
    string,
    "decision" | "outcome" | "event" | "operator",
    Json,
    (VehicleId | null)?,
  ])[]
): RecordedOutages => {
  const outages = new RecordedOutages();
  for (const [time, kind, facts, vehicle = bus] of rows) outages.take({ at: at(time), kind, vehicle, facts });
  return outages;
};

test("a vehicle that does not follow has an outage until it does", () => {
  const outages = recorded(
    ["12:00", "decision", { cause: "event" }],
    ["12:01", "outcome", { progress: "acknowledged" }],
    ["12:05", "outcome", { progress: "notFollowed" }],
    ["12:06", "outcome", { progress: "notFollowed" }],
    ["12:10", "outcome", { progress: "followed" }],
    ["12:20", "outcome", { progress: "refused" }],
    ["12:25", "decision", { cause: "event" }],
    ["12:30", "outcome", { progress: "notFollowed" }],
  );
  expect(outages.of(bus)).toEqual([
    { cause: "setpoint not followed", from: at("12:05"), until: at("12:10") },
    { cause: "setpoint not followed", from: at("12:20"), until: at("12:25") },
    { cause: "setpoint not followed", from: at("12:30"), until: FOR_EVER },
  ]);
});

test("a release by an operator is an outage until the next decision", () => {
  const outages = recorded(
    ["12:10", "decision", { cause: "operator" }],
    ["12:11", "outcome", { progress: "followed" }],
    ["12:20", "decision", { cause: "operator" }],
  );
  expect(outages.of(bus)).toEqual([
    { cause: "opted out by the site", from: at("12:10"), until: at("12:20") },
    { cause: "opted out by the site", from: at("12:20"), until: FOR_EVER },
  ]);
});

test("a hold that keeps an event from a vehicle is an outage, one without an effect is none", () => {
  const outages = recorded(
    ["12:05", "operator", { effect: false }],
    ["12:10", "outcome", { progress: "notFollowed" }],
    ["12:20", "operator", { effect: true }],
    ["12:30", "decision", { cause: "event" }],
  );
  expect(outages.of(bus)).toEqual([
    { cause: "setpoint not followed", from: at("12:10"), until: at("12:20") },
    { cause: "opted out by the site", from: at("12:20"), until: at("12:30") },
  ]);
});

test("rows without a vehicle or a progress change nothing", () => {
  const outages = recorded(
    ["12:00", "outcome", null],
    ["12:00", "outcome", []],
    ["12:01", "event", { progress: "notFollowed" }],
    ["12:02", "outcome", { progress: "notFollowed" }, null],
    ["12:03", "outcome", { progress: "followed" }],
  );
  expect([outages.of(bus), outages.of(vehicleId("veh-9"))]).toEqual([[], []]);
});

const said = (time: string, vehicle: VehicleId | null, state: ChargerState = "charging") =>
  readingsOf({ charger: chargerId("bay-01"), vehicle }, { at: at(time), state }, at(time), null);
/** Every five minutes from `from` up to `until`, both of which are minutes after twelve. */
const every5 = (from: number, until: number, vehicle: VehicleId | null, state?: ChargerState) =>
  Array.from({ length: (until - from) / 5 }, (_, n) => {
    const minute = from + 5 * n;
    return said(`${minute < 60 ? 12 : 13}:${String(minute % 60).padStart(2, "0")}`, vehicle, state);
  }).flat();

const away = (readings: ReturnType<typeof said>, speaks = true) =>
  runToEnd(absences(bus, readings, span, minutes(5), speaks)).map(
    ({ cause, from, until }) => `${cause} ${clock(from)}-${clock(until)}`,
  );
const clock = (moment: Instant): string => new Date(moment).toISOString().slice(11, 16);

test("a vehicle that was present all the time has no absence", () => {
  expect(away(every5(0, 65, bus))).toEqual([]);
});

test("a vehicle is absent while another one is on its charger", () => {
  expect(away([...every5(0, 20, bus), ...every5(20, 40, null), ...every5(40, 65, bus)])).toEqual([
    "vehicle absent 12:15-12:40",
  ]);
});

test("an unplugged vehicle is absent even at its own charger", () => {
  expect(away([...every5(0, 30, bus), ...every5(30, 60, bus, "unplugged"), ...every5(60, 65, bus)])).toEqual(
    ["12:30-12:35", "12:35-12:40", "12:40-12:45", "12:45-12:50", "12:50-12:55", "12:55-13:00"].map(
      (time) => `vehicle absent ${time}`,
    ),
  );
});

test("a charger that falls silent is unreachable; one that never reports is not", () => {
  expect(away([...every5(0, 20, bus), ...every5(40, 65, bus)], false)).toEqual([
    "charger unreachable 12:15-12:40",
  ]);
  expect(away([])).toEqual(["charger unreachable 12:00-13:00"]);
  expect(away([], false)).toEqual([]);
});
