import { describe, expect, test } from "vitest";

import { runToEnd } from "../../src/platform/cooperative.ts";
import type { Reading } from "../../src/domain/reading.ts";
import { after, chargerId, minutes, vehicleId, type Window } from "../../src/domain/units.ts";
import { evidenceOf, type Subject } from "../../src/reporting/evidence.ts";
import { fill } from "../../src/reporting/fill.ts";
import { wantedOf } from "../../src/reporting/payload.ts";
import type { ReportSettings } from "../../src/reporting/settings.ts";
import { A, aSubject, charging, fillContext, from, measured, stated, told } from "../support/aReading.ts";
import { aDescriptor } from "../support/aReport.ts";
import { at } from "../support/anEvent.ts";

const HOUR = from("12:00", "13:00");

interface Asked {
  readonly method?: string;
  readonly window?: Window;
  readonly settings?: Partial<ReportSettings>;
  readonly subject?: Partial<Subject>;
  readonly basis?: "history" | "forecast";
}

/** `11 OK`, and why not better; as a report on the hour from 12:00 would say it. */
function said(payloadType: string, readings: readonly Reading[], asked: Asked = {}): string {
  const { method = "DIRECT_READ", window = HOUR, settings, subject, basis = "history" } = asked;
  const { wanted } = wantedOf(aDescriptor({ payloadType, readingType: method }), {
    ask: { kind: "current", level: 16 },
  });
  const context = fillContext(settings);
  const evidence = evidenceOf(aSubject(readings, subject), context);
  const found = runToEnd(fill(wanted, window, evidence, context, basis));
  const value = typeof found.value === "number" ? Math.round(found.value * 1000) / 1000 : found.value;
  const days = found.days === null ? [] : [`${found.days} days`];
  return [`${value} ${found.quality}`, ...days, ...found.causes].join("; ");
}

/** 11 kW for half an hour, then 5.5 kW. */
const halves = [
  ...charging({ from: at("11:55"), until: at("12:29:50") }, 11_000),
  ...charging(from("12:30", "13:05"), 5_500, { register: 106_417 }),
];

test("energy is in kWh, whatever its reading type", () => {
  expect(said("USAGE", halves)).toBe("8.25 OK");
  expect(said("USAGE", halves, { method: "PEAK" })).toBe("8.25 OK");
  expect(said("USAGE", halves, { method: "ESTIMATED" })).toBe("8.25 ESTIMATED");
});

test("power is in kW: the mean over time, or the highest", () => {
  expect(said("DEMAND", halves)).toBe("8.25 OK");
  expect(said("DEMAND", halves, { method: "MEAN" })).toBe("8.25 OK");
  expect(said("DEMAND", halves, { method: "SUMMED" })).toBe("8.25 OK");
  expect(said("DEMAND", halves, { method: "PEAK" })).toBe("11 OK");
  expect(said("DEMAND", [])).toBe("null MISSING; no readings");
});

test("gaps stay gaps: the mean is over what was read, unless an estimate is asked for", () => {
  const gap = [
    ...charging(from("12:00", "12:10"), 11_000),
    ...charging(from("12:50", "13:00"), 5_500, { register: 106_000 }),
  ];
  expect(said("DEMAND", gap)).toBe("8.8 MISSING; gap in the readings");
  expect(said("DEMAND", gap, { method: "ESTIMATED" })).toBe("10.083 ESTIMATED");
});

test("a reading is the register as it was last read in the window", () => {
  expect(said("READING", halves)).toBe("109.152 OK");
  expect(said("READING", halves, { window: from("14:00", "15:00") })).toBe("null MISSING; no readings");
});

test("readings that cannot be are not counted", () => {
  const absurd = [...halves, measured("power", 9e15, at("12:10:05"), { quality: "implausible" })];
  expect(said("DEMAND", absurd, { method: "PEAK" })).toBe("11 OK");
});

test("a charger that left the configuration is still reported", () => {
  const gone = { charger: chargerId("bay-77") };
  expect(said("USAGE", charging(HOUR, 11_000, gone))).toBe("11 OK");
});

describe("the charge of the vehicle", () => {
  const charge = [40, 50, 60, 70].map((value, index) =>
    measured("soc", value, after(at("12:00"), minutes(index * 15))),
  );
  const settings = { maxGap: minutes(20) };

  test("is in percent as last read, or mean or highest", () => {
    expect(said("STORAGE_CHARGE_LEVEL", charge, { settings })).toBe("70 OK");
    expect(said("STORAGE_CHARGE_LEVEL", charge, { settings, method: "SUMMED" })).toBe("70 OK");
    expect(said("STORAGE_CHARGE_LEVEL", charge, { settings, method: "MEAN" })).toBe("55 OK");
    expect(said("STORAGE_CHARGE_LEVEL", charge, { settings, method: "PEAK" })).toBe("70 OK");
    expect(said("STORAGE_CHARGE_LEVEL", charge.slice(0, 1), { settings, method: "ESTIMATED" })).toBe(
      "40 ESTIMATED",
    );
  });

  test("is a share where the partner wants 1 for all of it", () => {
    expect(said("STORAGE_CHARGE_LEVEL", charge, { settings: { percentScale: 1 } })).toBe("0.7 OK");
  });
});

describe("the setpoint", () => {
  const commands = [
    told(A(16), at("11:50"), at("12:30")),
    told(A(10), at("12:20")),
    told({ kind: "release" }, at("12:40")),
  ];

  test("is what the vehicle was last held to in the window, or the mean or highest of it", () => {
    expect(said("SETPOINT", commands)).toBe("10 OK");
    expect(said("SETPOINT", commands, { method: "MEAN" })).toBe("13 OK");
    expect(said("SETPOINT", commands, { method: "PEAK" })).toBe("16 OK");
  });

  test("ends with its event, with a release, and with the next vehicle", () => {
    expect(said("SETPOINT", commands.slice(0, 1), { window: from("12:30", "13:00") })).toBe(
      "null MISSING; no setpoint",
    );
    expect(said("SETPOINT", commands, { window: from("12:40", "13:00") })).toBe("null MISSING; no setpoint");
    const others = { ...told(A(6), at("12:20")), vehicle: vehicleId("veh-9") };
    expect(said("SETPOINT", [told(A(16), at("11:50")), others], { window: from("12:20", "12:30") })).toBe(
      "null MISSING; no setpoint",
    );
  });
});

describe("a forecast", () => {
  const planned = [{ ...from("12:15", "13:15"), value: A(16), charger: chargerId("bay-01") }];
  const forecast = { basis: "forecast", subject: { planned } } as const;

  test("is made of the setpoints that the charger will receive, while it receives any", () => {
    expect(said("USAGE", [], forecast)).toBe("8.28 ESTIMATED");
    expect(said("DEMAND", [], forecast)).toBe("11.04 ESTIMATED");
    expect(said("SETPOINT", [], forecast)).toBe("16 OK");
    expect(said("USAGE", [], { ...forecast, window: from("14:00", "15:00") })).toBe(
      "null MISSING; no setpoint",
    );
  });

  test("is also what a reading type of FORECAST means", () => {
    expect(said("USAGE", halves, { method: "FORECAST", subject: { planned } })).toBe("8.28 ESTIMATED");
  });

  test("has no value for quantities that can only be measured", () => {
    for (const payloadType of ["READING", "STORAGE_CHARGE_LEVEL", "OPERATING_STATE", "DATA_QUALITY", "FLUX"])
      expect(said(payloadType, halves, forecast)).toBe("null MISSING; not available here");
    expect(said("BASELINE", [], forecast)).toBe("null MISSING; 0 days; no comparable days");
    expect(said("DELTA_USAGE", [], forecast)).toBe("null MISSING; 0 days; no comparable days");
  });

  test("is missing where the site makes none", () => {
    expect(said("USAGE", [], { ...forecast, settings: { forecastSource: "none" } })).toBe(
      "null MISSING; no setpoint",
    );
  });
});

const aWeekBefore = (readings: readonly Reading[]): readonly Reading[] =>
  readings.map((reading) => ({ ...reading, at: after(reading.at, minutes(-7 * 24 * 60)) }));

describe("a baseline", () => {
  const history = aWeekBefore(charging(HOUR, 7_000));

  test("is what was used in the same window before, and on how many days", () => {
    expect(said("BASELINE", history)).toBe("7 OK; 1 days");
    expect(said("DELTA_USAGE", [...halves, ...history])).toBe("1.25 OK; 1 days");
  });

  test("without comparable days leaves no difference either", () => {
    expect(said("DELTA_USAGE", halves)).toBe("null MISSING; 0 days; no comparable days");
    expect(said("DELTA_USAGE", history)).toBe("null MISSING; 1 days; no readings");
  });
});

describe("data quality", () => {
  test("is that of the energy, or where there is no register of the power", () => {
    expect(said("DATA_QUALITY", halves)).toBe("OK OK");
    expect(said("DATA_QUALITY", halves, { method: "ESTIMATED" })).toBe("ESTIMATED ESTIMATED");
    expect(said("DATA_QUALITY", charging(from("12:00", "12:30"), 11_000))).toBe(
      "MISSING MISSING; gap in the readings",
    );
    const power = halves.filter(({ kind }) => kind === "power");
    expect(said("DATA_QUALITY", power)).toBe("OK OK");
    expect(said("DATA_QUALITY", [])).toBe("MISSING MISSING; no readings");
  });
});

test("F55: a value that setpointd cannot give is answered, not passed over", () => {
  expect(said("UP_REGULATION_AVAILABLE", halves)).toBe("null MISSING; not available here");
});

const outage = (cause: "vehicle absent" | "setpoint not followed", window = HOUR): Asked => ({
  subject: { outages: [{ ...window, cause }] },
});

test("F91: why a targeted vehicle did not take part is in the report", () => {
  expect(said("USAGE", [], outage("vehicle absent"))).toBe("null MISSING; vehicle absent");
  expect(said("USAGE", halves, outage("setpoint not followed"))).toBe("8.25 OK; setpoint not followed");
  expect(said("USAGE", halves, outage("vehicle absent", from("13:00", "14:00")))).toBe("8.25 OK");
  expect(said("OPERATING_STATE", [stated("charging", at("12:58"))])).toBe("RUNNING_NORMAL OK");
});
