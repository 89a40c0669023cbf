import { randomBytes } from "node:crypto";
import {
  chownSync,
  copyFileSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { copyFiles, placeCopy, settleCopy } from "../../../src/store/sqlite/backup.ts";
import type { SqliteStore } from "../../../src/store/sqlite/store.ts";
import { aDirectory, opened } from "./state.ts";
import { commandRecord, NOON, row, tombstone } from "./words.ts";

async function fill(store: SqliteStore, turns: number): Promise<void> {
  for (let n = 0; n < turns; n += 1) {
    store.write([
      row(`row ${n} ${"x".repeat(2000)}`),
      { kind: "event", known: tombstone(`EV-${n}`) },
      { kind: "command", record: commandRecord("bay-01", n) },
    ]);
    expect(await store.durable()).toEqual({ ok: true });
  }
}

const place = (directory: string, siteKey: Buffer) => ({
  directory,
  siteKey,
  origin: { path: "site.key", isCredential: false },
  maxPages: 100_000,
});

test("a copy made between two commits of a running store holds all that was committed before, and opens as a state", async () => {
  const directory = aDirectory();
  const { store, siteKey } = opened(directory);
  await fill(store, 30);
  const copy = aDirectory();
  expect(store.beginCopy()).toBe(true);
  copyFileSync(join(directory, "setpointd.db"), join(copy, "setpointd.db"));
  // More than a log usually holds before it is written into the database.
  await fill(store, 1500);
  copyFiles(directory, copy);
  expect(store.endCopy()).toBe(true);
  await fill(store, 5);

  expect(settleCopy(place(copy, siteKey), NOON)).toEqual({ rows: 1530, events: 1500 });
  const restored = aDirectory();
  writeFileSync(join(restored, "site.key"), siteKey);
  placeCopy(copy, join(restored, "setpointd.db"));
  expect(statSync(join(restored, "setpointd.db")).mode & 0o777).toBe(0o600);
  const again = opened(restored);
  expect([again.setAside, again.storedState.events.length]).toEqual([null, 1500]);
  expect(again.store.reads.verify()).toMatchObject({ ok: true, rows: 1530 });
  expect(store.reads.verify()).toMatchObject({ ok: true, rows: 1535 });
});

test("a log that ends in the middle of a commit is copied up to the commit before", async () => {
  const directory = aDirectory();
  const { store, siteKey } = opened(directory);
  store.beginCopy();
  await fill(store, 20);
  const copy = aDirectory();
  copyFiles(directory, copy);
  const log = join(copy, "setpointd.db-wal");
  writeFileSync(log, readFileSync(log).subarray(0, statSync(log).size - 5000));
  expect(settleCopy(place(copy, siteKey), NOON)).toMatchObject({ rows: expect.any(Number) });
});

test("only one copy is made at a time, and one that is over is over", () => {
  const { store } = opened(aDirectory());
  expect([store.beginCopy(), store.beginCopy(), store.endCopy(), store.endCopy(), store.beginCopy()]).toEqual(
    [true, false, true, false, true],
  );
});

test("a copy that was changed, or has another site's key, is not taken for one", async () => {
  const directory = aDirectory();
  const { store, siteKey } = opened(directory);
  await fill(store, 20);
  store[Symbol.dispose]();
  const copy = aDirectory();
  copyFiles(directory, copy);
  expect(settleCopy(place(copy, randomBytes(32)), NOON)).toMatchObject({ kind: "refused" });
  const bytes = readFileSync(join(copy, "setpointd.db"));
  writeFileSync(join(copy, "setpointd.db"), bytes.fill(0, 4096 * 5, 4096 * 9));
  expect(settleCopy(place(copy, siteKey), NOON)).toMatchObject({ kind: "damaged" });
});

// Only root can give a folder to somebody else.
test.skipIf(process.getuid?.() !== 0)(
  "root copies files of another user's folder, and no file that a link there leads to",
  async () => {
    const directory = aDirectory();
    const { store, siteKey } = opened(directory);
    await fill(store, 1);
    store[Symbol.dispose]();
    chownSync(directory, 65_534, 65_534);
    const copy = aDirectory();
    copyFiles(directory, copy);
    expect(settleCopy(place(copy, siteKey), NOON)).toMatchObject({ rows: 1 });
    const file = join(directory, "setpointd.db");
    renameSync(file, `${file}.moved`);
    for (const link of [symlinkSync, linkSync]) {
      link(`${file}.moved`, file);
      expect(() => copyFiles(directory, aDirectory())).toThrow("is a link or a device");
      rmSync(file);
    }
  },
);
