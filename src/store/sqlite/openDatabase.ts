import { hash } from "node:crypto";
import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import type { StoredState } from "../../domain/changes.ts";
import type { OnOlder } from "../../domain/store.ts";
import type { Instant } from "../../domain/units.ts";
import { type Head, type SealedHead, unsealed } from "../chain.ts";
import { isFault, damaged, refused, type Fault } from "../fault.ts";
import { DATABASE, HEAD_FILE, leaveToOwner, readWitness } from "../files.ts";
import { type KeyOrigin, wrongKeyMessage } from "../keys.ts";
import {
  connection,
  metaValue,
  type Connection,
  checkSynchronous,
  quickCheck,
  settle,
} from "./connection.ts";
import { faultOf, isBusy, isUnopened } from "./fault.ts";
import { loadState } from "./loadState.ts";
import { epochFault, storedEpoch, type StoredEpoch, keepLog, keepOrphanedLog } from "./lock.ts";
import { verifyTail } from "./verify.ts";

/** Directory, key and limit for opening the database. */
export interface Place {
  readonly directory: string;
  readonly siteKey: Buffer;
  /** Place of the key. */
  readonly origin: KeyOrigin;
  /** Limit of the database, in pages of 4 KiB. */
  readonly maxPages: number;
  /** Absent: the state of an earlier version is upgraded. */
  readonly older?: OnOlder;
}

/** Behaviour on a full disk. `open`: chargers can be released, and the first commit stores this run. */
export type OnFull = "refuse" | "open";

/** Runs `use` on the database. After a fault the database is closed again. */
export function withDatabase<T extends object>(
  place: Place,
  use: (connection: Connection) => T | Fault,
): T | Fault {
  const path = join(place.directory, DATABASE);
  let database: DatabaseSync | null = null;
  try {
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
    else keepOrphanedLog(place.directory);
    database = new DatabaseSync(path);
    // Files that SQLite creates beside the database get the owner of the database file.
    leaveToOwner(path);
    const outcome = settle(database, place.maxPages, place.older) ?? use(connection(database));
    if (isFault(outcome)) giveUp(database, outcome, place.directory);
    return outcome;
  } catch (error) {
    const fault = openFault(path, error);
    if (database !== null) giveUp(database, fault, place.directory);
    return fault;
  }
}

function openFault(path: string, error: unknown): Fault {
  if (isBusy(error)) return refused(`another program is using ${path}: stop it first`);
  const fault = faultOf(error);
  if (!isUnopened(error)) return fault;
  return refused(
    `${path}, or a file beside it with the same beginning, cannot be opened (${fault.reason}): give them all to the user that runs setpointd`,
  );
}

function giveUp(database: DatabaseSync, { kind }: Fault, directory: string): void {
  // Closing writes the valid part of the log into the database and deletes the rest.
  if (kind === "damaged") keepLog(directory);
  database.close();
}

export interface OpenedDatabase {
  readonly connection: Connection;
  readonly head: Head;
  /** Epoch of the run that wrote the head. Null: an earlier version, or a fresh database. */
  readonly headEpoch: number | null;
  /** Written by an earlier version, which signed neither bodies nor readings. */
  readonly isUpgrade: boolean;
  /** The epoch file. Null: missing, as beside a restored backup. */
  readonly stored: StoredEpoch | null;
  readonly storedState: StoredState;
}

/**
 * Opens the database and checks it: structure, key, end of the record, epoch, and every body that decides
 * commands. `isFresh`: the old one was set aside just now, so an empty database is expected.
 */
export function openDatabase(
  place: Place,
  now: Instant,
  isFresh = false,
  onFull: OnFull = "refuse",
): OpenedDatabase | Fault {
  const { directory, siteKey } = place;
  const stored = storedEpoch(directory, siteKey);
  return withDatabase(place, (connection) => {
    const fault = quickCheck(connection.database) ?? checkSiteKey(connection, place);
    if (fault !== null) return fault;
    const witness = readWitness(join(directory, HEAD_FILE), siteKey);
    const sealedHead = headOf(connection, siteKey);
    const head = verifyTail(connection, siteKey, witness);
    if (isFault(head)) return head;
    const mismatch = isFresh ? null : epochFault(stored, sealedHead);
    if (mismatch !== null)
      return { ...mismatch, broken: { ok: false, seq: head.seq + 1, reason: mismatch.reason } };
    const isUpgrade = sealedHead !== null && sealedHead.epoch === null;
    const storedState = loadState(connection, { siteKey, isSigned: !isUpgrade }, now);
    if (isFault(storedState)) return storedState;
    try {
      connection.putMeta.run("openedAt", String(now));
    } catch (error) {
      const fault = faultOf(error);
      if (fault.kind !== "full" || onFull === "refuse") return fault;
    }
    const headEpoch = sealedHead?.epoch ?? null;
    return (
      checkSynchronous(connection.database) ?? {
        connection,
        head,
        headEpoch,
        isUpgrade,
        stored,
        storedState,
      }
    );
  });
}

/** The head in the database. Null: none sealed with this key. */
function headOf(connection: Connection, siteKey: Buffer): SealedHead | null {
  const text = metaValue(connection, "head");
  return text === null ? null : unsealed(siteKey, text);
}

/** Compares the site key with the stored print of the key that start offsets were derived with. */
function checkSiteKey(connection: Connection, { siteKey, origin, directory }: Place): Fault | null {
  const print = hash("sha256", siteKey);
  const known = metaValue(connection, "siteKey");
  if (known === print) return null;
  const head = metaValue(connection, "head");
  if (known === null && head === null) {
    connection.putMeta.run("siteKey", print);
    return null;
  }
  const sealedWithIt = head !== null && unsealed(siteKey, head) !== null;
  if (known === null || sealedWithIt) return damaged("the print of the site key was changed");
  return refused(wrongKeyMessage({ siteKey, origin }, known, directory));
}
