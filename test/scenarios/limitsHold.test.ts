import * as fc from "fast-check";
import { expect, test } from "vitest";

import type { Command } from "../../src/domain/command.ts";
import { aDepot } from "../support/aDepot.ts";

const VOLTAGE = 230;
const SEED = 20_261_121;
/** A rounded ampere over all phases, and what is lost in floating point. */
const WATT = 1e-6;

const aBay = fc.record({
  min: fc.integer({ min: 6, max: 10 }),
  max: fc.integer({ min: 11, max: 80 }),
  phases: fc.constantFrom(1, 2, 3),
  vehicleMax: fc.option(fc.integer({ min: 7, max: 70 })),
  belowMinimum: fc.constantFrom("pause", "hold"),
});

/** From the sensible to what no grid has. */
const aLevel = fc.oneof(
  fc.double({ min: 0, max: 100, noNaN: true }),
  fc.constantFrom(0, -0, -5, -1e308, 1e-300, 0.05, 5.999, 1e6, 1e15, Number.MAX_VALUE),
);
const anAsk = fc.oneof(
  { weight: 4, arbitrary: fc.record({ payloadType: fc.constant("CurrentLevel"), targetCurrent: aLevel }) },
  { weight: 4, arbitrary: fc.record({ payloadType: fc.constant("PowerLevel"), targetPower: aLevel }) },
  {
    weight: 2,
    arbitrary: fc.record({
      payloadType: fc.constantFrom("Unknown", "CurrentLimit", "currentlevel ", "", "__proto__"),
      targetCurrent: aLevel,
      targetPower: aLevel,
    }),
  },
);
const anEvent = fc.record({
  ask: anAsk,
  atMinute: fc.integer({ min: 10, max: 230 }),
  minutes: fc.integer({ min: 1, max: 60 }),
  priority: fc.constantFrom(1, 2, 3),
});

const sampled = <T>(arbitrary: fc.Arbitrary<T>, count: number): readonly T[] =>
  fc.sample(arbitrary, { numRuns: count, seed: SEED });

test("S4: each charger only ever receives finite values within its own and its vehicle's limits, and none for unknown vehicles, whatever events ask for", async () => {
  const bays = sampled(aBay, 20);
  const events = sampled(anEvent, 80);
  const depot = bays
    .reduce(
      (builder, { min, max, phases, vehicleMax, belowMinimum }, index) =>
        builder
          .withCharger(`bay-${index}`, { current: { min, max }, phases, voltage: VOLTAGE, belowMinimum })
          .withVehicle(
            `v${index}`,
            `bay-${index}`,
            vehicleMax === null ? {} : { current: { max: vehicleMax } },
          ),
      aDepot(),
    )
    .pollingEvery("1h");
  const running = await depot.running();
  for (const [index, { ask, atMinute, minutes, priority }] of events.entries()) {
    const start = new Date(Date.parse("2026-11-21T00:00:00Z") + atMinute * 60_000).toISOString();
    const asked = { ...running.has({ id: `EV-${index}`, start, minutes, priority }), payload: ask };
    running.partner.events.set(asked.ID, asked);
    await running.post(asked);
  }
  await running.until("05:30");

  const wrong = running.floor.published.flatMap(({ command, words }) => {
    const bay = bays[Number(command.charger.slice("bay-".length))];
    const asked = events[Number(command.event?.slice("EV-".length))]?.ask.payloadType ?? "";
    if (bay === undefined || !known(asked)) return [`${words} for ${command.event}: ${asked}`];
    return isWithin(command, bay) ? [] : [`${words} for ${command.event}, allowed ${JSON.stringify(bay)}`];
  });
  expect(wrong).toEqual([]);
  const kinds = new Set(running.floor.published.map(({ command }) => command.desired.kind));
  expect(kinds).toEqual(new Set(["current", "power", "pause", "release"]));
});

const known = (type: string): boolean => type === "CurrentLevel" || type === "PowerLevel";

function isWithin({ desired }: Command, bay: typeof aBay extends fc.Arbitrary<infer T> ? T : never): boolean {
  const most = Math.min(bay.max, bay.vehicleMax ?? Infinity);
  switch (desired.kind) {
    case "current":
      return desired.amperes >= bay.min && desired.amperes <= most;
    case "power": {
      const perAmpere = bay.phases * VOLTAGE;
      return desired.watts >= bay.min * perAmpere - 1 && desired.watts <= most * perAmpere + WATT;
    }
    case "pause":
    case "release":
      return true;
  }
}
