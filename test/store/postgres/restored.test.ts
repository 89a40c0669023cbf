import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { openOffline } from "../../../src/daemon/offline.ts";
import type { Change } from "../../../src/domain/changes.ts";
import type { CommandRecord } from "../../../src/domain/command.ts";
import { RESTORED } from "../../../src/domain/leadership.ts";
import { millis } from "../../../src/domain/units.ts";
import { Gate } from "../../support/aGate.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { aDirectory } from "../sqlite/state.ts";
import { commandRecord, NOON, row } from "../sqlite/words.ts";
import { aCluster, openedSite } from "./state.ts";

const limit = (charger: string): Change => ({ kind: "command", record: commandRecord(charger, 1) });

const release = (charger: string): Change => {
  const record = commandRecord(charger, 1);
  return {
    kind: "command",
    record: { ...record, command: { ...record.command, desired: { kind: "release" } } },
  };
};

const chargersOf = (commands: readonly CommandRecord[]) => commands.map(({ command }) => command.charger);

const TABLES = ["site", "body", "audit"];

describe.skipIf(postgresMissing() !== null)("a database that was restored", () => {
  const cluster = aCluster();
  const sql = async (...statements: readonly string[]): Promise<void> => {
    const client = new Client(cluster().url);
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  };
  const backUp = () =>
    sql(
      "DROP SCHEMA IF EXISTS backup CASCADE",
      "CREATE SCHEMA backup",
      ...TABLES.map((table) => `CREATE TABLE backup.${table} AS TABLE setpointd.${table}`),
    );
  const restore = () =>
    sql(
      "BEGIN",
      ...TABLES.flatMap((table) => [
        `DELETE FROM setpointd.${table}`,
        `INSERT INTO setpointd.${table} OVERRIDING SYSTEM VALUE SELECT * FROM backup.${table}`,
      ]),
      "COMMIT",
      "UPDATE setpointd.site SET lease_until = clock_timestamp()",
    );

  test("is noticed by the next start on a machine that led: releases from before count no more, then and later", async () => {
    const open = openedSite(cluster);
    const first = await open();
    first.store.write([row("1"), release("bay-01"), limit("bay-02")]);
    await first.store.durable();
    await backUp();
    first.store.write([row("2"), limit("bay-01")]);
    await first.store.durable();
    await first.store[Symbol.asyncDispose]();
    const same = await open();
    expect([same.isRestored, same.assertAll]).toEqual([false, false]);
    await same.store[Symbol.asyncDispose]();
    await restore();

    const second = await open();
    expect([second.isRestored, second.assertAll]).toEqual([true, true]);
    expect(chargersOf(second.storedState.commands)).toEqual(["bay-02"]);
    second.store.write([row("other 2")]);
    await second.store.durable();
    await second.store[Symbol.asyncDispose]();
    const third = await open();
    expect([third.isRestored, third.assertAll]).toEqual([false, true]);
    expect(chargersOf(third.storedState.commands)).toEqual(["bay-02"]);
    expect(await third.store.verify()).toMatchObject({ ok: true, rows: 2 });
  });

  test("is left to the daemon by a verb that is used first: it puts the restore on record", async () => {
    const open = openedSite(cluster);
    const [site, directory] = ["verified", aDirectory()];
    const first = await open({ site, directory });
    first.store.write([release("bay-01"), limit("bay-02")]);
    await first.store.durable();
    await backUp();
    first.store.write([row("1")]);
    await first.store.durable();
    await first.store[Symbol.asyncDispose]();
    await restore();

    const url = () => cluster().url;
    const verb = await openOffline(
      {
        state: directory,
        keys: { site: null, proof: null },
        database: { url, schema: "setpointd", siteKeys: null, lease: millis(10_000) },
        site: { id: site, timezone: "UTC", board: [], maintenance: [] },
      },
      { now: () => NOON, randomBytes, log: pino({ level: "silent" }) },
    );
    if (!verb.ok) throw new Error(verb.reason);
    expect([verb.isRestored, verb.assertAll]).toEqual([false, true]);
    expect(chargersOf(verb.storedState.commands)).toEqual(["bay-02"]);
    verb.store.write([row("of the verb")]);
    await verb.store.durable();
    await verb.store[Symbol.asyncDispose]();
    const daemon = await open({ site, directory });
    expect([daemon.isRestored, daemon.assertAll]).toEqual([true, true]);
    expect(chargersOf(daemon.storedState.commands)).toEqual(["bay-02"]);
    await daemon.store[Symbol.asyncDispose]();
    expect((await open({ site, directory })).isRestored).toBe(false);
  });

  test("is noticed where another machine has led on: its row of that number is another one", async () => {
    const open = openedSite(cluster);
    const keys = { siteKeys: () => [Buffer.alloc(32, 7)] };
    const first = await open(keys);
    await backUp();
    first.store.write([row("1")]);
    await first.store.durable();
    await first.store[Symbol.asyncDispose]();
    await restore();
    const other = await open({ ...keys, directory: aDirectory() });
    expect(other.isRestored).toBe(false);
    other.store.write([row("other 1"), row("other 2")]);
    await other.store.durable();
    await other.store[Symbol.asyncDispose]();
    const again = await open(keys);
    expect(again.isRestored).toBe(true);
    again.store.write([row("3")]);
    await again.store.durable();
    await again.store[Symbol.asyncDispose]();
    expect((await open(keys)).isRestored).toBe(false);
  });

  test("is noticed by a stand-in that saw the leader, and once for all machines", async () => {
    const open = openedSite(cluster);
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const keys = { siteKeys: () => [Buffer.alloc(32, 7)], length: 2_000 };
    const first = await open({ ...keys, url: () => cluster().url.replace(/:\d+\//, `:${gate.port}/`) });
    await backUp();
    first.store.write([row("1"), row("2")]);
    await first.store.durable();
    const { signal } = new AbortController();
    let seen = 0;
    const next = open({
      ...keys,
      directory: aDirectory(),
      process: "second",
      standBy: { signal, everyMs: 50, onSeen: () => (seen += 1) },
    });
    // The head is read before it.
    await waitFor(() => seen >= 2);
    await gate.shut();
    await restore();
    const second = await next;
    expect(second.isRestored).toBe(true);
    second.store.write([row("other 1")]);
    await second.store.durable();
    await second.store[Symbol.asyncDispose]();
    await gate.open();
    await waitFor(() => first.leadership?.state === "lost");
    await first.store[Symbol.asyncDispose]();
    const again = await open(keys);
    expect([again.isRestored, again.assertAll]).toEqual([false, true]);
  });

  test.each(["behind this term", "before this term"])(
    "under its leader (%s) ends the term at the next commit, and the next leader knows, on any machine",
    async (when) => {
      const open = openedSite(cluster);
      const keys = { siteKeys: () => [Buffer.alloc(32, 7)] };
      const before = await open(keys);
      if (when === "before this term") await backUp();
      await before.store[Symbol.asyncDispose]();
      const first = await open(keys);
      if (when === "behind this term") await backUp();
      first.store.write([row("1")]);
      await first.store.durable();
      await restore();
      first.store.write([row("2")]);
      expect(await first.store.durable()).toMatchObject({ reason: RESTORED });
      const second = await open({ ...keys, directory: aDirectory() });
      expect([second.isRestored, second.assertAll]).toEqual([true, true]);
      await second.store[Symbol.asyncDispose]();
      expect((await open(keys)).isRestored).toBe(false);
    },
  );

  test("while a commit is on its way ends the term: control is ahead of what is stored", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const open = openedSite(cluster);
    const first = await open({ url: () => cluster().url.replace(/:\d+\//, `:${gate.port}/`) });
    await backUp();
    for (const text of ["1", "2"]) {
      first.store.write([row(text), limit("bay-01")]);
      await first.store.durable();
    }
    gate.hold("in");
    first.store.write([row("3")]);
    const answer = first.store.durable();
    await restore();
    await gate.shut();
    gate.free();
    await gate.open();
    expect(await answer).toMatchObject({ ok: false });
    expect(first.leadership?.state).toBe("lost");
    await first.store[Symbol.asyncDispose]();
    const { signal } = new AbortController();
    const second = await open({ standBy: { signal, everyMs: 50 }, length: 1_000 });
    expect([second.isRestored, second.assertAll]).toEqual([true, true]);
  });
});
