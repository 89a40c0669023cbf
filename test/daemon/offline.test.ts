import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { retentionOf, retentionSection } from "../../src/config/sections/retention.ts";
import { keysInDatabase, openOffline, recordInFleet, recordOfFleet } from "../../src/daemon/offline.ts";
import { between, hours, type Instant, instant, minutes, seconds } from "../../src/domain/units.ts";
import { postgresMissing } from "../support/postgres.ts";
import { aCluster } from "../store/postgres/state.ts";
import { aDirectory } from "../store/sqlite/state.ts";
import { NOON } from "../store/sqlite/words.ts";

const days = (count: number) => hours(24 * count);

describe.skipIf(postgresMissing() !== null)("the record of a fleet", () => {
  const cluster = aCluster();
  const machine = { now: () => NOON, randomBytes, log: pino({ level: "silent" }) };
  const act = { at: NOON, message: "kari signed in", facts: { by: "kari" } };
  const acts = (at: Instant, count: number) => Array.from({ length: count }, () => ({ ...act, at }));
  /** A fleet with a lease of minutes. */
  const sharedBy = (schema: string) => ({
    site: { id: "", timezone: "UTC", board: [], maintenance: [] },
    state: aDirectory(),
    keys: { site: null, proof: null },
    database: {
      url: () => cluster().url,
      schema,
      siteKeys: () => [Buffer.alloc(32, 7)],
      lease: minutes(5),
    },
    retention: retentionOf(retentionSection.parse({ audit: "8d" }), 0, true),
  });

  test("what several people change at once is on record within seconds, also with a lease of minutes", async () => {
    const shared = sharedBy("many");
    const stored = await Promise.all(Array.from({ length: 4 }, () => recordInFleet(shared, machine, [act])));
    expect(stored).toEqual([null, null, null, null]);
  });

  test("a verb that needs the keys of a site makes neither them nor a schema, and reads those of the first start", async () => {
    const shared = { ...sharedBy("planned"), site: { ...sharedBy("planned").site, id: "depot" } };
    const keys = () => keysInDatabase(shared, machine);
    const missing = { ok: false, reason: expect.stringContaining("the first start of setpointd") };
    expect([await keys(), await keys()]).toEqual([missing, missing]);
    expect(await openOffline(shared, machine)).toMatchObject({ ok: false, isMissing: true });
    const opened = await openOffline(shared, machine, { create: true });
    if (!opened.ok) throw new Error(opened.reason);
    await using _store = opened.store;
    expect(await keys()).toMatchObject({ ok: true, siteKey: opened.siteKey });
    const database = { ...shared.database, siteKeys: () => [Buffer.alloc(32, 8)] };
    expect(await keysInDatabase({ ...shared, database }, machine)).toMatchObject({
      ok: false,
      reason: expect.stringContaining("another key of the operator"),
    });
  });

  test("a process that has it open is named; one that was killed meanwhile delays others for less than they wait", async () => {
    const shared = sharedBy("held");
    const opened = await openOffline(recordOfFleet(shared), machine, { create: true });
    if (!opened.ok) throw new Error(opened.reason);
    await using store = opened.store;
    const { leaseUntil } = opened.leadership?.view(NOON) ?? { leaseUntil: NOON };
    expect(between(NOON, leaseUntil)).toBeLessThanOrEqual(seconds(5));
    expect(await recordInFleet(shared, machine, [act], 500)).toBe(
      `${hostname()} ${process.pid} (record) has the record of the fleet open: it was not free for 0.5 s`,
    );
    expect(await store.audit({})).toEqual([]);
  });

  test("a database that is away is the reason, not the end of the wait", async () => {
    const shared = sharedBy("away");
    const database = { ...shared.database, url: () => "postgres://setpointd@127.0.0.1:1/none" };
    expect(await recordInFleet({ ...shared, database }, machine, [act], 500)).toMatch(
      /^state\.postgres\.url: database: .*ECONNREFUSED/,
    );
  });

  test("rows that are too old are pruned by a hundred, unless a clock that is wrong makes them old; the record stays whole", async () => {
    const shared = sharedBy("old");
    const record = async (now: Instant, count: number): Promise<readonly string[]> => {
      expect(await recordInFleet(shared, { ...machine, now: () => now }, acts(now, count))).toBeNull();
      const opened = await openOffline(recordOfFleet(shared), machine);
      if (!opened.ok) throw new Error(opened.reason);
      await using store = opened.store;
      expect(await store.verify()).toMatchObject({ ok: true });
      return (await store.audit({ limit: 1_000 })).map(({ kind }) => kind);
    };
    const today = instant(Date.now());
    const old = instant(today - days(9));
    expect(await record(old, 120)).toHaveLength(120);
    // The clock of this machine is a year behind, then a year ahead of that of the database.
    expect(await record(instant(today - days(365)), 1)).toHaveLength(121);
    expect(await record(today, 1)).toEqual([...Array(22).fill("operator"), "checkpoint"]);
    expect(await record(instant(today + days(365)), 100)).toHaveLength(123);
  });
});
