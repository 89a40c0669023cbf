import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { chargerId, eventId } from "../../../src/domain/units.ts";
import type { SqliteStore } from "../../../src/store/sqlite/store.ts";
import { aDirectory, opened } from "./state.ts";
import { row } from "./words.ts";

/** A stopped state with this many rows, then changed behind the daemon's back, then opened again. */
async function tampered(rows: number, sql: string) {
  const directory = aDirectory();
  const first = opened(directory);
  first.store.write(Array.from({ length: rows }, (_, n) => row(`row ${n + 1}`)));
  await first.store.durable();
  first.store[Symbol.dispose]();
  const database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec(sql);
  database.close();
  return opened(directory);
}

test("an edited row far back is found by a full look", async () => {
  const { store, setAside } = await tampered(1500, "UPDATE audit SET words = 'nothing' WHERE seq = 7");
  expect(setAside).toBeNull();
  expect(store.reads.verify()).toMatchObject({ ok: false, seq: 7 });
});

test("a removed row far back is found by a full look", async () => {
  const { store } = await tampered(1500, "DELETE FROM audit WHERE seq = 7");
  expect(store.reads.verify()).toEqual({ ok: false, seq: 7, reason: "row 7 is missing: the next one is 8" });
});

test("a record that lost its beginning without pruning is found", async () => {
  const { store } = await tampered(1500, "DELETE FROM audit WHERE seq <= 7");
  expect(store.reads.verify()).toMatchObject({ ok: false, seq: 1 });
});

test("a row that was planted before the first one is found", async () => {
  const columns = "at, kind, charger, vehicle, event, command, words, facts, hash, digest";
  const { store } = await tampered(20, `INSERT INTO audit SELECT -5, ${columns} FROM audit WHERE seq = 7`);
  expect(store.reads.verify()).toEqual({ ok: false, seq: 1, reason: "row 1 is missing: the next one is -5" });
});

test.for([
  ["an edited row near the end", "UPDATE audit SET facts = '1' WHERE seq = 19"],
  ["a removed row near the end", "DELETE FROM audit WHERE seq = 19"],
  ["a cut-off end", "DELETE FROM audit WHERE seq > 15"],
  [
    "a cut-off end with its head taken away",
    "DELETE FROM audit WHERE seq > 15; DELETE FROM meta WHERE name = 'head'",
  ],
  ["an emptied record", "DELETE FROM audit; DELETE FROM meta WHERE name = 'head'"],
])("%s is found at start, and the state is set aside (S8)", async ([, sql]) => {
  const { store, setAside } = await tampered(20, sql ?? "");
  expect(setAside).not.toBeNull();
  expect(store.reads.audit({})).toMatchObject([{ seq: 1, kind: "daemon" }]);
});

test("a pruned record verifies from its checkpoint on", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  first.store.write(Array.from({ length: 10 }, (_, n) => row(`row ${n + 1}`)));
  await first.store.durable();
  const through = first.store.reads.audit({}).find(({ seq }) => seq === 6);
  first.store.write([
    row("pruned", { kind: "checkpoint", facts: { through: 6, hash: through?.hash ?? "" } }),
  ]);
  await first.store.durable();
  first.store[Symbol.dispose]();

  const database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec("DELETE FROM audit WHERE seq <= 6");
  database.close();
  const { store, setAside } = opened(directory);
  expect(setAside).toBeNull();
  expect(store.reads.verify()).toMatchObject({ ok: true, rows: 5 });
});

test("a head is of no use to who does not hold the site key: a rewritten end with the old seal is found", async () => {
  const sql =
    "UPDATE meta SET value = replace(value, '0000000000000020', '0000000000000015') WHERE name = 'head'";
  const { setAside } = await tampered(20, `DELETE FROM audit WHERE seq > 15; ${sql}`);
  expect(setAside).not.toBeNull();
});

/** An index as setpointd made it, by its text, that lacks some rows. */
const blind = (name: string, on: string, where: string, hidden: string): string =>
  `DROP INDEX ${name};
   CREATE INDEX ${name} ON audit (${on}) WHERE ${where} AND NOT (${hidden});
   PRAGMA writable_schema = ON;
   UPDATE sqlite_schema SET sql = replace(sql, ' AND NOT (${hidden.replaceAll("'", "''")})', '') WHERE name = '${name}';`;

test.for([
  ["an event", "audit_event", "event", "event IS NOT NULL"],
  ["a charger", "audit_charger", "charger", "charger IS NOT NULL"],
  ["an outage", "audit_silence", "seq", "kind = 'silence'"],
  ["a kind", "audit_rare", "kind, seq", "kind NOT IN ('decision', 'outcome')"],
] as const)("a row that was hidden from the search for %s is found", async ([, name, on, where]) => {
  const directory = aDirectory();
  const first = opened(directory);
  const named = { kind: "silence", charger: chargerId("bay-01"), event: eventId("EV-1") } as const;
  first.store.write(Array.from({ length: 250 }, (_, n) => row(`row ${n + 1}`, named)));
  await first.store.durable();
  expect(first.store.reads.verify()).toMatchObject({ ok: true, rows: 250 });
  first.store[Symbol.dispose]();
  const database = new DatabaseSync(join(directory, "setpointd.db"), { defensive: false });
  database.exec(blind(name, on, where, "seq = 170"));
  database.close();
  expect(opened(directory).store.reads.verify()).toEqual({
    ok: false,
    seq: 170,
    reason: `row 170 is missing from the index ${name}, so that searches do not find it`,
  });
});

test("an untouched record verifies, and so does an empty one", async () => {
  const { store } = await tampered(20, "SELECT 1");
  expect(store.reads.verify()).toMatchObject({ ok: true, rows: 20 });
  expect(opened(aDirectory()).store.reads.verify()).toEqual({
    ok: true,
    rows: 0,
    readings: 0,
    unsigned: 0,
    head: "0".repeat(64),
  });
});

/** A running state with this many rows. */
async function running(rows: number): Promise<SqliteStore> {
  const { store } = opened(aDirectory());
  await adds(store, rows);
  return store;
}

async function adds(store: SqliteStore, rows: number): Promise<void> {
  store.write(Array.from({ length: rows }, (_, n) => row(`row ${n + 1}`)));
  await store.durable();
}

/** Prunes as the flow does, in one step. */
async function prunes(store: SqliteStore, rows: number): Promise<void> {
  const old = store.reads.oldRows({ before: null, maxRows: 0, most: rows });
  if (old === null) throw new Error("nothing to prune");
  const { through, hash } = old;
  store.write([
    row("pruned", { kind: "checkpoint", facts: { through, hash } }),
    { kind: "auditPruned", through },
  ]);
  await store.durable();
}

/** Follows the record step by step, with something done after the second of them. */
async function verifiedAround(store: SqliteStore, meanwhile: () => Promise<void>) {
  const steps = store.reads.verifying();
  for (let taken = 1; ; taken += 1) {
    const step = steps.next();
    if (step.done === true) return { ...step.value, taken };
    if (taken === 2) await meanwhile();
  }
}

test("a long record is followed in many small steps, so that a daemon can do other work in between", async () => {
  const { taken } = await verifiedAround(await running(3000), async () => {});
  expect(taken).toBeGreaterThan(20);
});

test("rows that are added while the record is followed are followed too", async () => {
  const store = await running(1000);
  expect(await verifiedAround(store, () => adds(store, 500))).toMatchObject({ ok: true, rows: 1500 });
});

test.for([50, 150, 250, 700, 1000])(
  "%i rows pruned while the record is followed are not missed",
  async (rows) => {
    const store = await running(1000);
    expect(await verifiedAround(store, () => prunes(store, rows))).toMatchObject({ ok: true });
    const twice = async (): Promise<void> => {
      await adds(store, 2000);
      await prunes(store, 700);
      await prunes(store, 700);
    };
    expect(await verifiedAround(store, twice)).toMatchObject({ ok: true });
  },
);

test.for(["UPDATE audit SET words = 'nothing' WHERE seq = 900", "DELETE FROM audit WHERE seq = 900"])(
  "an altered row is found although rows are pruned meanwhile: %s",
  async (sql) => {
    const { store } = await tampered(2500, sql);
    expect(await verifiedAround(store, () => prunes(store, 700))).toMatchObject({ ok: false, seq: 900 });
  },
);

test("a reader of the record is notified when the daemon stops, and opens nothing again", async () => {
  const store = await running(1000);
  const stop = async (): Promise<void> => store[Symbol.dispose]();
  await expect(verifiedAround(store, stop)).rejects.toThrow("the store is closed");
});
