import { DatabaseSync, type StatementResultingChanges } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { readingsOf } from "../../../src/reporting/reading.ts";
import { after, chargerId, instant, millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import { connection } from "../../../src/store/sqlite/connection.ts";
import { migrate } from "../../../src/store/sqlite/migrations.ts";
import { putReadings, countReadings, PRUNE_PAGE, pruneReadings } from "../../../src/store/sqlite/readings.ts";
import { NOON } from "./words.ts";

const KEY = Buffer.alloc(32, 7);

test("past their number the oldest readings go first, however young they are (F95)", () => {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  const open = connection(database);
  const readings = Array.from({ length: 100 }, (_, n) => after(NOON, millis(n * 1000))).flatMap((at) =>
    readingsOf({ charger: chargerId("bay-01"), vehicle: null }, { at, powerW: at }, at, null),
  );
  countReadings(open, putReadings(database, KEY, readings));
  const pruned = pruneReadings(open, after(NOON, minutes(5)), minutes(60), 50);
  expect(pruned).toEqual({ rows: 40, leftEarly: true });
  const left = database.prepare("SELECT count(*) AS rows, min(at) AS oldest FROM reading").get();
  // Whole minutes go: the first of the two.
  expect(left).toEqual({ rows: 40, oldest: after(NOON, minutes(1)) });
  expect(open.getMeta.get("readings")).toEqual({ value: "40" });
  expect(pruneReadings(open, instant(NOON + 5), minutes(60), 50)).toEqual({ rows: 40, leftEarly: false });
  expect(database.prepare("SELECT count(*) AS rows FROM reading").get()).toEqual({ rows: 40 });
});

test("while the clock is not confirmed nothing is too old and nothing is thinned, but readings above the limit go", () => {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  const open = connection(database);
  const rows = () => database.prepare("SELECT count(*) AS rows FROM reading").get()?.["rows"];
  const seats = () => database.prepare("SELECT count(*) AS rows FROM seat").get()?.["rows"];
  const bus = { charger: chargerId("bay-01"), vehicle: vehicleId("veh-214") };
  const readings = Array.from({ length: 120 }, (_, n) => after(NOON, millis(n * 1000))).flatMap((at) =>
    readingsOf(bus, { at, powerW: at }, at, null),
  );
  countReadings(open, putReadings(database, KEY, readings));
  const ahead = after(NOON, minutes(365 * 24 * 60));
  pruneReadings(open, ahead, null);
  expect([rows(), seats()]).toEqual([120, 1]);
  pruneReadings(open, ahead, null, 100);
  expect([rows(), seats()]).toEqual([60, 1]);
  expect(pruneReadings(open, ahead, minutes(60))).toEqual({ rows: 0, leftEarly: false });
  expect([rows(), seats()]).toEqual([0, 0]);
});

/** A state with two readings of each charger in one minute, and the rows that each statement took out of it. */
function aLargeMinute(chargers: number) {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  const open = connection(database);
  const readings = Array.from({ length: chargers }, (_, index) => chargerId(`bay-${index}`)).flatMap(
    (charger) =>
      [0, 30].flatMap((second) => {
        const at = after(NOON, millis(second * 1000));
        return readingsOf({ charger, vehicle: null }, { at, powerW: second }, at, null);
      }),
  );
  countReadings(open, putReadings(database, KEY, readings));
  const prepare = database.prepare.bind(database);
  const runs: { readonly mock: { readonly results: readonly { readonly value: unknown }[] } }[] = [];
  vi.spyOn(database, "prepare").mockImplementation((sql) => {
    const statement = prepare(sql);
    if (sql.startsWith("DELETE FROM reading")) runs.push(vi.spyOn(statement, "run"));
    return statement;
  });
  const deleted = (): readonly number[] =>
    runs.flatMap(({ mock }) =>
      mock.results.map(({ value }) => Number((value as StatementResultingChanges).changes)),
    );
  const rows = (): number => Number(prepare("SELECT count(*) AS rows FROM reading").get()?.["rows"]);
  return { open, deleted, rows };
}

test("a minute of a large site that is too old goes in small statements", () => {
  const { open, deleted, rows } = aLargeMinute(2 * PRUNE_PAGE);
  const late = after(NOON, minutes(120));
  while (pruneReadings(open, late, minutes(60)).rows > 0);
  expect(rows()).toBe(0);
  expect(Math.max(...deleted())).toBeLessThanOrEqual(PRUNE_PAGE + 1);
});

test("a minute of a large site is thinned in small statements, to the last reading of each charger", () => {
  const { open, deleted, rows } = aLargeMinute(2 * PRUNE_PAGE);
  const late = after(NOON, minutes(9 * 24 * 60));
  while (pruneReadings(open, late, minutes(365 * 24 * 60)).rows > 2 * PRUNE_PAGE);
  expect(rows()).toBe(2 * PRUNE_PAGE);
  expect(Math.max(...deleted())).toBeLessThanOrEqual(PRUNE_PAGE);
});
