import * as fc from "fast-check";
import { expect, test } from "vitest";

import { runToEnd } from "../../src/platform/cooperative.ts";
import type { ReportDescriptor } from "../../src/domain/event.ts";
import type { ReportWindow } from "../../src/domain/report.ts";
import { chargerId, vehicleId, watts } from "../../src/domain/units.ts";
import type { Subject } from "../../src/reporting/evidence.ts";
import { composeReport, draftOf, fillVehicle, type Report } from "../../src/reporting/report.ts";
import type { ReportSettings } from "../../src/reporting/settings.ts";
import { A, aSubject, charging, fillContext, from, measured, told } from "../support/aReading.ts";
import { aPlan, aReportedEvent } from "../support/aReport.ts";
import { at } from "../support/anEvent.ts";

const HOUR = from("12:00", "13:00");

/** The first report on an event from 12:00 for an hour. */
function aReport(
  subjects: readonly Subject[],
  descriptor: Partial<ReportDescriptor> = {},
  settings: Partial<ReportSettings> = {},
): Report {
  const event = aReportedEvent(descriptor);
  const [window] = aPlan(event).windows;
  if (window === undefined) throw new Error("nothing planned");
  const context = fillContext(settings);
  const draft = draftOf(window);
  for (const subject of subjects) draft.add(runToEnd(fillVehicle(window, subject, context)));
  return composeReport(window, event, draft, subjects.length);
}

const bus = (id: string, power: number, charger = "bay-01"): Subject =>
  aSubject(charging(HOUR, power, { vehicle: vehicleId(id), charger: chargerId(charger) }), {
    vehicle: vehicleId(id),
  });

const absent = (id: string): Subject =>
  aSubject([], { vehicle: vehicleId(id), outages: [{ ...HOUR, cause: "vehicle absent" }] });

test("a report names itself, its event and program, and describes its values", () => {
  expect(aReport([bus("veh-1", 11_000)])).toMatchObject({
    event: "EV-7731",
    program: "PRG-1",
    descriptor: 0,
    k: 0,
    name: "EV-7731/0/0",
    span: HOUR,
    payloadDescriptors: [{ payloadType: "USAGE", readingType: "DIRECT_READ", units: "KWH" }],
    flags: [],
  });
});

test("each targeted vehicle has its own entry, the absent one too, with the cause", () => {
  const { resources } = aReport([bus("veh-1", 11_000), absent("veh-2")]);
  expect(resources.map(({ name, intervals }) => [name, intervals])).toEqual([
    [
      "veh-1",
      [
        {
          id: 0,
          span: HOUR,
          payloads: [
            { type: "USAGE", values: [11] },
            { type: "DATA_QUALITY", values: ["OK"] },
          ],
          notes: [],
        },
      ],
    ],
    [
      "veh-2",
      [
        {
          id: 0,
          span: HOUR,
          payloads: [{ type: "DATA_QUALITY", values: ["MISSING"] }],
          notes: [{ type: "CAUSE", values: ["vehicle absent"] }],
        },
      ],
    ],
  ]);
  expect(resources.map(({ quality, causes }) => [quality, causes])).toEqual([
    ["OK", []],
    ["MISSING", ["vehicle absent"]],
  ]);
});

test("an aggregate is one entry with the counts of included and of all vehicles", () => {
  const { resources, flags, payloadDescriptors } = aReport(
    [bus("veh-1", 11_000), absent("veh-2"), bus("veh-3", 7_000, "bay-02")],
    {
      aggregate: true,
    },
  );
  expect(resources.map(({ name }) => name)).toEqual(["AGGREGATED_REPORT"]);
  expect(resources[0]?.intervals).toMatchObject([
    {
      payloads: [
        { type: "USAGE", values: [18] },
        { type: "DATA_QUALITY", values: ["MISSING"] },
      ],
      notes: [
        { type: "CAUSE", values: ["vehicle absent"] },
        { type: "INCLUDED", values: [2, 3] },
      ],
    },
  ]);
  expect(payloadDescriptors[0]?.readingType).toBe("SUMMED");
  expect(flags).toEqual(["2 of 3 vehicles are in the sum"]);
});

test("a sum of peaks notes that they need not have come together", () => {
  const { flags } = aReport([bus("veh-1", 11_000)], {
    aggregate: true,
    payloadType: "DEMAND",
    readingType: "PEAK",
  });
  expect(flags).toEqual(["each vehicle's own peak: they need not have come together"]);
  expect(aReport([], { aggregate: true }).resources[0]?.intervals[0]?.notes).toEqual([
    { type: "INCLUDED", values: [0, 0] },
  ]);
});

test("the quality alone is reported once", () => {
  const [resource] = aReport([bus("veh-1", 11_000)], { payloadType: "DataQuality" }).resources;
  expect(resource?.intervals[0]?.payloads).toEqual([{ type: "DataQuality", values: ["OK"] }]);
});

test("a baseline gives the number of its days", () => {
  const [resource] = aReport([bus("veh-1", 11_000)], { payloadType: "BASELINE" }).resources;
  expect(resource?.intervals[0]?.notes).toEqual([
    { type: "CAUSE", values: ["no comparable days"] },
    { type: "BASELINE_DAYS", values: [0] },
  ]);
});

test("intervals are those of the plan, and each has its value", () => {
  const [resource] = aReport([bus("veh-1", 11_000)], { numIntervals: 4 }).resources;
  expect(resource?.intervals.map(({ id, payloads }) => [id, payloads[0]?.values])).toEqual([
    [0, [2.75]],
    [1, [2.75]],
    [2, [2.75]],
    [3, [2.75]],
  ]);
});

/** A bus of which all is known. */
const known = (id: string, charger: string): Subject => ({
  ...bus(id, 11_000, charger),
  readings: [
    ...bus(id, 11_000, charger).readings,
    ...[measured("current", 16, at("12:58")), measured("soc", 70, at("12:58")), told(A(16), at("12:00"))].map(
      (reading) => ({ ...reading, vehicle: vehicleId(id), charger: chargerId(charger) }),
    ),
  ],
});

test("the state of a vehicle at the end stands beside the values, and is added up in an aggregate", () => {
  const two = [known("veh-1", "bay-01"), known("veh-2", "bay-02"), absent("veh-3")];
  expect(aReport(two).resources.map(({ snapshot }) => snapshot)).toEqual([
    { energy: 11, current: 16, power: 11, soc: 70, setpoint: A(16) },
    { energy: 11, current: 16, power: 11, soc: 70, setpoint: A(16) },
    { energy: null, current: null, power: null, soc: null, setpoint: null },
  ]);
  expect(aReport(two, { aggregate: true }, { percentScale: 1 }).resources[0]?.snapshot).toEqual({
    energy: 22,
    current: 32,
    power: 22,
    soc: 0.7,
    setpoint: null,
  });
  expect(aReport([], { aggregate: true }).resources[0]?.snapshot.soc).toBe(null);
});

test("the state at the end has no values that were measured long before it", () => {
  const early = [
    measured("current", 16, at("12:05")),
    measured("power", 11_000, at("12:05")),
    measured("soc", 40, at("12:05")),
  ];
  expect(aReport([aSubject([...early, told(A(16), at("12:00"))])]).resources[0]?.snapshot).toEqual({
    energy: null,
    current: null,
    power: null,
    soc: null,
    setpoint: A(16),
  });
});

test("a number that JSON cannot write is no value", () => {
  const planned = [
    { ...HOUR, value: { kind: "power", watts: watts(1e308) } as const, charger: chargerId("bay-01") },
  ];
  const [resource] = aReport([aSubject([], { planned })], { readingType: "FORECAST" }).resources;
  expect(resource?.intervals[0]?.payloads).toEqual([{ type: "DATA_QUALITY", values: ["MISSING"] }]);
  expect(resource?.intervals[0]?.notes).toEqual([{ type: "CAUSE", values: ["implausible readings"] }]);
});

test("a report above the size limit is cut, with a note", () => {
  const event = aReportedEvent({ numIntervals: 1 });
  const [window] = aPlan(event).windows;
  if (window === undefined) throw new Error("nothing planned");
  const many: ReportWindow = {
    ...window,
    intervals: Array.from({ length: 96 }, (_, id) => ({ id, span: HOUR })),
  };
  const draft = draftOf(many);
  for (let index = 0; !draft.isFull(); index += 1)
    draft.add(runToEnd(fillVehicle(many, absent(`veh-${index}`), fillContext())));
  const report = composeReport(many, event, draft, 600);
  expect(report.resources.length).toBe(520);
  expect(report.flags).toEqual(["too large: 520 of 600 vehicles"]);
});

/** Of all entries. */
const value = ({ resources }: Report): number =>
  resources.reduce((sum, { intervals }) => sum + Number(intervals[0]?.payloads[0]?.values[0]), 0);

test("an aggregated report is the sum of the vehicles' own reports", () => {
  const fleet = fc.array(fc.integer({ min: 0, max: 22_000 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(fleet, fc.constantFrom("USAGE", "DEMAND"), (powers, payloadType) => {
      const subjects = powers.map((power, index) => bus(`veh-${index}`, power, `bay-${index}`));
      const together = value(aReport(subjects, { payloadType, aggregate: true }));
      expect(together).toBeCloseTo(value(aReport(subjects, { payloadType })), 9);
    }),
    { numRuns: 30 },
  );
});
