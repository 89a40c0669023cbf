import { expect, test } from "vitest";

import {
  departureLines,
  endConsequences,
  holdLine,
  named,
  type Naming,
  previewLines,
} from "../../../src/operator/page/holdPreview.ts";
import { aDeparture, someAnswers } from "../../support/someAnswers.ts";

const naming: Naming = {
  event: (id) => (id === "EV-1" ? "Evening peak" : id),
  ask: () => "10 A",
  vehicle: (id) => id.replace("veh-", "Bus "),
  time: (at) => at.slice(11, 16),
  departure: () => undefined,
  eventOf: (id) => (id === "veh-1" ? "EV-1" : null),
};
const UNTIL = "2026-11-21T06:00:00.000Z";
const cost = (event: string, estimatedWh: number | null) => ({
  event,
  sentence: "",
  estimatedWh,
  measured: null,
});
const preview = { sentence: "", until: UNTIL, chargers: 1, costs: [], departures: [], others: [] };

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

const leaving = {
  ...aDeparture,
  vehicle: "veh-1",
  at: "2026-11-21T05:40:00.000Z",
  readyAt: null,
  short: null,
};
const ready = (readyAt: string) => ({ ...leaving, state: "onTime", readyAt }) as const;
const short = { ...leaving, state: "short", short: { energyWh: 3200 } } as const;

test.each([
  [short, ready("2026-11-21T05:24:00Z"), "Bus 1 is ready at 05:24. It leaves at 05:40."],
  [
    { ...short, readyAt: "2026-11-21T06:22:00Z" },
    ready("2026-11-21T05:24:00Z"),
    "Bus 1 is ready at 05:24 instead of 06:22. It leaves at 05:40.",
  ],
  [ready("2026-11-21T05:24:00Z"), short, "Bus 1 leaves at 05:40 and is then 3.2 kWh short."],
  [undefined, { ...leaving, state: "ready" }, "Bus 1 has what it needs. It leaves at 05:40."],
  [
    undefined,
    { ...leaving, state: "unknown", missing: ["the state of charge"] },
    "When Bus 1 is ready is not known: the state of charge.",
  ],
] as const)(
  "a preview shows when the vehicle is ready, and when it would be without it",
  (now, under, line) => {
    const departures = [under as typeof aDeparture];
    const known = { ...naming, departure: () => now as typeof aDeparture | undefined };
    expect(departureLines({ value: { ...preview, departures }, problem: null }, known)).toEqual([line]);
  },
);

test("a preview of several vehicles counts those that leave short, now and under the override", () => {
  const lines = (now: typeof aDeparture, ...departures: readonly (typeof aDeparture)[]) =>
    departureLines({ value: { ...preview, departures }, problem: null }, { ...naming, departure: () => now });
  const good = ready("2026-11-21T05:24:00Z");
  expect([lines(short, good, short), lines(good, good, good), lines(short, short, short)]).toEqual([
    ["Of 2 vehicles with a departure, 1 leaves short instead of 2."],
    ["Of 2 vehicles with a departure, none leaves short."],
    ["Of 2 vehicles with a departure, 2 leave short."],
  ]);
  expect(departureLines({ value: preview, problem: null }, naming)).toEqual([]);
  expect(departureLines({ value: null, problem: null }, naming)).toEqual([]);
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
