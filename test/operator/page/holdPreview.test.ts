import { expect, test } from "vitest";

import {
  endConsequences,
  holdLine,
  named,
  type Naming,
  previewLines,
} from "../../../src/operator/page/holdPreview.ts";
import { someAnswers } from "../../support/someAnswers.ts";

const naming: Naming = {
  event: (id) => (id === "EV-1" ? "Evening peak" : id),
  ask: () => "10 A",
  vehicle: (id) => id.replace("veh-", "Bus "),
  time: (at) => at.slice(11, 16),
  eventOf: (id) => (id === "veh-1" ? "EV-1" : null),
};
const UNTIL = "2026-11-21T06:00:00.000Z";
const cost = (event: string, estimatedWh: number | null) => ({
  event,
  sentence: "",
  estimatedWh,
  measured: null,
});
const preview = { sentence: "", until: UNTIL, chargers: 1, costs: [], others: [] };

test("a preview names the energy that an override takes from each event, and the overrides that it meets", () => {
  const costs = [cost("EV-1", 12_300), cost("EV-2", null), cost("EV-3", 4)];
  const scope = { site: true } as const;
  const others = [{ id: "hold-1", scope, sentence: "hold hold-1 of anna on the site: exempt" }];
  expect(previewLines({ value: { ...preview, costs, others }, problem: null }, naming)).toEqual([
    "It takes 12 kWh from Evening peak, by the plan.",
    "It takes an unknown energy from EV-2.",
    "It takes less than 0.1 kWh from EV-3, by the plan.",
    "Already in force: hold hold-1 of anna on the site: exempt.",
  ]);
  expect(previewLines({ value: preview, problem: null }, naming)).toEqual([
    "It takes no energy from an event.",
  ]);
});

test.each([
  [{}, "Bus 214: 16 A until 06:00"],
  [{ kind: "exempt", level: null }, "Bus 214: charges as without events until 06:00"],
  [{ end: "unplugged" }, "Bus 214: 16 A until it is unplugged, at the latest 06:00"],
  [{ end: "events", until: null }, "Bus 214: 16 A until the present events end"],
  [
    { end: "energy", energyWh: 18_000, deliveredWh: null, until: null },
    "Bus 214: 16 A until 18 kWh are delivered",
  ],
  [
    { end: "energy", energyWh: 18_000, deliveredWh: 5200 },
    "Bus 214: 16 A until 18 kWh are delivered (5.2 kWh so far), at the latest 06:00",
  ],
] as const)("an override with %j is listed with its level and its end", (over, line) => {
  expect(holdLine({ ...someAnswers.hold, until: UNTIL, ...over }, "Bus 214", naming)).toBe(line);
});

test("a preview that is awaited or refused promises nothing", () => {
  expect(previewLines({ value: null, problem: null }, naming)).toEqual([
    "The energy that it takes from events is being computed.",
  ]);
  expect(previewLines({ value: null, problem: "no answer from the gateway" }, naming)).toEqual([
    "The energy that it takes from events is not known: no answer from the gateway",
  ]);
});

test("the end of an override names who is under which event again, and how long it lasts otherwise", () => {
  const [first] = someAnswers.hold.effect;
  const more = { ...first!, charger: "bay-07", vehicle: null };
  const another = { ...first!, applies: false, overrules: ["EV-9"] };
  const setAside = { ...first!, vehicle: "veh-1", overrules: [] };
  const hold = { until: UNTIL, costs: [cost("EV-1", 12_300), cost("EV-2", null)] };
  expect(endConsequences({ ...hold, effect: [first!, more, another, setAside] }, naming)).toEqual([
    "Events apply again at once.",
    "Bus 214, bay-07, Bus 1 are then under Evening peak: at most 10 A.",
    "Otherwise it lasts until 06:00.",
    "In all it takes 12 kWh from Evening peak, by the plan.",
  ]);
  const idle = [
    { ...first!, overrules: [] },
    { ...more, overrules: [] },
  ];
  expect(endConsequences({ until: null, costs: null, effect: idle }, naming)).toEqual([
    "Events apply again at once.",
    "No event asks for less now.",
  ]);
});

test("a sentence holds six names, and counts those beyond", () => {
  const names = Array.from({ length: 8 }, (_, index) => `Bus ${index + 1}`);
  expect(named(names)).toBe("Bus 1, Bus 2, Bus 3, Bus 4, Bus 5, Bus 6 and 2 more");
  expect(named(names.slice(0, 6))).toBe("Bus 1, Bus 2, Bus 3, Bus 4, Bus 5, Bus 6");
  expect(named([])).toBe("");
});
