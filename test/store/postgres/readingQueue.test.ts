import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { readingsOf } from "../../../src/reporting/reading.ts";
import { after, chargerId, millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { ReadingQueue } from "../../../src/store/postgres/readingQueue.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { NOON } from "../sqlite/words.ts";
import { aFleetOf } from "./fleetRows.ts";
import { aCluster } from "./state.ts";

const bay = chargerId("bay-01");
const bus = vehicleId("veh-214");
const END = after(NOON, minutes(60));
const power = (second: number) => {
  const at = after(NOON, millis(second * 1000));
  return readingsOf({ charger: bay, vehicle: bus }, { at, powerW: second }, at, null);
};

test("a reading costs the same however many wait while the database is away", async () => {
  const log = pino({ level: "silent" });
  await using database = new Database({
    url: () => "postgres://setpointd@127.0.0.1:1/none",
    schema: "public",
    patience: 10_000,
    log,
  });
  const queue = new ReadingQueue({ database, site: "a", siteKey: randomBytes(32) }, 0, log, () => {});
  const one = power(0);
  const began = performance.now();
  for (let count = 0; count < 90_000; count += 1) queue.add(one);
  const took = performance.now() - began;
  queue.abandon();
  expect(took).toBeLessThan(1_000);
});

const of = (queue: ReadingQueue, charger: typeof bay, from = NOON) =>
  queue.of([{ chargers: [charger], from, until: END }], async () => {});

describe.skipIf(postgresMissing() !== null)("readings that wait for PostgreSQL", () => {
  const cluster = aCluster();

  test("readings that cannot be stored stay, can be asked for, are logged once, and are stored later", async () => {
    const { sites, database, sql } = await aFleetOf(cluster());
    await sites.put([{ site: "a", file: "{}", vehicles: [] }]);
    const logged: string[] = [];
    let stored = 0;
    const queue = new ReadingQueue(
      { database, site: "a", siteKey: randomBytes(32) },
      0,
      pino({}, { write: (line) => void logged.push(line) }),
      () => (stored += 1),
    );
    const known = async () => ({
      times: (await of(queue, bay)).map(({ at }) => at),
      rows: (await sql("SELECT 1 FROM reading")).length,
    });
    queue.add(power(0));
    queue.add([]);
    expect(await known()).toEqual({ times: [NOON], rows: 0 });
    expect(await of(queue, chargerId("bay-02"))).toEqual([]);
    expect(await of(queue, bay, after(NOON, millis(1)))).toEqual([]);
    expect(await queue.seats(bus, [{ from: NOON, until: END }])).toEqual([[bay]]);
    expect(await queue.seats(vehicleId("veh-9"), [{ from: NOON, until: END }])).toEqual([[]]);
    await sql("ALTER TABLE reading ADD CONSTRAINT full_disk CHECK (at = 0)");
    await queue[Symbol.asyncDispose]();
    queue.add(power(1));
    await queue[Symbol.asyncDispose]();
    expect(await known()).toEqual({ times: [NOON, NOON + 1000], rows: 0 });
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { msg: "readings cannot be stored", waiting: 1, reason: expect.stringContaining("full_disk") },
    ]);
    await sql("ALTER TABLE reading DROP CONSTRAINT full_disk");
    expect(stored).toBe(0);
    await queue[Symbol.asyncDispose]();
    expect(await known()).toEqual({ times: [NOON, NOON + 1000], rows: 2 });
    expect(stored).toBe(1);
  });

  test("a process that lost the site drops what waits", async () => {
    const { database, sql } = await aFleetOf(cluster());
    const queue = new ReadingQueue(
      { database, site: "a", siteKey: randomBytes(32) },
      0,
      pino({ level: "silent" }),
      () => {},
    );
    queue.add(power(0));
    queue.abandon();
    await queue[Symbol.asyncDispose]();
    expect(await of(queue, bay)).toEqual([]);
    expect(await sql("SELECT 1 FROM reading")).toEqual([]);
  });
});
