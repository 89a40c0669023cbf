import { expect, test } from "vitest";

import { type Instant, instant, iso, minutes } from "../../src/domain/units.ts";
import type { Calendar } from "../../src/platform/clock.ts";
import { evidenceWindows, reportedVehicles } from "../../src/reporting/report.ts";
import { aVehicle, settingsWith } from "../support/aCharger.ts";
import { aPlan, aReportedEvent } from "../support/aReport.ts";
import { targetsOf } from "../support/anEvent.ts";

const vehicles = new Map([aVehicle(), aVehicle({ id: "veh-2" })].map((vehicle) => [vehicle.id, vehicle]));
const fleet = (untargeted: "ignore" | "all" = "ignore") => ({
  vehicles,
  settings: settingsWith({ untargeted }),
});

test("every targeted vehicle is reported on once, ours or not; other targets are not vehicles", () => {
  const targets = [
    ...targetsOf("veh-214", "veh-9", "veh-214"),
    { type: "VEHICLE", values: ["veh-9"] },
    { type: "site", values: ["depot"] },
  ];
  expect(reportedVehicles({ targets }, fleet())).toEqual(["veh-214", "veh-9"]);
});

test("our vehicles come first, each group in the order of the event: a cut leaves out those of others", () => {
  const targets = targetsOf("veh-9", "veh-214", "veh-8", "veh-2");
  expect(reportedVehicles({ targets }, fleet())).toEqual(["veh-214", "veh-2", "veh-9", "veh-8"]);
});

test("an event without targets is about everyone only where it is acted on so", () => {
  expect(reportedVehicles({ targets: [] }, fleet())).toEqual([]);
  expect(reportedVehicles({ targets: [] }, fleet("all"))).toEqual(["veh-214", "veh-2"]);
});

const calendar: Calendar = (at, days) => {
  const day = instant(at - days * 86_400_000);
  return { at: day, weekday: new Date(day).getUTCDay() || 7 };
};
const spoken = ({ from, until }: { from: Instant; until: Instant }): string =>
  `${iso(from).slice(5, 16)} ${iso(until).slice(11, 16)}`;

test("a report needs the readings of its own time, with a margin", () => {
  const [window] = aPlan(aReportedEvent({ numIntervals: 4 })).windows;
  if (window === undefined) throw new Error("no window");
  expect(evidenceWindows(window, calendar, minutes(5)).map(spoken)).toEqual(["11-21T11:55 13:05"]);
});

test.each(["BASELINE", "DELTA_USAGE"])(
  "%s also needs the same time of comparable days, each once",
  (payloadType) => {
    // Saturday: of the 45 days before, these are weekends.
    const [window] = aPlan(aReportedEvent({ payloadType, numIntervals: 4 })).windows;
    if (window === undefined) throw new Error("no window");
    const times = evidenceWindows(window, calendar, minutes(5)).map(spoken);
    expect(times).toHaveLength(13);
    expect(times.slice(-3)).toEqual(["11-14T11:55 13:05", "11-15T11:55 13:05", "11-21T11:55 13:05"]);
  },
);
