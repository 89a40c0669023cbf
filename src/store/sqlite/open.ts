import type { KeyObject } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";

import { auditRow, REMEMBERED_REJECTIONS } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { OnOlder, Opened, OpenedState } from "../../domain/store.ts";
import type { Instant } from "../../domain/units.ts";
import { sealed } from "../chain.ts";
import { refused, type Fault, isFault } from "../fault.ts";
import { DATABASE, deniedState, prepareDirectory } from "../files.ts";
import { readOrMakeProofKey, type HandedKeys, readOrMakeSiteKey } from "../keys.ts";
import { signBodies } from "./bodies.ts";
import { inTransaction } from "./connection.ts";
import { Disk } from "./disk.ts";
import { faultOf, isFull } from "./fault.ts";
import { knownSince, markRestored, restoredIn } from "./loadState.ts";
import { EPOCH_FILE, nextEpoch, storeEpoch, takeLock, setAside } from "./lock.ts";
import { type OpenedDatabase, openDatabase, type OnFull, type Place } from "./openDatabase.ts";
import { upgradeReadings } from "./readings.ts";
import { Reserve, RESERVE } from "./reserve.ts";
import { SqliteStore } from "./store.ts";

export interface OpenOptions {
  readonly now: () => Instant;
  /** Returns that many unpredictable bytes, for a new site key. */
  readonly random: (bytes: number) => Buffer;
  readonly keys: HandedKeys;
  readonly log: Logger;
  /** Monotonic clock for the duration of commits, ms. Absent: the machine's. */
  readonly monotonic?: () => number;
  /** Limit of the database, in pages of 4 KiB. Absent: `MAX_PAGES`. */
  readonly maxPages?: number;
  /** A read-only verb must not move the state: it refuses a damaged one. Absent: `setAside`. */
  readonly damaged?: "setAside" | "refuse";
  /** Absent: a full disk is refused. */
  readonly onFull?: OnFull;
  /** Absent: the state of an earlier version is upgraded. */
  readonly older?: OnOlder;
}

/** 2 TiB: twice the largest `retention.bytes`. At this limit commits fail. */
export const MAX_PAGES = 536_870_912;

/** Reason why there is nothing to open, for a verb that must not create a state. Null: there is a state. */
export function missingStateReason(directory: string): string | null {
  try {
    statSync(join(directory, DATABASE));
    return null;
  } catch (error) {
    const denied = deniedState(directory, error);
    if (denied !== null) return denied.reason;
    return existsSync(join(directory, EPOCH_FILE))
      ? `the record in ${directory} is gone: setpointd has run there, and ${DATABASE} is missing`
      : `there is no state in ${directory}: nothing has run there yet`;
  }
}

/** Opens the state directory for this process: verified, fresh, or refused with a reason. */
export function openState(directory: string, options: OpenOptions): Opened<SqliteStore> {
  const unusable = prepareDirectory(directory);
  if (unusable !== null) return { ok: false, reason: unusable.reason };
  const lock = takeLock(directory);
  if (isFault(lock)) return { ok: false, reason: lock.reason };
  const opened = openLocked(directory, lock, options);
  if (!isFault(opened)) return opened;
  if (lock.isOpen) lock.close();
  const { reason, broken } = opened;
  return { ok: false, reason, ...(broken === undefined ? {} : { broken }) };
}

function openLocked(
  directory: string,
  lock: DatabaseSync,
  options: OpenOptions,
): OpenedState<SqliteStore> | Fault {
  const { now, random, keys, log } = options;
  const key = readOrMakeSiteKey(directory, keys.site, random);
  if (!key.ok) return refused(key.reason);
  const { siteKey, origin } = key;
  const proof = readOrMakeProofKey(directory, keys.proof, random);
  if (!proof.ok) return refused(proof.reason);
  const { proofKey } = proof;
  const { maxPages = MAX_PAGES, older = "upgrade" } = options;
  const place: Place = { directory, siteKey, origin, maxPages, older };
  const own = { place, proofKey, lock };
  let opened: OpenedDatabase | Fault | null = null;
  try {
    opened = openDatabase(place, now(), false, options.onFull);
    if (isFault(opened) && opened.kind === "full" && releaseReserve(place, options))
      opened = openDatabase(place, now());
    if (!isFault(opened)) return start(own, opened, { rows: [], moved: null }, options);
    if (opened.kind !== "damaged" || options.damaged === "refuse") return opened;

    const { reason } = opened;
    const moved = setAside(directory, now());
    log.error({ reason, setAside: moved }, "state damaged: set aside whole, starting with a fresh one");
    opened = openDatabase(place, now(), true);
    if (isFault(opened)) return opened;
    return start(own, opened, { rows: [setAsideRow(now(), reason, moved)], moved }, options);
  } catch (error) {
    if (opened !== null && !isFault(opened) && opened.connection.database.isOpen) {
      opened.connection.database.close();
    }
    return faultOf(error);
  }
}

/** The state folder of this process. */
interface OwnState {
  readonly place: Place;
  readonly proofKey: KeyObject;
  readonly lock: DatabaseSync;
}

/** A damaged state that was moved away. `rows`: they begin the fresh one. `moved` null: the state is whole. */
interface SetAside {
  readonly rows: readonly Change[];
  readonly moved: string | null;
}

function start(
  { place, proofKey, lock }: OwnState,
  opened: OpenedDatabase,
  { rows: firstRows, moved }: SetAside,
  options: OpenOptions,
): OpenedState<SqliteStore> | Fault {
  const { log, monotonic = () => performance.now(), damaged: onDamage } = options;
  const { siteKey } = place;
  const isCopy = opened.head.seq > 0 && firstRows.length === 0 && opened.stored === null;
  const seen = opened.storedState.commands.reduce((most, { command }) => Math.max(most, command.epoch), 0);
  const epoch = nextEpoch(opened.stored, options.now(), [seen, opened.headEpoch ?? 0]);
  const { signed, isStored } = storeRun(place, opened, epoch, options);
  const restored = isCopy ? { epoch, isRecorded: false } : restoredIn(opened.connection);
  const recordsRestore = restored !== null && !restored.isRecorded && onDamage !== "refuse";
  if (isCopy || recordsRestore) markRestored(opened.connection, restored?.epoch ?? epoch, recordsRestore);
  const disk = new Disk(place, lock, opened, { epoch, isStored }, log);
  const rows = signed === null ? firstRows : [...firstRows, upgraded(options.now(), signed)];
  const committed = rows.length === 0 ? null : disk.commit(rows);
  if (committed !== null && isFault(committed)) {
    disk[Symbol.dispose]();
    return committed;
  }
  const { storedState } = opened;
  const writtenAt = committed?.rows.at(-1)?.at;
  const afterNotice =
    firstRows.length === 0 || writtenAt === undefined
      ? {}
      : { evaluatedAt: writtenAt, recordedAt: writtenAt };
  const store = new SqliteStore(disk, { siteKey, proofKey }, log, monotonic);
  const assertAll = restored !== null || replacedDamagedState(disk.connection.database);
  return {
    ok: true,
    store,
    storedState: { ...storedState, commands: knownSince(storedState.commands, restored), ...afterNotice },
    epoch,
    siteKey,
    setAside: moved,
    assertAll,
    isRestored: recordsRestore,
    leadership: null,
    lastRun: {
      openOutages: () => store.reads.openOutages(),
      writes: (charger, since) => store.reads.writes(charger, since),
      rejected: () => store.reads.audit({ kind: "rejected", newest: true, limit: REMEMBERED_REJECTIONS }),
    },
  };
}

/**
 * Signs bodies of an earlier version and stores the epoch of this run. `signed`: number of those bodies. Null: none had to
 * be signed. On a full disk the reserve is released first. Throws errors of SQLite and of the file system.
 */
function storeRun(
  place: Place,
  opened: OpenedDatabase,
  epoch: number,
  options: OpenOptions,
): { readonly signed: number | null; readonly isStored: boolean } {
  const { directory, siteKey } = place;
  const store = () => {
    // The head first: a power cut in between leaves the epoch file behind, never ahead.
    const signed = upgradeBodies(opened, siteKey, epoch);
    storeEpoch(directory, siteKey, epoch);
    return { signed, isStored: true };
  };
  try {
    return store();
  } catch (error) {
    if (!isFull(error)) throw error;
    if (releaseReserve(place, options)) return store();
    // The next epoch is still higher, as it follows the clock.
    if (options.onFull !== "open" || opened.isUpgrade) throw error;
    return { signed: null, isStored: false };
  }
}

/** Releases the reserve: its room is for the record, and a start writes to the record. */
const releaseReserve = ({ directory }: Place, { log }: OpenOptions): boolean =>
  new Reserve(join(directory, RESERVE), log).release();

const replacedDamagedState = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM audit WHERE seq = 1 AND facts ->> 'setAside' IS NOT NULL").get() !==
  undefined;

/** The first row of a fresh record gives the reason for it. */
const setAsideRow = (at: Instant, reason: string, moved: string): Change =>
  auditRow(
    "daemon",
    at,
    `stored state was damaged and set aside in ${basename(moved)}; this is a fresh one`,
    {
      facts: { reason, setAside: basename(moved) },
    },
  );

/**
 * Seals the head for this run and signs the data of an earlier version as it is: both or neither. Returns the
 * number of signed bodies. Null: not from an earlier version. Throws SQLite errors.
 */
function upgradeBodies(
  { connection, head, isUpgrade }: OpenedDatabase,
  siteKey: Buffer,
  epoch: number,
): number | null {
  let signed: number | null = null;
  inTransaction(connection.database, () => {
    if (isUpgrade) {
      signed = signBodies(connection, siteKey);
      upgradeReadings(connection, siteKey);
    }
    connection.putMeta.run("head", sealed(siteKey, head, epoch));
  });
  return signed;
}

/** Goes on record, because changes before this moment cannot be detected any more. */
const upgraded = (at: Instant, signed: number): Change =>
  auditRow(
    "daemon",
    at,
    `this state was written by an earlier version: its ${signed} stored events, holds and reports, and its readings, are signed from now on as they were found`,
    { facts: { signed } },
  );
