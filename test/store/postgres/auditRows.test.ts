import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";

import { acknowledgement, type AuditEntry } from "../../../src/domain/audit.ts";
import type { Store } from "../../../src/domain/store.ts";
import { after, chargerId, eventId, minutes } from "../../../src/domain/units.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { commandRecord, NOON, row } from "../sqlite/words.ts";
import { aCluster, openedSite } from "./state.ts";

const bay = chargerId("bay-01");
const event = eventId("EV-1");
const minute = (count: number) => after(NOON, minutes(count));
const at = (count: number, words: string, more: Partial<AuditEntry>) =>
  row(words, { at: minute(count), ...more });
const acknowledged = (count: number, command: string) =>
  at(count, "acknowledged", {
    kind: "outcome",
    event,
    command,
    charger: bay,
    facts: { progress: "acknowledged" },
  });
const outage = (count: number, words: string, over: boolean) =>
  at(count, words, { kind: "silence", facts: { outage: "broker", over } });

const stored = async (store: Store, ...changes: Parameters<Store["write"]>[0]): Promise<void> => {
  store.write(changes);
  expect(await store.durable()).toEqual({ ok: true });
};

describe.skipIf(postgresMissing() !== null)("PostgreSQL", () => {
  const cluster = aCluster();

  test("two sites with the same names of chargers and events share nothing: outages, writes, proofs", async () => {
    const [openOne, openTwo] = [openedSite(cluster), openedSite(cluster)];
    const [one, two] = [await openOne(), await openTwo()];
    const decision = at(3, "EV-1 to 16 A", {
      event,
      charger: bay,
      command: "7-1",
      facts: { winner: { event }, overruled: [] },
    });
    await stored(
      one.store,
      at(0, "one starts", { kind: "daemon" }),
      outage(1, "the broker of one is away", false),
    );
    await stored(
      two.store,
      at(0, "two starts", { kind: "daemon" }),
      at(1, "two goes on", { kind: "daemon" }),
    );
    await stored(one.store, decision, acknowledged(4, "7-1"));
    await stored(two.store, decision, acknowledged(5, "7-1"), acknowledged(6, "7-2"));
    for (const minutes of [6, 7])
      await stored(two.store, at(minutes, `rejected at ${minutes}`, { kind: "rejected" }));
    const rows = async (store: Store) => {
      const found = await store.eventRows(event, minute(10));
      if (!found.ok) return `row ${found.seq} was changed`;
      return (await store.recordRows(found.seqs)).map(({ words }) => words);
    };
    expect(await rows(one.store)).toEqual(["the broker of one is away", "EV-1 to 16 A", "acknowledged"]);
    expect(await rows(two.store)).toEqual(["EV-1 to 16 A", "acknowledged", "acknowledged"]);
    await one.store[Symbol.asyncDispose]();
    await two.store[Symbol.asyncDispose]();
    const [first, second] = [
      await openOne({ now: () => minute(10) }),
      await openTwo({ now: () => minute(10) }),
    ];
    expect(first.lastRun.openOutages().map(({ words }) => words)).toEqual(["the broker of one is away"]);
    expect(second.lastRun.openOutages()).toEqual([]);
    expect(first.lastRun.rejected()).toEqual([]);
    expect(second.lastRun.rejected().map(({ words }) => words)).toEqual(["rejected at 7", "rejected at 6"]);
    expect(first.lastRun.writes(bay, minute(0))).toEqual([minute(4)]);
    expect(second.lastRun.writes(bay, minute(0))).toEqual([minute(5), minute(6)]);
  });

  test("a shared row that is larger than a page is read in parts, in both directions", async () => {
    const { store } = await openedSite(cluster)();
    const records = [1, 2, 3].map((seq) => commandRecord(`bay-${seq}`, seq));
    await stored(
      store,
      ...records.map(({ command }) => ({
        kind: "audit" as const,
        entry: acknowledgement(command, NOON, minute(command.seq)),
      })),
    );
    const commands = async (query: Parameters<Store["audit"]>[0]) =>
      (await store.audit({ limit: 2, ...query })).map(({ seq, command, part }) => [seq, command, part]);
    expect(await commands({})).toEqual([
      [1, "7-1", undefined],
      [1, "7-2", 2],
    ]);
    expect(await commands({ after: 1, part: 2 })).toEqual([[1, "7-3", undefined]]);
    expect(await commands({ newest: true })).toEqual([
      [1, "7-3", undefined],
      [1, "7-2", 2],
    ]);
    expect(await commands({ newest: true, before: 1, beforePart: 2 })).toEqual([[1, "7-1", undefined]]);
  });

  test("an outage that has ended is none at the next start", async () => {
    const open = openedSite(cluster);
    const { store } = await open();
    await stored(store, outage(1, "away", false), outage(2, "back", true));
    await store[Symbol.asyncDispose]();
    expect((await open()).lastRun.openOutages()).toEqual([]);
  });

  test("a record whose head another program wrote does not verify, and is not continued", async () => {
    const client = new Client(cluster().url);
    await client.connect();
    onTestFinished(() => client.end());
    const [open, other] = [openedSite(cluster), openedSite(cluster)];
    const [{ store }, { store: foreign }] = [await open(), await other()];
    for (const each of [store, foreign]) await stored(each, row(`row ${randomUUID()}`));
    await client.query(
      `UPDATE setpointd.site SET sealed = (SELECT sealed FROM setpointd.site WHERE id = $1) WHERE id = $2`,
      [foreign.site, store.site],
    );
    expect(await store.verify()).toMatchObject({
      ok: false,
      reason: "its head was not written with this site key",
    });
    await store[Symbol.asyncDispose]();
    await expect(open()).rejects.toThrow("its head was not written with this site key");
  });
});
