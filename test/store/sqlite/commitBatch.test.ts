import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";

import { acknowledgement } from "../../../src/domain/audit.ts";
import type { Change } from "../../../src/domain/changes.ts";
import { chargerId, instant } from "../../../src/domain/units.ts";
import { GENESIS } from "../../../src/store/chain.ts";
import { commitBatch } from "../../../src/store/sqlite/commitBatch.ts";
import { connection } from "../../../src/store/sqlite/connection.ts";
import { migrate } from "../../../src/store/sqlite/migrations.ts";
import { commandRecord, NOON, row } from "./words.ts";

function aDatabase() {
  const database = new DatabaseSync(":memory:");
  onTestFinished(() => database.close());
  expect(migrate(database)).toBeNull();
  const prepared = connection(database);
  const commit = (changes: readonly Change[], start = GENESIS) =>
    commitBatch(prepared, { siteKey: Buffer.alloc(32), epoch: 7 }, start, changes);
  const count = (table: string): unknown =>
    database.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.["count"];
  return { database, commit, count };
}

const acknowledged = (seq: number): Change => ({
  kind: "audit",
  entry: acknowledgement(commandRecord(`bay-${seq}`, seq).command, NOON, instant(NOON + seq)),
});

test("a change that the database refuses leaves nothing of its commit behind", () => {
  const { database, commit, count } = aDatabase();
  database.exec("CREATE TRIGGER full BEFORE INSERT ON command BEGIN SELECT RAISE(ABORT, 'no room'); END");
  expect(() => commit([row("decided"), { kind: "command", record: commandRecord("bay-1", 1) }])).toThrow(
    "no room",
  );
  expect(database.isTransaction).toBe(false);
  expect([count("audit"), count("command")]).toEqual([0, 0]);
});

test("rows go on from the head in order, and acknowledgements side by side share one", () => {
  const { commit, count } = aDatabase();
  const first = commit([row("decided"), acknowledged(1), acknowledged(2), row("started"), acknowledged(3)]);
  expect(first.head.seq).toBe(4);
  expect(first.rows.map(({ seq, charger }) => [seq, charger])).toEqual([
    [1, null],
    [2, "bay-1"],
    [2, "bay-2"],
    [3, null],
    [4, "bay-3"],
  ]);
  expect([count("audit"), count("acknowledged")]).toEqual([4, 2]);
  expect(commit([row("next")], first.head).rows).toMatchObject([{ seq: 5, words: "next" }]);
});

test("a commit without a row leaves the head as it is, and seals nothing", () => {
  const { commit } = aDatabase();
  const { head } = commit([row("decided")]);
  const batch = commit([{ kind: "commandForgotten", charger: chargerId("bay-1") }], head);
  expect(batch).toEqual({ head, sealed: null, rows: [] });
});
