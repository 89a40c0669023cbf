import { hash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import type { Instant } from "../../domain/units.ts";
import { runCooperatively } from "../../platform/cooperative.ts";
import type { Verified } from "../../domain/store.ts";
import { sealed } from "../chain.ts";
import { type Fault, isFault } from "../fault.ts";
import { DATABASE, leaveToOwner, prepareDirectory } from "../files.ts";
import { type HandedKeys, keysFault, placeKeys, readOrMakeProofKey, storedSiteKey } from "../keys.ts";
import {
  type Moved,
  type MovedBody,
  MovedCount,
  type MoveProgress,
  type MovedRows,
  type MovedState,
  NotMoved,
  VERIFYING,
  VERIFYING_COPY,
} from "../movedState.ts";
import { readingMac } from "../readingRow.ts";
import { sumOf } from "./auditRows.ts";
import { placeCopy } from "./backup.ts";
import { isSignedTable, signed } from "./bodies.ts";
import type { Connection } from "./connection.ts";
import { faultOf } from "./fault.ts";
import { type StoredEpoch, storedEpoch, storeEpoch, takeLock } from "./lock.ts";
import { MAX_PAGES } from "./open.ts";
import { openDatabase, type Place, withDatabase } from "./openDatabase.ts";
import { rowsIn } from "./movedRows.ts";
import { verifyingState } from "./verify.ts";

/** A folder, and the keys that systemd supplies for it. */
export interface MovedFolder {
  readonly directory: string;
  readonly keys: HandedKeys;
  readonly now: () => Instant;
  readonly monotonic: () => number;
  readonly random: (bytes: number) => Buffer;
  readonly progress: MoveProgress;
}

/** Verifies all of a state. The lease of a database is renewed meanwhile. */
const verifyWhole = (
  connection: Connection,
  siteKey: Buffer,
  epoch: StoredEpoch | null,
  { monotonic, progress }: Pick<MovedFolder, "monotonic" | "progress">,
  doing: string,
): Promise<Verified> =>
  runCooperatively(
    verifyingState(
      () => {
        progress.step(doing);
        return connection;
      },
      siteKey,
      () => epoch,
    ),
    monotonic,
  );

function sound<T extends object>(outcome: T | Fault): T {
  if (isFault(outcome)) throw new NotMoved(outcome.reason);
  return outcome;
}

/** Name of a draft in the state folder. */
const DRAFT = "moving-";

/** Passes the state of a folder to `use`, verified and locked. Throws `NotMoved`. */
export async function useFolder<T>(folder: MovedFolder, use: (state: MovedState) => Promise<T>): Promise<T> {
  const { directory, keys, now, random } = folder;
  if (!existsSync(join(directory, DATABASE)))
    throw new NotMoved(`there is no state in ${directory}: nothing has run there yet`);
  using _lock = sound(takeLock(directory));
  const site = storedSiteKey(directory, keys.site);
  if (!site.ok) throw new NotMoved(site.reason);
  const proof = readOrMakeProofKey(directory, keys.proof, random);
  if (!proof.ok) throw new NotMoved(proof.reason);
  const { siteKey, origin } = site;
  const opened = sound(openDatabase({ directory, siteKey, origin, maxPages: MAX_PAGES }, now()));
  const { connection, head, headEpoch, stored } = opened;
  using _database = connection.database;
  if (opened.isUpgrade || (head.seq > 0 && stored === null))
    throw new NotMoved(
      `the state in ${directory} is from a backup or of an earlier version: start setpointd on it once first`,
    );
  const verified = await verifyWhole(connection, siteKey, stored, folder, VERIFYING);
  if (!verified.ok) throw new NotMoved(verified.reason);
  const metaNumber = (name: string): number | null => {
    const value = connection.getMeta.get(name)?.["value"];
    return value === undefined ? null : Number(value);
  };
  return await use({
    keys: { siteKey, proofKey: proof.proofKey },
    head,
    epoch: Math.max(headEpoch ?? 0, stored?.epoch ?? 0),
    evaluatedAt: metaNumber("looked"),
    aliveAt: metaNumber("alive"),
    thinnedMinute: metaNumber("readingsThinned") ?? 0,
    total: { audit: verified.rows, readings: (verified.readings ?? 0) + (verified.unsigned ?? 0) },
    rows: () => rowsIn(connection),
    // The lock is held until the end.
    check: () => Promise.resolve(),
  });
}

/** Throws `NotMoved` where the folder has a state: also before the long work on the source. */
export function refuseKnownState(directory: string): void {
  const path = join(directory, DATABASE);
  if (existsSync(path)) throw new NotMoved(`${path} exists already: name an empty folder, or move it away`);
}

/**
 * Stores a state in a folder that has none: in a draft that is verified, and renamed at the end. Throws `NotMoved`, and
 * errors of the file system.
 */
export async function storeInFolder(folder: Omit<MovedFolder, "random">, state: MovedState): Promise<Moved> {
  const { directory, keys, now, progress } = folder;
  const unusable = prepareDirectory(directory);
  if (unusable !== null) throw new NotMoved(unusable.reason);
  refuseKnownState(directory);
  using _lock = sound(takeLock(directory));
  const { siteKey } = state.keys;
  const wrongKey = keysFault(directory, keys, state.keys);
  if (wrongKey !== null) throw new NotMoved(wrongKey);
  // Drafts of moves that were killed.
  for (const name of readdirSync(directory))
    if (name.startsWith(DRAFT)) rmSync(join(directory, name), { recursive: true });
  const draft = mkdtempSync(join(directory, DRAFT));
  const place: Place = {
    directory: draft,
    siteKey,
    origin: { path: directory, isCredential: false },
    maxPages: MAX_PAGES,
  };
  try {
    leaveToOwner(draft);
    // A folder that had a state before may know a later epoch.
    const epoch = Math.max(state.epoch, storedEpoch(directory, siteKey)?.epoch ?? 0);
    const moved = await fill(place, state, epoch, progress);
    await verifyDraft(place, now(), state, folder);
    await state.check();
    placeKeys(directory, keys, state.keys);
    const path = join(directory, DATABASE);
    placeCopy(draft, path);
    leaveToOwner(path);
    // Last: without it the next start takes the state for a restored backup, which is safe.
    storeEpoch(directory, siteKey, epoch);
    return moved;
  } catch (error) {
    // An error of SQLite. Those of the file system name their path themselves.
    if (error instanceof Error && "errcode" in error) throw new NotMoved(faultOf(error).reason);
    throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

async function fill(place: Place, state: MovedState, epoch: number, progress: MoveProgress): Promise<Moved> {
  const connection = sound(withDatabase(place, (made) => made));
  using database = connection.database;
  const count = new MovedCount();
  database.exec("BEGIN IMMEDIATE");
  for await (const rows of state.rows()) {
    store(connection, place.siteKey, rows);
    count.add(rows);
    progress.copied(count, state);
  }
  const { head, evaluatedAt, aliveAt, thinnedMinute } = state;
  const meta = {
    siteKey: hash("sha256", place.siteKey),
    head: head.seq === 0 ? null : sealed(place.siteKey, head, epoch),
    looked: evaluatedAt,
    alive: aliveAt,
    readings: count.readings,
    readingsThinned: thinnedMinute,
  };
  for (const [name, value] of Object.entries(meta))
    if (value !== null) connection.putMeta.run(name, String(value));
  database.exec("COMMIT");
  return count;
}

function store(connection: Connection, siteKey: Buffer, { table, rows }: MovedRows): void {
  const { database } = connection;
  switch (table) {
    case "audit":
      for (const { cells, facts, hash: rowHash } of rows) connection.putAudit.run(...cells, facts, rowHash);
      break;
    case "acknowledged":
      for (const row of rows) connection.putAcknowledged.run(...row);
      break;
    case "body":
      for (const row of rows) storeBody(connection, siteKey, row);
      break;
    case "quarantine":
      for (const { at, source, event, path, reason, raw } of rows)
        connection.putQuarantine.run(at, source, event, path, reason, raw);
      break;
    case "reading": {
      const insert = database.prepare(`INSERT INTO reading VALUES (${"?, ".repeat(14)}?)`);
      for (const row of rows) insert.run(...row, readingMac(siteKey, row));
      break;
    }
    case "seat": {
      const insert = database.prepare("INSERT INTO seat VALUES (?, ?, ?)");
      for (const row of rows) insert.run(...row);
      break;
    }
  }
}

function storeBody(connection: Connection, siteKey: Buffer, { table, id, body }: MovedBody): void {
  const { database } = connection;
  if (!isSignedTable(table)) {
    const insert = database.prepare(`INSERT INTO ${table} (id, body, sum) VALUES (?, ?, ?)`);
    insert.run(id, body, sumOf(table, id, body));
    return;
  }
  const checked = signed(siteKey, table, id, body);
  if (table === "event") connection.putEvent.run(id, String(JSON.parse(body).kind), ...checked);
  else if (table === "report_body") connection.putReportBody.run(id, body.length, ...checked);
  else if (table === "report") {
    const { event, nextTry } = JSON.parse(body);
    connection.putReport.run(id, String(event), nextTry === null ? 0 : 1, ...checked);
  } else
    database.prepare(`INSERT INTO ${table} (id, body, sum, mac) VALUES (?, ?, ?, ?)`).run(id, ...checked);
}

/** Opens the draft under the checks of a start, and verifies all of it. Throws `NotMoved`. */
async function verifyDraft(
  place: Place,
  now: Instant,
  { head }: MovedState,
  by: Pick<MovedFolder, "monotonic" | "progress">,
): Promise<void> {
  const { connection } = sound(openDatabase(place, now));
  using _database = connection.database;
  const verified = await verifyWhole(connection, place.siteKey, null, by, VERIFYING_COPY);
  if (!verified.ok) throw new NotMoved(`the copy is not whole: ${verified.reason}`);
  if (verified.head !== head.hash) throw new NotMoved("the copy is not whole: its record has another end");
}
