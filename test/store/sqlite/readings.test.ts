import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import { afterEach, expect, test, vi } from "vitest";

import type { Reading } from "../../../src/domain/reading.ts";
import type { Telemetry } from "../../../src/domain/telemetry.ts";
import {
  after,
  chargerId,
  type Instant,
  instant,
  millis,
  minutes,
  vehicleId,
} from "../../../src/domain/units.ts";
import { readingsOf } from "../../../src/reporting/reading.ts";
import { aDirectory, opened } from "./state.ts";
import { commandRecord, NOON } from "./words.ts";

const bay = chargerId("bay-01");
const bus = vehicleId("veh-214");
const DAY = 86_400_000;
const seconds = (count: number): Instant => after(NOON, millis(count * 1000));

/** One message from bay-01 with veh-214, received when it was measured. */
const message = (telemetry: Partial<Telemetry>, receivedAt: Instant = NOON, charger = bay) =>
  readingsOf({ charger, vehicle: bus }, { at: receivedAt, ...telemetry }, receivedAt, null);

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("every reading is read back as it was: measured, stated and sent, with its quality, its source and its time", () => {
  const directory = aDirectory();
  const { store } = opened(directory);
  const told = { ...commandRecord("bay-01", 1).command, until: seconds(60) };
  const full = {
    powerW: 11040.5,
    energyWh: 1e9,
    currentsA: [16],
    voltagesV: [231],
    soc: 71,
    limitA: 16,
    state: "charging",
  } as const;
  const readings = [
    ...readingsOf({ charger: bay, vehicle: bus }, { at: seconds(-2), ...full }, NOON, told),
    ...readingsOf(
      { charger: bay, vehicle: null },
      { at: instant(0), powerW: 0, soc: 101 },
      seconds(1),
      null,
      millis(seconds(1)),
    ),
    ...readingsOf({ charger: bay, vehicle: bus }, { at: seconds(2), energyWh: -1 }, seconds(2), null),
  ];
  store.keepReadings(readings);
  const asked = () => opened(directory).store.reads.readings([bay], seconds(-60), seconds(60));
  expect(store.reads.readings([bay], seconds(-60), seconds(60))).toEqual(readings);
  store[Symbol.dispose]();
  expect(asked()).toEqual(readings);
});

test("a window without an end costs no more than the readings in it", () => {
  using store = opened(aDirectory()).store;
  store.keepReadings(message({ powerW: 7_000 }));
  expect(store.reads.readings([bay], instant(0), instant(Date.UTC(9999, 0)))).toHaveLength(1);
});

test("readings are in one commit within ten seconds, and asking does not wait for it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { store } = opened(aDirectory());
  store.keepReadings(message({ powerW: 1 }));
  store.keepReadings(message({ powerW: 2 }, seconds(1)));
  expect(store.reads.readings([bay], NOON, seconds(1)).map(({ value }) => value)).toEqual([1]);
  const before = store.stats().bytes;
  await vi.advanceTimersByTimeAsync(9_999);
  expect(store.stats().bytes).toBe(before);
  await vi.advanceTimersByTimeAsync(1);
  expect(store.stats()).toMatchObject({ commits: 1, failures: 0 });
  expect(store.stats().bytes).toBeGreaterThan(before);
  expect(store.reads.readings([bay], NOON, seconds(2)).map(({ value }) => value)).toEqual([1, 2]);
});

test("readings wait while commands of a depot are being published", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { store } = opened(aDirectory());
  const size = (): number => store.stats().bytes;
  store.keepReadings(message({ powerW: 1 }));
  await vi.advanceTimersByTimeAsync(9_950);
  store.write(
    Array.from({ length: 200 }, (_, n) => ({ kind: "command", record: commandRecord(`bay-${n}`, n) })),
  );
  const before = size();
  await vi.advanceTimersByTimeAsync(50);
  expect(size()).toBe(before);
  await vi.advanceTimersByTimeAsync(50);
  expect(store.stats().commits).toBe(1);
  const told = size();
  await vi.advanceTimersByTimeAsync(950);
  expect(size()).toBeGreaterThan(told);
});

test("readings that cannot be stored wait, the oldest are dropped first, and decisions are not touched (F05, F95)", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { store } = opened(aDirectory(), { maxPages: 60 });
  const many: Reading[] = Array.from({ length: 5_000 }, (_, n) => message({ powerW: n }, seconds(n))).flat();
  for (let round = 0; round < 21; round += 1) store.keepReadings(many);
  await vi.advanceTimersByTimeAsync(10_000);
  const left = store.reads.readings([bay], NOON, seconds(5_000));
  expect(left.length).toBeGreaterThan(0);
  expect(left.length).toBeLessThanOrEqual(100_000);
  store.write([{ kind: "command", record: commandRecord("bay-01", 1) }]);
  expect(await store.durable()).toEqual({ ok: true });
});

/** How many readings of each of these days back there are. */
const perDay = (store: ReturnType<typeof opened>["store"], days: readonly number[]) =>
  days.map((back) => {
    const from = after(NOON, millis(-DAY * back));
    return store.reads.readings([bay], from, after(from, minutes(2))).length;
  });

test("readings past their retention go; from the ninth day on the last reading of each minute stays", async () => {
  const directory = aDirectory();
  const { store } = opened(directory);
  for (const back of [61, 59, 9, 7]) {
    const from = after(NOON, millis(-DAY * back));
    for (let second = 0; second < 120; second += 10)
      store.keepReadings(message({ energyWh: second }, after(from, millis(second * 1000))));
  }
  store[Symbol.dispose]();
  const again = opened(directory).store;
  for (let step = 0; step < 3; step += 1) await again.pruneReadings(NOON, millis(60 * DAY));
  expect(perDay(again, [61, 59, 9, 7])).toEqual([0, 2, 2, 12]);
  const nine = after(NOON, millis(-DAY * 9));
  expect(again.reads.readings([bay], nine, after(nine, minutes(1))).map(({ value }) => value)).toEqual([50]);
  expect(again.reads.seats(bus, after(NOON, millis(-DAY * 61)), after(NOON, millis(-DAY * 60)))).toEqual([]);
});

/** What is said of trouble. */
function complaints() {
  const said: string[] = [];
  const log = pino({ level: "error" }, { write: (line) => said.push(JSON.parse(line).msg) });
  return { said, log };
}

test("readings that cannot be stored are complained of once, though pruning works every minute (F05)", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { said, log } = complaints();
  const { store } = opened(aDirectory(), { maxPages: 60, log });
  store.keepReadings(Array.from({ length: 5_000 }, (_, n) => message({ powerW: n }, seconds(n))).flat());
  for (let minute = 0; minute < 3; minute += 1) {
    await vi.advanceTimersByTimeAsync(60_000);
    await store.pruneReadings(NOON, millis(60 * DAY));
  }
  expect(said).toEqual(["readings cannot be stored"]);
});

test("old readings that cannot be pruned are logged once, with their own message", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { said, log } = complaints();
  const { store } = opened(aDirectory(), { log });
  const { prepare } = DatabaseSync.prototype;
  vi.spyOn(DatabaseSync.prototype, "prepare").mockImplementation(function (this: DatabaseSync, sql) {
    if (!sql.startsWith("DELETE FROM reading")) return prepare.call(this, sql);
    throw Object.assign(new Error("stuck"), { code: "ERR_SQLITE_ERROR", errcode: 10 });
  });
  for (let minute = 0; minute < 3; minute += 1) {
    store.keepReadings(message({ powerW: minute }, seconds(minute)));
    await vi.advanceTimersByTimeAsync(60_000);
    await store.pruneReadings(after(NOON, millis(DAY)), minutes(60));
  }
  expect(said).toEqual(["old readings cannot be pruned"]);
  expect(store.reads.readings([bay], NOON, seconds(60))).toHaveLength(3);
});
