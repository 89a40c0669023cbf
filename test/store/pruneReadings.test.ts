import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { readingsOf } from "../../src/core/reporting/reading.ts";
import { after, chargerId, instant, millis, minutes, vehicleId } from "../../src/core/units.ts";
import { connection } from "../../src/store/connection.ts";
import { migrate } from "../../src/store/migrations.ts";
import { countReadings, pruneReadings } from "../../src/store/pruneReadings.ts";
import { putReadings } from "../../src/store/readings.ts";
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

test("while nobody confirms the clock nothing is too old and nothing is thinned, but what is too many goes", () => {
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
