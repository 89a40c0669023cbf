import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { storeEpoch } from "../../../src/store/sqlite/lock.ts";
import { missingStateReason } from "../../../src/store/sqlite/open.ts";
import { aDirectory, open, opened } from "./state.ts";
import { row } from "./words.ts";

const DATABASE = "setpointd.db";

/** One run that adds these rows, stopped in order. */
async function runs(directory: string, ...words: readonly string[]): Promise<void> {
  const { store, setAside } = opened(directory);
  expect(setAside).toBeNull();
  store.write(words.map((each) => row(each)));
  await store.durable();
  store[Symbol.dispose]();
}

/** Edits the stopped database as somebody with the disk can. */
function edited(directory: string, sql: string): void {
  using database = new DatabaseSync(join(directory, DATABASE));
  database.exec(sql);
}

/** The next start: it goes on with a fresh record, whose first row says why. */
function isSetAside(directory: string, reason: string): void {
  expect(open(directory, { damaged: "refuse" })).toMatchObject({
    ok: false,
    reason: expect.stringContaining(reason),
  });
  const { store, setAside, assertAll: unsure } = opened(directory);
  expect(setAside).not.toBeNull();
  expect(unsure).toBe(true);
  expect(store.reads.audit({})).toMatchObject([
    { seq: 1, kind: "daemon", facts: { reason: expect.stringContaining(reason) } },
  ]);
  expect(store.reads.verify()).toMatchObject({ ok: true, rows: 1 });
}

test("a database that was put back to an earlier day is found, also without the witness file", async () => {
  const directory = aDirectory();
  await runs(directory, "monday");
  const monday = join(aDirectory(), DATABASE);
  copyFileSync(join(directory, DATABASE), monday);
  await runs(directory, "tuesday");
  copyFileSync(monday, join(directory, DATABASE));
  rmSync(join(directory, "head"));
  isSetAside(directory, "the database is an older one, last written by run ");
});

test("rows and head of an earlier day in today's database are found", async () => {
  const directory = aDirectory();
  await runs(directory, "monday");
  using before = new DatabaseSync(join(directory, DATABASE));
  const head = String(before.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.["value"]);
  before.close();
  await runs(directory, "tuesday");
  edited(directory, `DELETE FROM audit WHERE seq > 1; UPDATE meta SET value = '${head}' WHERE name = 'head'`);
  rmSync(join(directory, "head"));
  isSetAside(directory, "the database is an older one");
});

test.for([
  [
    "emptied",
    (directory: string) => edited(directory, "DELETE FROM audit; DELETE FROM meta WHERE name = 'head'"),
  ],
  ["deleted", (directory: string) => rmSync(join(directory, DATABASE))],
] as const)("a record that was %s does not start again in silence", async ([, wipe]) => {
  const directory = aDirectory();
  await runs(directory, "a row");
  wipe(directory);
  rmSync(join(directory, "head"));
  if (!existsSync(join(directory, DATABASE)))
    expect(missingStateReason(directory)).toContain("is gone: setpointd has run there");
  isSetAside(directory, "the record was emptied or taken away");
});

test("an epoch file that was edited to fit an older database makes it a restored copy, and marks it so", async () => {
  const directory = aDirectory();
  await runs(directory, "monday");
  await runs(directory, "tuesday");
  writeFileSync(join(directory, "epoch"), "7 is what I say it is\n");
  const { isRestored, assertAll: unsure } = opened(directory);
  expect([isRestored, unsure]).toEqual([true, true]);
});

test("a power cut between head and epoch file is no rollback", async () => {
  const directory = aDirectory();
  await runs(directory, "monday");
  const epoch = readFileSync(join(directory, "epoch"));
  await runs(directory, "tuesday");
  writeFileSync(join(directory, "epoch"), epoch);
  await runs(directory, "wednesday");
});

test("audit verify holds the head against the epoch file as it is now", async () => {
  const directory = aDirectory();
  await runs(directory, "a row");
  const { store, epoch, siteKey } = opened(directory);
  expect(store.reads.verify()).toMatchObject({ ok: true, rows: 1 });
  storeEpoch(directory, siteKey, epoch + 1);
  expect(store.reads.verify()).toMatchObject({
    ok: false,
    reason: expect.stringContaining(`run ${epoch + 1}`),
  });
});

test.for([
  [
    "a trigger",
    "CREATE TRIGGER planted AFTER INSERT ON audit BEGIN DELETE FROM hold; END",
    "trigger planted",
  ],
  ["a view", "CREATE VIEW planted AS SELECT * FROM event", "view planted"],
  ["a table", "CREATE TABLE planted (id TEXT)", "table planted"],
  ["an index", "CREATE INDEX planted ON event (kind)", "index planted"],
  ["a column", "ALTER TABLE hold ADD COLUMN planted TEXT", "table hold of the database was changed"],
  ["a table that is gone", "DROP TABLE seat", "table seat of the database is missing"],
])(
  "%s in the database that setpointd did not make is found before anything is written",
  async ([, sql = "", reason = ""]) => {
    const directory = aDirectory();
    await runs(directory, "a row");
    edited(directory, sql);
    expect(open(directory, { damaged: "refuse" })).toMatchObject({
      ok: false,
      reason: expect.stringContaining(reason),
    });
    const { setAside, store } = opened(directory);
    expect(readdirSync(setAside ?? "")).toContain(DATABASE);
    expect(store.reads.audit({})).toMatchObject([{ facts: { reason: expect.stringContaining(reason) } }]);
  },
);

test("statistics that ANALYZE left are no reason to set a state aside", async () => {
  const directory = aDirectory();
  await runs(directory, "a row");
  edited(directory, "ANALYZE");
  await runs(directory, "another");
});
