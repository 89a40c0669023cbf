import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { Database } from "../../../src/store/postgres/database.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { aCluster } from "./state.ts";

const backends = async (database: Database, count: number): Promise<number> => {
  const rows = await Promise.all(
    Array.from({ length: count }, () => database.query("SELECT pg_backend_pid() AS pid, pg_sleep(0.05)")),
  );
  return new Set(rows.map(([row]) => row?.["pid"])).size;
};

describe.skipIf(postgresMissing() !== null)("connections to PostgreSQL", () => {
  const cluster = aCluster();
  const connect = (connections?: number) =>
    new Database({
      url: () => cluster().url,
      schema: "public",
      patience: 10_000,
      log: pino({ level: "silent" }),
      ...(connections === undefined ? {} : { connections }),
    });

  test("as many connections are used as were asked for, four unless told", async () => {
    await using few = connect(2);
    await using usual = connect();
    expect([await backends(few, 12), await backends(usual, 12)]).toEqual([2, 4]);
  });

  test("a site of many uses the connections of all, and leaves them open when it ends", async () => {
    await using all = connect(2);
    const site = all.borrow();
    await Promise.all([backends(site, 6), backends(all, 6)]);
    const [row] = await all.query(
      "SELECT count(*) AS open FROM pg_stat_activity WHERE application_name = 'setpointd'",
    );
    expect(row?.["open"]).toBe(2);
    await site[Symbol.asyncDispose]();
    expect(await all.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(await site.borrow().query("SELECT 2 AS two")).toEqual([{ two: 2 }]);
  });

  test("of a transaction all statements count, or none, and its connection serves others afterwards", async () => {
    await using database = connect(1);
    await database.query("CREATE TABLE counted (n integer)");
    await expect(
      database.transaction(async (query) => {
        await query("INSERT INTO counted VALUES (1)");
        throw new Error("changed its mind");
      }),
    ).rejects.toThrow("changed its mind");
    expect(await database.query("SELECT n FROM counted")).toEqual([]);
    await database.transaction((query) => query("INSERT INTO counted VALUES (2)"));
    expect(await database.query("SELECT n FROM counted")).toEqual([{ n: 2 }]);
  });
});
