import { describe, expect, test } from "vitest";

import { HOUR, MINUTE } from "../simulate/plan.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { dayFigure } from "./dayFigure.ts";
import { realSoak } from "./realSoak.ts";
import { FIGURES } from "./sample.ts";
import { VirtualDepot } from "./virtualDepot.ts";
import { virtualSoak } from "./virtualSoak.ts";

describe.skipIf(!mosquittoAvailable)("a soak of the real daemon", () => {
  test("twenty seconds with outages: memory, heap, handles, state and commits are measured and within their bounds (S10)", async () => {
    const { samples, traffic, told, reports } = await realSoak({
      minutes: 0.35,
      chargers: 10,
      seed: 20_261_121,
      beatMs: 1_200,
      sampleMs: 2_500,
      collectEvery: 3,
      onSample: () => undefined,
      progress: () => undefined,
    });
    for (const sample of samples) {
      for (const name of ["resident", "handles", "state", "log"] as const) {
        expect(sample[name], name).toBeGreaterThan(0);
        expect(sample[name], name).toBeLessThan(FIGURES[name].rule.most);
      }
      expect(sample.commits).toBeLessThan(FIGURES.commits.rule.most);
    }
    const heaps = samples.flatMap(({ heap }) => heap ?? []);
    expect(heaps.length).toBeGreaterThan(1);
    expect(Math.max(...heaps)).toBeLessThan(FIGURES.heap.rule.most);
    expect(traffic.events).toBeGreaterThan(10);
    expect(traffic.brokerOutages).toBeGreaterThan(0);
    expect(traffic.partnerOutages).toBeGreaterThan(0);
    expect(told).toBeGreaterThan(20);
    expect(reports).toBeGreaterThan(0);
  });
});

const DAY = 24 * HOUR;

test("days in virtual time: once what is over is forgotten, neither rows nor the file grow any more (F11, S10)", async () => {
  const { stands, count } = await virtualSoak(
    { chargers: 2, telemetryEvery: 60_000, eventEvery: HOUR, keep: DAY, seed: 1 },
    { hours: 96, every: 24 },
  );
  const [, second, , fourth] = stands;
  if (second === undefined || fourth === undefined) throw new Error("days are missing");
  for (const table of ["event", "audit", "report", "reading", "duty", "seat"] as const) {
    expect(fourth[table], table).toBeGreaterThan(0);
    expect(fourth[table], table).toBeLessThan(1.2 * second[table] + 20);
  }
  expect(fourth.file).toBeLessThan(1.2 * second.file + 1);
  expect(count.events).toBeGreaterThan(90);
  expect(count.reports).toBeGreaterThan(90);
});

test("days with restarts: neither the whole events in memory nor those read at a start grow with what is over (S10)", async () => {
  using depot = new VirtualDepot({
    chargers: 1,
    telemetryEvery: HOUR,
    eventEvery: 10 * MINUTE,
    keep: 30 * DAY,
    seed: 1,
  });
  const stands: { readonly whole: number; readonly over: number; readonly wholeEventsRead: number }[] = [];
  for (let days = 0; days < 3; days += 1) {
    await depot.passes(DAY);
    stands.push({ ...depot.restart(), ...depot.inMemory });
  }
  const [first, , last] = stands;
  expect(last?.over).toBeGreaterThan(2 * (first?.over ?? Infinity));
  for (const { whole, wholeEventsRead } of stands) {
    expect(whole).toBeLessThan(5);
    expect(wholeEventsRead).toBeLessThan(5);
  }
});

test("an hour of 100 chargers with telemetry, an event and its reports costs less than one commit a second (S10)", async () => {
  const { commitsPerSecond, publishes, reports } = await dayFigure(1, undefined, 100);
  process.stdout.write(`${commitsPerSecond.toFixed(3)} commits a second\n`);
  expect(publishes).toBeGreaterThan(500);
  expect(reports).toBeGreaterThan(0);
  expect(commitsPerSecond).toBeLessThan(1);
});
