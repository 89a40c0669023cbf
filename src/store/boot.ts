import { hash } from "node:crypto";
import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Remembered } from "../core/ledger.ts";
import type { Instant } from "../core/units.ts";
import type { Head } from "./chain.ts";
import { connection, metaValue, type Connection } from "./connection.ts";
import { checkSynchronous, DATABASE, quickCheck, settle } from "./database.ts";
import { damaged, faultOf, fileFault, isBusy, refused, type Fault } from "./fault.ts";
import { leaveToOwner } from "./files.ts";
import { HEAD_FILE, unsealed, witnessed } from "./head.ts";
import { remember } from "./remember.ts";
import { keepLog, keepOrphanedLog } from "./setAside.ts";
import { verifyTail } from "./verify.ts";

/** What an opening of the database needs. */
export interface Place {
  readonly directory: string;
  readonly siteKey: Buffer;
  /** A cap on the database, in pages of 4 KiB. */
  readonly maxPages: number;
}

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

export interface Booted {
  readonly connection: Connection;
  readonly head: Head;
  readonly remembered: Remembered;
}

/** Opens the database and believes it only after looking: structure, key, end of the record, every body that is acted on. */
export function boot(place: Place, now: Instant): Booted | Fault {
  return withDatabase(place, (connection) => {
    const unfit = quickCheck(connection.database) ?? checkSiteKey(connection, place);
    if (unfit !== null) return unfit;
    const witness = witnessed(join(place.directory, HEAD_FILE), place.siteKey);
    const head = verifyTail(connection, place.siteKey, witness);
    if (isFault(head)) return head;
    const remembered = remember(connection.database);
    if (isFault(remembered)) return remembered;
    connection.putMeta.run("openedAt", String(now));
    return checkSynchronous(connection.database) ?? { connection, head, remembered };
  });
}

/** The state remembers a print of the key that its start offsets were derived with. */
function checkSiteKey(connection: Connection, { siteKey, directory }: Place): Fault | null {
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
  return refused(
    `${join(directory, "site.key")} is not the key that this state was made with: put the old one back, or start with an empty state directory`,
  );
}
