import { hash } from "node:crypto";
import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import type { StoredState } from "../../domain/changes.ts";
import type { Instant } from "../../domain/units.ts";
import { type Head, HEAD_FILE, type SealedHead, unsealed, witnessed } from "./chain.ts";
import {
  connection,
  metaValue,
  type Connection,
  checkSynchronous,
  DATABASE,
  quickCheck,
  settle,
} from "./connection.ts";
import { damaged, faultOf, fileFault, isBusy, refused, type Fault } from "./fault.ts";
import { leaveToOwner } from "./files.ts";
import { type KeyOrigin, otherKey } from "./keys.ts";
import { loadState } from "./loadState.ts";
import { epochFault, storedEpoch, type StoredEpoch, keepLog, keepOrphanedLog } from "./lock.ts";
import { verifyTail } from "./verify.ts";

/** What an opening of the database needs. */
export interface Place {
  readonly directory: string;
  readonly siteKey: Buffer;
  /** Where the key was found. */
  readonly origin: KeyOrigin;
  /** A cap on the database, in pages of 4 KiB. */
  readonly maxPages: number;
}

/** What an opening does on a full disk. `read`: it goes on without writing, for a verb that frees chargers by hand. */
export type OnFull = "refuse" | "read";

/** Runs `use` on the database; where that finds a fault, the database is closed again. */
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
    // What SQLite puts beside it has its owner.
    leaveToOwner(path);
    const outcome = settle(database, place.maxPages) ?? use(connection(database));
    if (isFault(outcome)) giveUp(database, outcome, place.directory);
    return outcome;
  } catch (error) {
    if (database === null && error instanceof Error && "syscall" in error) return fileFault(error);
    const fault = isBusy(error) ? refused(`another program is using ${path}: stop it first`) : faultOf(error);
    if (database !== null) giveUp(database, fault, place.directory);
    return fault;
  }
}

function giveUp(database: DatabaseSync, { kind }: Fault, directory: string): void {
  // Closing writes what it believes of the log into the database, and deletes the rest of it.
  if (kind === "damaged") keepLog(directory);
  database.close();
}

export const isFault = (outcome: object): outcome is Fault => "kind" in outcome && "reason" in outcome;

export interface OpenedDatabase {
  readonly connection: Connection;
  readonly head: Head;
  /** Of the run that wrote the head; null: an earlier version, or a fresh database. */
  readonly headEpoch: number | null;
  /** An earlier version wrote it, which signed no bodies and no readings. */
  readonly isUpgrade: boolean;
  /** Beside the database; null: none, as beside a copy. */
  readonly stored: StoredEpoch | null;
  readonly remembered: StoredState;
}

/**
 * Opens the database and believes it only after checks: structure, key, end of the record, epoch, every body that is
 * acted on. `isFresh`: the one before was set aside just now, so that nothing is missing.
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
    const unfit = quickCheck(connection.database) ?? checkSiteKey(connection, place);
    if (unfit !== null) return unfit;
    const witness = witnessed(join(directory, HEAD_FILE), siteKey);
    const sealedHead = headOf(connection, siteKey);
    const head = verifyTail(connection, siteKey, witness);
    if (isFault(head)) return head;
    const unfitting = isFresh ? null : epochFault(stored, sealedHead);
    if (unfitting !== null)
      return { ...unfitting, broken: { ok: false, seq: head.seq + 1, reason: unfitting.reason } };
    const isUpgrade = sealedHead !== null && sealedHead.epoch === null;
    const remembered = loadState(connection, { siteKey, isSigned: !isUpgrade }, now);
    if (isFault(remembered)) return remembered;
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
        remembered,
      }
    );
  });
}

/** The head as the database has it; null: none that this key sealed. */
function headOf(connection: Connection, siteKey: Buffer): SealedHead | null {
  const text = metaValue(connection, "head");
  return text === null ? null : unsealed(siteKey, text);
}

/** The state remembers a print of the key that its start offsets were derived with. */
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
  return refused(otherKey({ siteKey, origin }, known, directory));
}
