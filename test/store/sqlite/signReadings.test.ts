import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { after, chargerId, millis, minutes } from "../../../src/domain/units.ts";
import { readingsOf } from "../../../src/reporting/reading.ts";
import { connection } from "../../../src/store/sqlite/connection.ts";
import { migrate } from "../../../src/store/sqlite/migrations.ts";
import {
  putReadings,
  queryReadings,
  signReadings,
  upgradeReadings,
  unsignedThrough,
} from "../../../src/store/sqlite/readings.ts";
import { NOON } from "./words.ts";

const KEY = Buffer.alloc(32, 7);
const bay = chargerId("bay-01");

/** Readings of ten minutes as an earlier version left them. */
function earlier() {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  const readings = Array.from({ length: 600 }, (_, n) => after(NOON, millis(n * 1000))).flatMap((at) =>
    readingsOf({ charger: bay, vehicle: null }, { at, powerW: 7000 }, at, null),
  );
  putReadings(database, KEY, readings);
  database.exec("UPDATE reading SET mac = NULL");
  const open = connection(database);
  const found = (): number =>
    queryReadings(
      open,
      { trust: { siteKey: KEY, unsignedThrough: unsignedThrough(open, KEY) }, onForeign: () => {} },
      [bay],
      NOON,
      after(NOON, minutes(20)),
    ).length;
  const unsigned = (): unknown =>
    database.prepare("SELECT count(*) AS rows FROM reading WHERE mac IS NULL").get()?.["rows"];
  return { database, open, found, unsigned };
}

test("readings of an earlier version count as they are, and are signed a little at a time", () => {
  const { open, found, unsigned } = earlier();
  expect(found()).toBe(0);
  upgradeReadings(open, KEY);
  expect(found()).toBe(600);
  for (let step = 0; step < 10; step += 1) signReadings(open, KEY);
  expect([found(), unsigned(), unsignedThrough(open, KEY)]).toEqual([600, 0, null]);
  // From then on none passes without.
  open.database.exec("UPDATE reading SET mac = NULL WHERE at = (SELECT min(at) FROM reading)");
  signReadings(open, KEY);
  expect(found()).toBe(599);
});

test("which readings are from before is not for anyone to choose", () => {
  const { open, found } = earlier();
  upgradeReadings(open, KEY);
  const minute = Number(unsignedThrough(open, KEY));
  open.database.exec(
    `UPDATE meta SET value = replace(value, '${minute}', '${minute + 10}') WHERE name = 'readingsBefore'`,
  );
  expect([unsignedThrough(open, KEY), found()]).toEqual([null, 0]);
});

test("without readings there is nothing to take over", () => {
  const { database, open } = earlier();
  database.exec("DELETE FROM reading");
  upgradeReadings(open, KEY);
  expect(unsignedThrough(open, KEY)).toBeNull();
});
