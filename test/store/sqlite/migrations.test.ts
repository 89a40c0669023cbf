import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { headSeal } from "../../../src/domain/audit.ts";
import type { Change } from "../../../src/domain/changes.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { migrate, MIGRATIONS } from "../../../src/store/sqlite/migrations.ts";
import { sumOf } from "../../../src/store/sqlite/auditRows.ts";
import { aDirectory, open, opened } from "./state.ts";
import { commandRecord, NOON, row, tombstone } from "./words.ts";

/** Every schema that some setpointd wrote, oldest first. */
const SCHEMAS = MIGRATIONS.map((_, index) => index + 1);

/** From this schema on bodies are signed, and the head with the epoch. */
const FIRST_SIGNED = 5;

/** From this schema on the hash of a row is stored as bytes. */
const FIRST_DIGEST = 12;

/** Up to this schema the newest row stands for the mark of the last evaluation, after an orderly stop. */
const LAST_UNMARKED = 13;

/** Head, epoch and sums as they were before. */
function unsigned(database: DatabaseSync, directory: string): void {
  const siteKey = readFileSync(join(directory, "site.key"));
  const stored = database.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.["value"];
  const [seq = "", hash = "", epoch] = String(stored).split(" ");
  const head = `${seq} ${hash} ${headSeal(siteKey, Number(seq), hash)}`;
  database.prepare("UPDATE meta SET value = ? WHERE name = 'head'").run(head);
  writeFileSync(join(directory, "epoch"), `${Number(epoch)}\n`);
  writeFileSync(join(directory, "head"), head);
  for (const { id, body } of database.prepare("SELECT id, body FROM event").all())
    database
      .prepare("UPDATE event SET sum = ? WHERE id = ?")
      .run(sumOf("event", String(id), String(body)), String(id));
}

/** What today's program wrote, taken back to the tables of an earlier schema: the rows are as that program wrote them. */
async function stateAt(schema: number, last: readonly Change[] = []): Promise<string> {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write([
    row("from before the upgrade"),
    { kind: "event", known: tombstone("EV-1") },
    { kind: "command", record: commandRecord("bay-01", 1) },
    ...last,
  ]);
  await store.durable();
  store[Symbol.dispose]();
  const today = join(directory, "setpointd.db");
  const earlier = new DatabaseSync(`${today}.earlier`);
  expect(migrate(earlier, MIGRATIONS.slice(0, schema))).toBeNull();
  earlier.exec(`ATTACH '${today}' AS today`);
  for (const { name } of earlier.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table'").all())
    if (name !== "meta") {
      const columns = earlier.prepare(`SELECT name FROM pragma_table_info('${String(name)}', 'main')`).all();
      const list = columns.map((column) => column["name"]).join();
      earlier.exec(`INSERT INTO main.${String(name)} (${list}) SELECT ${list} FROM today.${String(name)}`);
    }
  if (schema < FIRST_DIGEST)
    earlier.exec(
      "UPDATE main.audit SET hash = (SELECT lower(hex(digest)) FROM today.audit AS a WHERE a.seq = main.audit.seq)",
    );
  earlier.exec("INSERT INTO main.meta SELECT * FROM today.meta WHERE name NOT IN ('schema')");
  earlier.exec("DETACH today");
  if (schema < FIRST_SIGNED) unsigned(earlier, directory);
  earlier.close();
  rmSync(`${today}-wal`, { force: true });
  renameSync(`${today}.earlier`, today);
  return directory;
}

test.for(SCHEMAS)(
  "a state of schema %d is brought up to today's with all that is in it (F13)",
  async (schema) => {
    const directory = await stateAt(schema);
    const { store, storedState: remembered, setAside } = opened(directory);
    expect(setAside).toBeNull();
    expect(store.reads.events.event(eventId("EV-1"))).toEqual(tombstone("EV-1"));
    expect(remembered).toMatchObject({
      events: [{ kind: "over", was: "withdrawn", id: "EV-1" }],
      commands: [commandRecord("bay-01", 1)],
      duties: [],
    });
    const isUpgrade = schema < FIRST_SIGNED;
    expect(store.reads.verify()).toMatchObject({ ok: true, rows: isUpgrade ? 2 : 1 });
    store.write([row("from after it")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(store.reads.verify()).toMatchObject({ ok: true, rows: isUpgrade ? 3 : 2 });
    const all = store.reads.audit({});
    expect(all.every(({ hash }) => /^[0-9a-f]{64}$/.test(hash))).toBe(true);
    expect(store.reads.hashes(all.map(({ seq }) => seq))).toEqual(
      new Map(all.map(({ seq, hash }) => [seq, hash])),
    );
    store[Symbol.dispose]();
    expect(
      opened(directory)
        .store.reads.audit({})
        .map(({ words }) => words),
    ).toEqual([
      "from before the upgrade",
      ...(isUpgrade ? [expect.stringContaining("written by an earlier version: its 1 stored events")] : []),
      "from after it",
    ]);
  },
);

test.for([1, LAST_UNMARKED])(
  "windows that a state of schema %d covers are not missed after an upgrade, where its last run stopped in order (F13)",
  async (schema) => {
    const [marked, later] = [NOON, instant(NOON + 60_000)];
    const evaluatedAt = async (...last: readonly Change[]) =>
      opened(await stateAt(schema, last)).storedState.evaluatedAt;
    const stopped = row("setpointd stopped", { at: later, kind: "daemon" });
    expect(await evaluatedAt(stopped)).toBe(later);
    expect(await evaluatedAt({ kind: "evaluated", at: marked }, stopped)).toBe(later);
    // The clock was set back since the mark.
    expect(await evaluatedAt({ kind: "evaluated", at: instant(later + 1) }, stopped)).toBe(later + 1);
    // A crash may have come before the evaluation of the newest rows.
    expect(await evaluatedAt({ kind: "evaluated", at: marked }, row("an event is new", { at: later }))).toBe(
      marked,
    );
  },
);

test("a verb that only looks leaves the state of an earlier version to it, and says which is needed (F13)", async () => {
  const directory = await stateAt(SCHEMAS.length - 1);
  const schema = () => {
    using database = new DatabaseSync(join(directory, "setpointd.db"));
    return database.prepare("PRAGMA user_version").get()?.["user_version"];
  };
  expect(open(directory, { damaged: "refuse", older: "refuse" })).toEqual({
    ok: false,
    reason: expect.stringContaining(`was written by an older setpointd (schema ${SCHEMAS.length - 1};`),
  });
  expect(schema()).toBe(SCHEMAS.length - 1);
  opened(directory).store[Symbol.dispose]();
  expect(schema()).toBe(SCHEMAS.length);
  expect(open(directory, { damaged: "refuse", older: "refuse" }).ok).toBe(true);
});

test("an older program refuses a newer state in one sentence and leaves it as it is (F13)", async () => {
  const directory = await stateAt(SCHEMAS.length);
  const database = new DatabaseSync(join(directory, "setpointd.db"));
  const newer = SCHEMAS.length + 1;
  database.exec(`UPDATE meta SET value = '${newer}' WHERE name = 'schema'; PRAGMA user_version = ${newer}`);
  database.close();
  expect(open(directory)).toEqual({
    ok: false,
    reason: `this state was written by a newer setpointd (schema ${newer}; this one knows up to ${SCHEMAS.length}): start the newer one`,
  });
  const again = new DatabaseSync(join(directory, "setpointd.db"));
  expect(again.prepare("SELECT count(*) AS n FROM event").get()).toEqual({ n: 1 });
  again.close();
});
