import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { checkSynchronous, quickCheck, settle } from "../../../src/store/sqlite/connection.ts";
import { migrate } from "../../../src/store/sqlite/migrations.ts";
import { aDirectory, open, opened } from "./state.ts";

function aDatabase(): DatabaseSync {
  const database = new DatabaseSync(join(aDirectory(), "x.db"));
  onTestFinished(() => database.close());
  return database;
}

test("a settled database waits for the disk at every commit, read back after a write (2 is FULL)", () => {
  const database = aDatabase();
  expect(settle(database, 1000)).toBeNull();
  database.exec("INSERT INTO meta VALUES ('a', 'b')");
  expect(database.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
  expect(database.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
  expect(database.prepare("PRAGMA locking_mode").get()).toEqual({ locking_mode: "exclusive" });
  expect(checkSynchronous(database)).toBeNull();
  expect(quickCheck(database)).toBeNull();
});

test("a database that does not wait for the disk is refused", () => {
  const database = aDatabase();
  settle(database, 1000);
  database.exec("PRAGMA synchronous = NORMAL");
  expect(checkSynchronous(database)).toMatchObject({
    kind: "refused",
    reason: expect.stringContaining("not 2"),
  });
});

test("a state of a newer setpointd is refused as such, and left as it is (F13)", () => {
  const directory = aDirectory();
  opened(directory).store[Symbol.dispose]();
  const path = join(directory, "setpointd.db");
  const newer = new DatabaseSync(path);
  newer.exec("UPDATE meta SET value = '99' WHERE name = 'schema'; PRAGMA user_version = 99");
  newer.close();
  expect(open(directory)).toMatchObject({ ok: false, reason: expect.stringContaining("newer setpointd") });
  const after = new DatabaseSync(path);
  expect(after.prepare("PRAGMA user_version").get()).toEqual({ user_version: 99 });
  after.close();
});

const STEPS = ["CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT) STRICT", "CREATE TABLE b (x)"];

test("an upgrade runs only the steps that are new, and running it again changes nothing (F13)", () => {
  const database = aDatabase();
  expect(migrate(database, STEPS.slice(0, 1))).toBeNull();
  expect(migrate(database, STEPS)).toBeNull();
  expect(migrate(database, STEPS)).toBeNull();
  expect(database.prepare("PRAGMA user_version").get()).toEqual({ user_version: 2 });
});

test("an upgrade step that fails leaves the schema before it, and is not taken for damage", () => {
  const database = aDatabase();
  const broken = [...STEPS, "CREATE TABLE c (x); INSERT INTO nowhere VALUES (1)"];
  expect(migrate(database, broken)).toMatchObject({ kind: "refused" });
  expect(database.prepare("PRAGMA user_version").get()).toEqual({ user_version: 2 });
  expect(database.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'c'").get()).toEqual({
    n: 0,
  });
});
