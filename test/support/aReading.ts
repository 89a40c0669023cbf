import type { Command } from "../../src/domain/command.ts";
import type { Measured, Reading, Stated, CommandReading } from "../../src/domain/reading.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import {
  after,
  amperes,
  chargerId,
  eventId,
  type Instant,
  instant,
  minutes,
  seconds,
  vehicleId,
  type Window,
} from "../../src/domain/units.ts";
import type { Calendar } from "../../src/platform/clock.ts";
import type { FillContext, Subject } from "../../src/reporting/evidence.ts";
import { commandReading } from "../../src/reporting/reading.ts";
import type { ReportSettings } from "../../src/reporting/settings.ts";
import { aCharger, aVehicle } from "./aCharger.ts";
import { reportSettings } from "./aReport.ts";
import { at } from "./anEvent.ts";

/** From one time of day to another. */
export const from = (start: string, end: string): Window => ({ from: at(start), until: at(end) });

const STAMP = {
  charger: chargerId("bay-01"),
  vehicle: vehicleId("veh-214"),
  source: "charger",
  quality: "good",
} as const;

/** bay-01 measured something with veh-214 on it. */
export const measured = (
  kind: Measured["kind"],
  value: number,
  when: Instant,
  changes: Partial<Measured> = {},
): Measured => ({ ...STAMP, kind, value, at: when, receivedAt: when, ...changes });

export const stated = (value: Stated["value"], when: Instant): Stated => ({
  ...STAMP,
  kind: "state",
  value,
  at: when,
  receivedAt: when,
});

/** bay-01 was told something for veh-214. */
export const told = (desired: Desired, when: Instant, until: Instant | null = null): CommandReading =>
  commandReading(aCommand(desired, until), when);

export const aCommand = (desired: Desired, until: Instant | null = null): Command => ({
  charger: STAMP.charger,
  vehicle: STAMP.vehicle,
  epoch: 1,
  seq: 1,
  desired,
  until,
  event: eventId("EV-7731"),
  cause: "event",
  decidedAt: at("11:00"),
});

export const A = (level: number): Desired => ({ kind: "current", amperes: amperes(level) });

/** Power and register every so many seconds while a constant power flows. */
export function charging(
  span: Window,
  watts: number,
  {
    every = 10,
    register = 100_000,
    ...changes
  }: Partial<Measured> & { every?: number; register?: number } = {},
): readonly Reading[] {
  const readings: Reading[] = [];
  for (let when = span.from; when <= span.until; when = after(when, seconds(every))) {
    const wattHours = register + (watts * (when - span.from)) / 3_600_000;
    readings.push(measured("power", watts, when, changes), measured("energy", wattHours, when, changes));
  }
  return readings;
}

export const aSubject = (readings: readonly Reading[], changes: Partial<Subject> = {}): Subject => ({
  vehicle: vehicleId("veh-214"),
  readings,
  planned: [],
  outages: [],
  ...changes,
});

/** A zone without daylight saving: UTC. */
export const utc: Calendar = (when, days) => {
  const day = instant(when - minutes(days * 24 * 60));
  return { at: day, weekday: new Date(day).getUTCDay() || 7 };
};

/** bay-01 and bay-02 as in aCharger, and no more vehicles than veh-214. */
export const fillContext = (settings: Partial<ReportSettings> = {}): FillContext => ({
  settings: reportSettings(settings),
  chargers: new Map(["bay-01", "bay-02"].map((id) => [chargerId(id), aCharger({ id })])),
  vehicles: new Map([[vehicleId("veh-214"), aVehicle()]]),
  calendar: utc,
});
