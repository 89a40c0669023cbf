import { expect, test } from "vitest";

import { readDepartures } from "../../src/departures/csv.ts";

const placesIn = (text: string): unknown => {
  const read = readDepartures(text);
  return read.mistakes.length === 0
    ? read.departures
    : read.mistakes.map(({ path, found }) => `${path}: ${found}`);
};
const energy = (line: number, vehicle: string, at: string, wh: number) => ({
  line,
  vehicle,
  at,
  need: { kind: "energy", wh },
});

test("each line is a departure with energy or state of charge", () => {
  expect(placesIn("vehicle,at,energyKwh,soc\nveh-214,05:40,18,\nveh-215,2026-11-24T04:40:00Z,,80\n")).toEqual(
    [
      energy(2, "veh-214", "05:40", 18_000),
      { line: 3, vehicle: "veh-215", at: "2026-11-24T04:40:00Z", need: { kind: "soc", percent: 80 } },
    ],
  );
});

test("an energy below one Wh is not rounded to a need of nothing", () => {
  expect(placesIn("vehicle,at,energyKwh\nveh-214,05:40,0.0001")).toEqual([energy(2, "veh-214", "05:40", 1)]);
});

test("columns in another order, quotes, semicolons with decimal commas, a byte order mark and CRLF are read", () => {
  expect(
    placesIn('\uFEFFat;Vehicle;energyKWH\r\n05:40;"Bus ""214"";A";17,5\r\n\r\n06:00; veh-2 ;8\r\n'),
  ).toEqual([energy(2, 'Bus "214";A', "05:40", 17_500), energy(4, "veh-2", "06:00", 8_000)]);
  expect(placesIn('vehicle,at,soc,energyKwh\n"a",05:40,"","7"')).toEqual([energy(2, "a", "05:40", 7_000)]);
});

test("energyWh, the name of the API, may stand for energyKwh", () => {
  expect(placesIn("vehicle,at,energyWh,soc\nveh-214,05:40,18000,\nveh-215,05:40,,80\n")).toEqual([
    energy(2, "veh-214", "05:40", 18_000),
    { line: 3, vehicle: "veh-215", at: "05:40", need: { kind: "soc", percent: 80 } },
  ]);
  expect(
    placesIn(
      "vehicle,at,energyKwh,energyWh\nveh-1,05:40,18,18000\nveh-2,05:40,,0\nveh-3,05:40,,10000001\nveh-4,05:40,,",
    ),
  ).toEqual([
    "line 2, energyKwh: 18",
    "line 3, energyWh: 0",
    "line 4, energyWh: 10000001",
    "line 5, energyKwh: ",
  ]);
});

test.each([
  ["no header", "veh-214,05:40,18"],
  ["an unknown column", "vehicle,at,energy"],
  ["a column twice", "vehicle,at,soc,soc"],
  ["no column of a need", "vehicle,at"],
  ["no vehicle", "at,soc,energyKwh"],
  ["an empty file", ""],
  ["a quote that is not closed", '"vehicle,at,soc'],
])("a file with %s is refused with the header that is expected", (_what, text) => {
  const read = readDepartures(text);
  expect(read).toMatchObject({
    departures: [],
    mistakes: [
      { path: "line 1", found: text, expected: expect.stringContaining("vehicle,at,energyKwh,soc") },
    ],
  });
});

test("every mistake is named with its line and column, and nothing is read", () => {
  const text = [
    "vehicle,at,energyKwh,soc",
    "veh-1,05:40,18,",
    ",05:40,18,",
    "veh-2,,18,",
    "veh-3,05:40,much,",
    "veh-4,05:40,0,",
    "veh-5,05:40,,101",
    "veh-6,05:40,18,80",
    "veh-7,05:40,,",
    "veh-8,05:40,18",
    'veh-9,"05:40,18,',
    'veh-9,"05:40"x,18,',
    `${"v".repeat(200)},05:40,18,,`,
  ].join("\n");
  expect(placesIn(text)).toEqual([
    "line 3, vehicle: ",
    "line 4, at: ",
    "line 5, energyKwh: much",
    "line 6, energyKwh: 0",
    "line 7, soc: 101",
    "line 8, energyKwh: 18",
    "line 9, energyKwh: ",
    "line 10: veh-8,05:40,18",
    'line 11: veh-9,"05:40,18,',
    'line 12: veh-9,"05:40"x,18,',
    `line 13: ${"v".repeat(80)}...`,
  ]);
});

const many = (line: string, count: number): string => `vehicle,at,soc\n${`${line}\n`.repeat(count)}`;

test("a file without a departure, or with too many lines, is refused", () => {
  expect(placesIn("vehicle,at,soc\n\n")).toEqual(["line 2: "]);
  expect(placesIn(many("veh-1,05:40,80", 100_001))).toEqual([": 100002 lines"]);
  expect(placesIn(many("veh-1,05:40,no", 500))).toHaveLength(500);
});
