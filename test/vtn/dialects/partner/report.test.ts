import { expect, test } from "vitest";
import type { Desired } from "../../../../src/domain/setpoint.ts";
import type { Report } from "../../../../src/reporting/report.ts";
import { eventId, watts } from "../../../../src/domain/units.ts";
import {
  type ReportFormat,
  type ReportSender,
  writeReport,
} from "../../../../src/vtn/dialects/partner/report.ts";
import { A, from } from "../../../support/aReading.ts";

const HOUR = from("12:00", "13:00");
const SENDER: ReportSender = { clientName: "depot-north", notes: true, location: null };

const REPORT: Report = {
  event: eventId("EV-7731"),
  program: "PRG-1",
  descriptor: 0,
  k: 0,
  name: "EV-7731/0/0",
  span: HOUR,
  payloadDescriptors: [{ payloadType: "USAGE", readingType: "DIRECT_READ", units: "KWH" }],
  resources: [
    {
      name: "veh-214",
      snapshot: { energy: 8.25, current: 15.9, power: 10.97, soc: 71, setpoint: A(16) },
      quality: "OK",
      causes: [],
      intervals: [
        {
          id: 0,
          span: HOUR,
          payloads: [
            { type: "USAGE", values: [8.25] },
            { type: "DATA_QUALITY", values: ["OK"] },
          ],
          notes: [],
        },
      ],
    },
    {
      name: "veh-9",
      snapshot: { energy: null, current: null, power: null, soc: null, setpoint: null },
      quality: "MISSING",
      causes: ["vehicle absent", "no setpoint"],
      intervals: [
        {
          id: 0,
          span: HOUR,
          payloads: [{ type: "DATA_QUALITY", values: ["MISSING"] }],
          notes: [{ type: "CAUSE", values: ["vehicle absent"] }],
        },
      ],
    },
  ],
  flags: ["a flag for people on site"],
};

const write = (format: ReportFormat, sender: Partial<ReportSender> = {}, report: Partial<Report> = {}) =>
  writeReport({ ...REPORT, ...report }, format, { ...SENDER, ...sender });

const period = { start: "2026-11-21T12:00:00.000Z", duration: "PT1H" };

test("an OpenADR 3.0 report names its program and each vehicle's values in each interval", () => {
  expect(write("openadr30")).toEqual({
    programID: "PRG-1",
    eventID: "EV-7731",
    clientName: "depot-north",
    reportName: "EV-7731/0/0",
    payloadDescriptors: [{ payloadType: "USAGE", readingType: "DIRECT_READ", units: "KWH" }],
    resources: [
      {
        resourceName: "veh-214",
        intervals: [
          {
            id: 0,
            intervalPeriod: period,
            payloads: [
              { type: "USAGE", values: [8.25] },
              { type: "DATA_QUALITY", values: ["OK"] },
            ],
          },
        ],
      },
      {
        resourceName: "veh-9",
        intervals: [
          {
            id: 0,
            intervalPeriod: period,
            payloads: [
              { type: "DATA_QUALITY", values: ["MISSING"] },
              { type: "CAUSE", values: ["vehicle absent"] },
            ],
          },
        ],
      },
    ],
  });
});

test("an OpenADR 3.1 report names no program, and its descriptors define its values", () => {
  const report = write("openadr31");
  expect(report).not.toHaveProperty("programID");
  expect(report).toMatchObject({
    eventID: "EV-7731",
    payloadDescriptors: [
      {
        objectType: "REPORT_PAYLOAD_DESCRIPTOR",
        payloadType: "USAGE",
        readingType: "DIRECT_READ",
        units: "KWH",
      },
    ],
  });
});

test("notes stay at home where the partner takes only what the standard knows", () => {
  expect(JSON.stringify(write("openadr30", { notes: false }))).not.toContain("CAUSE");
});

test("a value without a unit has none", () => {
  const payloadDescriptors = [{ payloadType: "OPERATING_STATE", readingType: "DIRECT_READ", units: null }];
  expect(write("openadr30", {}, { payloadDescriptors })).toMatchObject({
    payloadDescriptors: [{ payloadType: "OPERATING_STATE", readingType: "DIRECT_READ" }],
  });
});

test.each([
  ["12:00", "12:15", "PT15M"],
  ["12:00", "12:12:30", "PT12M30S"],
  ["12:00", "12:00:00.500", "PT0.5S"],
  ["00:00", "23:59", "PT23H59M"],
])("a period from %s to %s is %s long", (start, end, duration) => {
  const [resource] = REPORT.resources;
  const intervals = [{ id: 0, span: from(start, end), payloads: [], notes: [] }];
  const resources = resource === undefined ? [] : [{ ...resource, intervals }];
  expect(write("openadr30", {}, { resources })).toMatchObject({
    resources: [{ intervals: [{ intervalPeriod: { duration } }] }],
  });
});

test("numbers have at most six decimals", () => {
  const [resource] = REPORT.resources;
  const intervals = [
    { id: 0, span: HOUR, payloads: [{ type: "USAGE", values: [0.1 + 0.2, 1e15] }], notes: [] },
  ];
  const resources = resource === undefined ? [] : [{ ...resource, intervals }];
  expect(JSON.stringify(write("openadr30", {}, { resources }))).toContain('"values":[0.3,1000000000000000]');
});

test("a vehicle charge action describes each vehicle at the end, and leaves out unknown values", () => {
  const location = { latitude: 59.9, longitude: 10.7 };
  expect(write("vehicleChargeAction", { location })).toEqual({
    eventId: "EV-7731",
    name: "EV-7731/0/0",
    payloads: [
      {
        payloadType: "VehicleChargeAction",
        resourceId: "veh-214",
        location,
        actionType: "Start",
        current: 15.9,
        power: 10.97,
        stateOfCharge: 71,
        kiloWattHours: 8.25,
        dataQuality: "OK",
      },
      {
        payloadType: "VehicleChargeAction",
        resourceId: "veh-9",
        location,
        dataQuality: "MISSING",
        cause: "vehicle absent; no setpoint",
      },
    ],
  });
});

test.each<[what: string, setpoint: Desired, action: object]>([
  ["a level in A", A(16), { actionType: "Start", current: 16 }],
  ["a level in W", { kind: "power", watts: watts(11_000) }, { actionType: "Start", power: 11 }],
  ["a pause", { kind: "pause" }, { actionType: "Stop" }],
  ["a release", { kind: "release" }, {}],
])("a vehicle charge action without a measurement reports %s", (_, setpoint, action) => {
  const [resource] = REPORT.resources;
  const snapshot = {
    energy: null,
    current: null,
    power: null,
    soc: null,
    setpoint,
  } as Report["resources"][0]["snapshot"];
  const resources = resource === undefined ? [] : [{ ...resource, snapshot }];
  expect(write("vehicleChargeAction", { notes: false }, { resources })).toEqual({
    eventId: "EV-7731",
    name: "EV-7731/0/0",
    payloads: [{ payloadType: "VehicleChargeAction", resourceId: "veh-214", ...action }],
  });
});

test("no format can write a number that is none", () => {
  const [resource] = REPORT.resources;
  const snapshot = { energy: Infinity, current: Number.NaN, power: 1, soc: 1, setpoint: null };
  const resources = resource === undefined ? [] : [{ ...resource, snapshot }];
  const text = JSON.stringify(write("vehicleChargeAction", {}, { resources }));
  expect(text).not.toMatch(/null|Infinity|NaN/);
});
