import { array, integer, record, sample } from "fast-check";
import { describe, expect, test, vi } from "vitest";

import { type Json, textOf } from "../../src/domain/audit.ts";
import { GUARD } from "../../src/departures/guard.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { aDepot } from "../support/aDepot.ts";
import type { TestDepot } from "../support/testDepot.ts";
import { virtualNow } from "../support/virtualTime.ts";

/** W, and W per A: three phases of 230 V. */
const [MOST, RATIO] = [22_080, 690];

/** Chargers that give what they were last told, from 01:00 on, with a message of each every minute. */
class Charging {
  readonly depot: TestDepot;
  readonly #sessionWh: number[];
  /** Highest level of each minute, in W. */
  highest = 0;
  mostFreed = 0;

  constructor(depot: TestDepot, count: number) {
    this.depot = depot;
    this.#sessionWh = Array.from({ length: count }, () => 0);
  }

  sessionOf(bus: number): number {
    return this.#sessionWh[bus - 1] ?? 0;
  }

  freed(): readonly Record<string, Json>[] {
    const answer = this.depot.holds({ state: "open" });
    const all = answer.ok ? (answer.value as readonly Record<string, Json>[]) : [];
    return all.filter(({ by }) => by === GUARD);
  }

  async until(time: string): Promise<void> {
    const end = Date.parse(`2026-11-21T${time}:00Z`);
    while (virtualNow() < end) {
      for (const [index, wh] of this.#sessionWh.entries()) {
        const charger = `bay-0${index + 1}`;
        const last = this.depot.floor.published.findLast(({ command }) => command.charger === charger);
        const watts = wattsOf(last?.command.desired ?? { kind: "release" });
        this.highest = Math.max(this.highest, watts);
        await this.depot.telemetry(charger, { state: "charging", powerW: watts, sessionWh: wh });
        this.#sessionWh[index] = wh + watts / 60;
      }
      this.mostFreed = Math.max(this.mostFreed, this.freed().length);
      await this.depot.passes(60_000 - 10 * this.#sessionWh.length);
    }
  }
}

function wattsOf(desired: Desired): number {
  switch (desired.kind) {
    case "current":
      return desired.amperes * RATIO;
    case "power":
      return desired.watts;
    case "pause":
      return 0;
    case "release":
      return MOST;
  }
}

/** Buses that leave at 05:40 with this much energy each, and an event of 8 A over the whole night. */
async function aNight(needs: readonly number[], most: number): Promise<Charging> {
  const builder = aDepot();
  for (const [index, energy] of needs.entries())
    builder.withVehicle(`v${index + 1}`, `bay-0${index + 1}`, { departures: [{ at: "05:40", energy }] });
  const depot = await builder.startingAt("01:00").withDepartures({ on: true, most }).running();
  await depot.deliver({ id: "EV-7", start: "01:00", minutes: 600, amperes: 8 });
  return new Charging(depot, needs.length);
}

/** Vehicles with an alarm. */
const alarmed = ({ depot }: Charging): readonly (string | null)[] =>
  runToEnd(depot.departures.facts(virtualNow())).map(({ subject }) => subject);

test("a bus that an event would let leave short is freed at the latest moment, and leaves with what it needs", async () => {
  const night = await aNight([60], 1);
  await night.until("01:30");
  const [row] = night.depot.departureList();
  expect(row).toMatchObject({
    state: "onTime",
    short: null,
    cause: "event",
    because: expect.stringMatching(/^the departure guard frees it from events from 03:.*EV-7 allows 5.5 kW/),
    guardFrom: expect.any(String),
  });
  expect(alarmed(night)).toEqual([]);
  const from = Date.parse(textOf(row ?? null, "guardFrom") ?? "");
  // 5.52 kW until then and 22.08 kW from then on give 60 kWh by 05:40, three minutes early.
  const hours = (from - Date.parse("2026-11-21T01:00:00Z")) / 3_600_000;
  expect(5.52 * hours + 22.08 * (4 + 2 / 3 - hours)).toBeGreaterThan(60);
  expect(5.52 * hours + 22.08 * (4 + 2 / 3 - hours)).toBeLessThan(60 + 2);
  await night.until("03:00");
  expect(night.freed()).toEqual([]);
  await night.until("04:00");
  expect(night.freed()).toMatchObject([
    {
      by: GUARD,
      scope: { vehicle: "v1" },
      kind: "exempt",
      reason: expect.stringMatching(/^[\d.]+ kWh short at 05:40:00, ready 11:.*: event EV-7 allows 5.5 kW/),
      until: "2026-11-21T05:40:00.000Z",
    },
  ]);
  await night.until("05:39");
  expect(night.sessionOf(1)).toBeGreaterThanOrEqual(60_000);
  expect(night.freed()).toEqual([]);
  const words = night.depot.audit("operator");
  expect(words).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^hold .* opened by departure guard: v1 exempt until [\d.]+ kWh are delivered/),
      expect.stringMatching(/^hold .* of departure guard: event EV-7 does not apply to bay-01/),
      expect.stringMatching(/^hold .* of departure guard on v1 ended .*: the energy is delivered/),
    ]),
  );
});

test("a bus for which there is no place in the guard stays short, with an alarm, until a place is free", async () => {
  const night = await aNight([80, 60, 45], 1);
  await night.until("01:30");
  const states = night.depot
    .departureList()
    .map((each) => `${textOf(each, "vehicle")} ${textOf(each, "state")}`);
  expect(states).toEqual(["v1 onTime", "v2 short", "v3 short"]);
  expect(alarmed(night)).toEqual(["v2", "v3"]);
  await night.until("05:39");
  expect(night.mostFreed).toBe(1);
  expect(night.sessionOf(1)).toBeGreaterThanOrEqual(80_000);
});

test("a hold that a person ends is not opened again, and a level that a person holds is not overridden", async () => {
  const night = await aNight([100, 100], 5);
  await night.until("01:10");
  const ids = night.freed().map((hold) => textOf(hold, "id"));
  expect(ids).toHaveLength(2);
  await night.depot.endHold(ids[0] ?? "", "it stays today", "kari");
  await night.depot.hold({
    scope: { vehicle: "v1" },
    kind: "level",
    level: { currentA: 8 },
    until: { at: "2026-11-21T06:00:00Z" },
    reason: "a weak cable",
  });
  await night.until("02:00");
  expect(night.freed()).toHaveLength(1);
});

test("the guard goes on after a restart, with the holds that it has", async () => {
  const night = await aNight([100, 100], 1);
  await night.until("01:10");
  const [hold] = night.freed();
  await night.depot.restart();
  await night.until("02:00");
  expect(night.freed()).toMatchObject([{ id: hold?.["id"] }]);
});

/** Rows of the record about holds that end. */
const ends = (night: Charging): readonly string[] =>
  night.depot.audit("operator").filter((words) => words.includes(" ended "));

describe("a hold of the guard ends before its energy is delivered", () => {
  test("when its vehicle is unplugged, and the event applies again", async () => {
    const night = await aNight([60], 1);
    await night.until("04:00");
    expect(night.freed()).toHaveLength(1);
    await night.depot.telemetry("bay-01", { state: "unplugged", sessionWh: 0 });
    await night.depot.passes(2_000);
    expect(night.freed()).toEqual([]);
    expect(ends(night)).toEqual([
      expect.stringMatching(/^hold .* of departure guard on v1 ended .*: unplugged$/),
    ]);
    expect(night.depot.floor.published.at(-1)?.command.desired).toEqual({ kind: "current", amperes: 8 });
  });

  test("when its vehicle was unplugged while the daemon was down", async () => {
    const night = await aNight([60], 1);
    await night.until("04:00");
    await night.depot.restart({ after: 60_000 });
    expect(night.freed()).toHaveLength(1);
    await night.depot.telemetry("bay-01", { state: "unplugged", sessionWh: 0 });
    await night.depot.passes(2_000);
    expect(night.freed()).toEqual([]);
  });

  test("when its charger has no register, and the vehicle is unplugged", async () => {
    const depot = await aDepot()
      .withVehicle("v1", "bay-01", { departures: [{ at: "05:40", soc: 80 }], battery: { capacity: 200 } })
      .startingAt("01:00")
      .withDepartures({ on: true, most: 1 })
      .running();
    await depot.telemetry("bay-01", { state: "charging", powerW: 5_500, soc: 10 });
    await depot.deliver({ id: "EV-7", start: "01:00", minutes: 600, amperes: 8 });
    await depot.passes(5_000);
    const open = (): Json => (depot.holds({ state: "open" }) as { value: Json }).value;
    expect(open()).toMatchObject([{ by: GUARD, end: "unplugged", until: "2026-11-21T05:40:00.000Z" }]);
    await depot.telemetry("bay-01", { state: "unplugged" });
    await depot.passes(2_000);
    expect(open()).toEqual([]);
  });

  test("when its vehicle needs no more", async () => {
    const night = await aNight([60, 60], 2);
    await night.until("04:00");
    expect(night.freed()).toHaveLength(2);
    const enough = { at: "05:40", energyWh: Math.floor(night.sessionOf(1) / 2) };
    expect((await night.depot.setDeparture("v1", enough)).ok).toBe(true);
    await night.depot.passes(2_000);
    expect(ends(night)).toEqual([expect.stringMatching(/on v1 ended .*: the vehicle has what it needs$/)]);
    expect(night.freed()).toMatchObject([{ scope: { vehicle: "v2" } }]);
  });

  test("when its vehicle leaves later, and is freed again at the latest moment", async () => {
    const night = await aNight([60], 1);
    await night.until("04:00");
    await night.depot.setDeparture("v1", { at: "08:00", energyWh: 60_000 });
    await night.depot.passes(2_000);
    expect(ends(night)).toEqual([expect.stringMatching(/on v1 ended .*: the vehicle leaves 08:00:00$/)]);
    expect(night.freed()).toEqual([]);
    await night.until("07:59");
    expect(night.sessionOf(1)).toBeGreaterThanOrEqual(60_000);
  });
});

describe("a departure that changes at the last minute", () => {
  test("to later, with more energy, goes on without a moment of the event in between", async () => {
    const night = await aNight([60], 1);
    await night.until("05:20");
    const [before] = night.freed();
    const published = night.depot.floor.published.length;
    await night.depot.setDeparture("v1", { at: "06:00", energyWh: 100_000 });
    await night.depot.passes(2_000);
    expect(night.freed()).toMatchObject([{ until: "2026-11-21T06:00:00.000Z" }]);
    expect(night.freed()[0]?.["id"]).not.toBe(before?.["id"]);
    const since = night.depot.floor.published.slice(published);
    expect(since.filter(({ command }) => command.desired.kind !== "release")).toEqual([]);
  });

  test("to sooner is freed at once, and only until then", async () => {
    const night = await aNight([60], 1);
    await night.until("02:30");
    expect(night.freed()).toEqual([]);
    await night.depot.setDeparture("v1", { at: "03:00", energyWh: 60_000 });
    await night.depot.passes(3_000);
    expect(night.freed()).toMatchObject([{ until: "2026-11-21T03:00:00.000Z" }]);
    await night.until("03:01");
    expect(night.freed()).toEqual([]);
    expect(ends(night)).toEqual([expect.stringMatching(/on v1 ended .*: its time has come$/)]);
  });

  test("to sooner while it is freed keeps its hold", async () => {
    const night = await aNight([60], 1);
    await night.until("04:00");
    const [before] = night.freed();
    await night.depot.setDeparture("v1", { at: "05:00", energyWh: 60_000 });
    await night.depot.passes(3_000);
    expect(night.freed()).toMatchObject([{ id: before?.["id"] }]);
    await night.until("05:02");
    expect(night.freed()).toEqual([]);
  });
});

/** Rows of the record about holds that the guard opened. */
const openings = (night: Charging): readonly string[] =>
  night.depot.audit("operator").filter((words) => words.includes(`opened by ${GUARD}`));

test("F05: on a full disk the guard frees no vehicle, and frees it once there is room", async () => {
  const night = await aNight([60], 1);
  await night.until("03:00");
  night.depot.disk.full = true;
  await night.until("04:10");
  expect(night.depot.floor.published.at(-1)?.command.desired).toEqual({ kind: "current", amperes: 8 });
  night.depot.disk.full = false;
  await night.until("04:15");
  expect(night.freed()).toHaveLength(1);
  expect(openings(night)).toHaveLength(1);
  expect(night.depot.floor.published.at(-1)?.command.desired).toEqual({ kind: "release" });
  await night.until("05:45");
  expect(night.freed()).toEqual([]);
});

test("F01: a daemon that is killed between the decision of the guard and its commit decides once more, for one hold", async () => {
  const night = await aNight([60], 1);
  await night.until("03:00");
  const [row] = night.depot.departureList();
  const from = textOf(row ?? null, "guardFrom") ?? "";
  // The decision is made and not stored: what was only in memory is gone.
  night.depot.disk.full = true;
  await night.until(new Date(Date.parse(from) + 120_000).toISOString().slice(11, 16));
  await night.depot.stop({ full: true });
  night.depot.disk.full = false;
  night.depot.start();
  await night.until("04:30");
  expect(night.freed()).toHaveLength(1);
  expect(openings(night)).toHaveLength(1);
  await night.until("05:45");
  expect([night.freed(), night.mostFreed, openings(night).length]).toEqual([[], 1, 1]);
});

test("never more than the most are freed, however many vehicles would leave short", async () => {
  const night = await aNight([100, 95, 90, 85, 80, 75, 70, 65], 2);
  await night.until("05:45");
  expect(night.mostFreed).toBe(2);
  expect(night.freed()).toEqual([]);
});

test("F21: a clock that is set back by 45 minutes while a vehicle is freed doubles no hold and keeps none too long", async () => {
  const night = await aNight([60], 1);
  await night.until("04:10");
  expect(night.freed()).toHaveLength(1);
  vi.setSystemTime(virtualNow() - 45 * 60_000);
  await night.until("05:38");
  expect(night.mostFreed).toBe(1);
  // The vehicle leaves at the same time of day, which is 45 minutes later now.
  expect(night.sessionOf(1)).toBeGreaterThanOrEqual(60_000);
  await night.until("05:45");
  expect(night.freed()).toEqual([]);
  expect(openings(night).length).toBe(ends(night).length);
});

test("a guard that is switched off opens nothing, and ends what it left behind", async () => {
  const night = await aNight([60], 1);
  await night.until("04:00");
  expect(night.freed()).toHaveLength(1);
  await night.depot.restart({ guard: null });
  await night.depot.telemetry("bay-01", { state: "unplugged", sessionWh: 0 });
  await night.depot.passes(2_000);
  expect(night.freed()).toEqual([]);
});

test("without the guard no vehicle is freed", async () => {
  const builder = aDepot().withVehicle("v1", "bay-01", { departures: [{ at: "05:40", energy: 100 }] });
  const depot = await builder.startingAt("01:00").withDepartures().running();
  await depot.deliver({ id: "EV-7", start: "01:00", minutes: 600, amperes: 8 });
  const night = new Charging(depot, 1);
  await night.until("02:00");
  expect(depot.holds()).toEqual({ ok: true, value: [] });
});

const anyNight = record({
  needs: array(integer({ min: 10, max: 90 }), { minLength: 1, maxLength: 4 }),
  most: integer({ min: 1, max: 3 }),
});

test.each(sample(anyNight, 4))(
  "never more than the most are freed at a time, no charger is raised above its limits, and who can be helped is: %j",
  async ({ needs, most }) => {
    const night = await aNight(needs, most);
    await night.until("05:40");
    expect(night.mostFreed).toBeLessThanOrEqual(most);
    expect(night.highest).toBeLessThanOrEqual(MOST);
    if (needs.length > most) return;
    for (const [index, energy] of needs.entries())
      expect(night.sessionOf(index + 1)).toBeGreaterThanOrEqual(energy * 1000);
  },
);
