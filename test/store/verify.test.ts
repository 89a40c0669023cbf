import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
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
  expect(store.verify()).toMatchObject({ ok: false, seq: 7 });
});

test("a removed row far back is found by a full look", async () => {
  const { store } = await tampered(1500, "DELETE FROM audit WHERE seq = 7");
  expect(store.verify()).toEqual({ ok: false, seq: 7, reason: "row 7 is missing: the next one is 8" });
});

test("a record that lost its beginning without pruning is found", async () => {
  const { store } = await tampered(1500, "DELETE FROM audit WHERE seq <= 7");
  expect(store.verify()).toMatchObject({ ok: false, seq: 1 });
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
  expect(store.audit({})).toMatchObject([{ seq: 1, kind: "daemon" }]);
});

test("a pruned record verifies from its checkpoint on", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  first.store.write(Array.from({ length: 10 }, (_, n) => row(`row ${n + 1}`)));
  await first.store.durable();
  const through = first.store.audit({}).find(({ seq }) => seq === 6);
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
  expect(store.verify()).toMatchObject({ ok: true, rows: 5 });
});

test("a head is of no use to who does not hold the site key: a rewritten end with the old seal is found", async () => {
  const sql =
    "UPDATE meta SET value = replace(value, '0000000000000020', '0000000000000015') WHERE name = 'head'";
  const { setAside } = await tampered(20, `DELETE FROM audit WHERE seq > 15; ${sql}`);
  expect(setAside).not.toBeNull();
});

test("an untouched record verifies, and so does an empty one", async () => {
  const { store } = await tampered(20, "SELECT 1");
  expect(store.verify()).toMatchObject({ ok: true, rows: 20 });
  expect(opened(aDirectory()).store.verify()).toEqual({ ok: true, rows: 0, head: "0".repeat(64) });
});
