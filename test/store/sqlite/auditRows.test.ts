import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { expect, test } from "vitest";

import type { Change } from "../../../src/domain/changes.ts";

import { instant, minutes } from "../../../src/domain/units.ts";
import { queryAudit } from "../../../src/store/sqlite/auditRows.ts";
import { migrate } from "../../../src/store/sqlite/migrations.ts";
import type { SqliteStore } from "../../../src/store/sqlite/store.ts";
import { aDirectory, opened } from "./state.ts";
import { NOON, row } from "./words.ts";

/** Rows a minute apart from noon on. */
const rows = (count: number, words = "row"): Change[] =>
  Array.from({ length: count }, (_, n) => row(`${words} ${n + 1}`, { at: instant(NOON + n * minutes(1)) }));

/** Prunes one step as the flow does; answers how many rows went. */
async function prune(store: SqliteStore, query: Parameters<SqliteStore["oldRows"]>[0]): Promise<number> {
  const old = store.reads.oldRows(query);
  if (old === null) return 0;
  const { through, hash } = old;
  store.write([
    row("pruned", { kind: "checkpoint", facts: { through, hash }, at: instant(NOON + minutes(1e6)) }),
    { kind: "auditPruned", through },
  ]);
  expect(await store.durable()).toEqual({ ok: true });
  return old.rows;
}

const seqs = (store: SqliteStore): readonly number[] =>
  store.reads.audit({ limit: 1e6 }).map(({ seq }) => seq);

test("only rows older than asked go, in steps, and the record verifies after each of them and after a restart (S8)", async () => {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write(rows(30));
  await store.durable();
  const query = { before: instant(NOON + minutes(25)), maxRows: 1000, most: 10 };
  expect(store.reads.oldRows({ ...query, before: NOON })).toBeNull();
  for (const [gone, first] of [
    [10, 11],
    [10, 21],
    [5, 26],
    [0, 26],
  ]) {
    expect(await prune(store, query)).toBe(gone);
    expect(seqs(store)[0]).toBe(first);
    expect(store.reads.verify()).toMatchObject({ ok: true, rows: seqs(store).length });
  }
  store[Symbol.dispose]();
  const again = opened(directory);
  expect([again.setAside, again.store.reads.verify()]).toMatchObject([null, { ok: true, rows: 8 }]);
});

test("a pruned record whose first rows were taken away afterwards is found (S8)", async () => {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write(rows(30));
  await store.durable();
  await prune(store, { before: instant(NOON + minutes(25)), maxRows: 1000, most: 10 });
  store[Symbol.dispose]();
  const database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec("DELETE FROM audit WHERE seq <= 12");
  database.close();
  expect(opened(directory).setAside).not.toBeNull();
});

test("filled, pruned and filled again the database is as large as before (S10)", async () => {
  const directory = aDirectory();
  const sizes: number[] = [];
  const words = "as long as what is said of a decision usually is, with its reason and its limits ".repeat(3);
  for (let round = 0; round < 4; round += 1) {
    const { store } = opened(directory);
    for (let turn = 0; turn < 4; turn += 1) {
      store.write(rows(500, words));
      await store.durable();
    }
    while ((await prune(store, { before: null, maxRows: 500, most: 500 })) > 0);
    store[Symbol.dispose]();
    sizes.push(statSync(join(directory, "setpointd.db")).size);
  }
  const [first = 0, , , last = 0] = sizes;
  expect(last).toBeLessThan(first * 1.3);
});

/** Notes the plan of each statement. */
class Planned extends DatabaseSync {
  readonly plans: string[] = [];

  override prepare(sql: string): StatementSync {
    const plan = super.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    this.plans.push(plan.map(({ detail }) => String(detail)).join("; "));
    return super.prepare(sql);
  }
}

test("a question for a rare kind of rows reads none of the many decisions and outcomes", () => {
  using database = new Planned(":memory:");
  expect(migrate(database)).toBeNull();
  database.exec(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
     INSERT INTO audit (seq, at, kind, words, facts, hash)
     SELECT i, i, CASE WHEN i = 5 THEN 'operator' WHEN i % 2 THEN 'decision' ELSE 'outcome' END, 'row', 'null', '' FROM n`,
  );
  for (const newest of [true, false])
    expect(queryAudit(database, { kind: "operator", newest }).map(({ seq }) => seq)).toEqual([5]);
  expect(queryAudit(database, { kind: "decision", limit: 2 }).map(({ seq }) => seq)).toEqual([1, 3]);
  const used = database.plans.slice(-3).map((plan) => plan.includes("audit_rare"));
  expect(used).toEqual([true, true, false]);
});
