import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { headSeal } from "../../../src/domain/audit.ts";
import { after, minutes } from "../../../src/domain/units.ts";
import { sumOf } from "../../../src/store/sqlite/auditRows.ts";
import { aDirectory, open, opened } from "./state.ts";
import { anEvent, live } from "../../support/anEvent.ts";
import { NOON, row } from "./words.ts";

const DATABASE = "setpointd.db";

/** An event that lies ahead: the body of one that is over is not read at a start. */
const AHEAD = live(anEvent({ revision: NOON, start: after(NOON, minutes(60)) }));

/** Head, epoch and bodies as earlier versions wrote them. */
function fromBefore(directory: string): void {
  const siteKey = readFileSync(join(directory, "site.key"));
  using database = new DatabaseSync(join(directory, DATABASE));
  const [seq = "", hash = "", epoch] = String(
    database.prepare("SELECT value FROM meta WHERE name = 'head'").get()?.["value"],
  ).split(" ");
  const head = `${seq} ${hash} ${headSeal(siteKey, Number(seq), hash)}`;
  database.prepare("UPDATE meta SET value = ? WHERE name = 'head'").run(head);
  for (const { id, body } of database.prepare("SELECT id, body FROM event").all())
    database
      .prepare("UPDATE event SET mac = NULL, sum = ? WHERE id = ?")
      .run(sumOf("event", String(id), String(body)), String(id));
  writeFileSync(join(directory, "epoch"), `${Number(epoch)}\n`);
  writeFileSync(join(directory, "head"), head);
}

/** A stopped state of an earlier version with a row and an event. */
async function earlier(): Promise<string> {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write([row("a row"), { kind: "event", known: AHEAD }]);
  await store.durable();
  store[Symbol.dispose]();
  fromBefore(directory);
  return directory;
}

test("a state of an earlier version is signed as it is found, on record, and what was missed meanwhile stays missed", async () => {
  const directory = await earlier();
  const first = opened(directory, { at: after(NOON, minutes(30)) });
  expect(first.setAside).toBeNull();
  expect(first.storedState).toMatchObject({ events: [AHEAD], edited: [], evaluatedAt: NOON });
  expect(first.store.reads.audit({ newest: true, limit: 1 })).toMatchObject([
    { kind: "daemon", facts: { signed: 1 }, words: expect.stringContaining("earlier version") },
  ]);
  expect(first.store.reads.verify()).toMatchObject({ ok: true, rows: 2 });
  first.store[Symbol.dispose]();
  const again = opened(directory);
  expect(again.storedState).toMatchObject({ events: [AHEAD], edited: [] });
  expect(again.store.reads.audit({})).toHaveLength(2);
});

test("a state that was taken over cannot be put back to the earlier version", async () => {
  const directory = await earlier();
  const before = join(aDirectory(), DATABASE);
  copyFileSync(join(directory, DATABASE), before);
  opened(directory).store[Symbol.dispose]();
  copyFileSync(before, join(directory, DATABASE));
  rmSync(join(directory, "head"));
  expect(open(directory, { damaged: "refuse" })).toMatchObject({
    ok: false,
    reason: expect.stringContaining("last written by an earlier version"),
  });
});
