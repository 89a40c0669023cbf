import type { KeyObject } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";

import type { Change, StoredState } from "../../domain/changes.ts";
import type { Instant } from "../../domain/units.ts";
import { DATABASE } from "./connection.ts";
import { Disk } from "./disk.ts";
import { type Broken, faultOf, fileFault, isFull, refused, type Fault } from "./fault.ts";
import { deniedState, prepareDirectory } from "./files.ts";
import { readOrMakeProofKey, type HandedKeys, readOrMakeSiteKey } from "./keys.ts";
import { knownSince, markRestored, restoredIn } from "./loadState.ts";
import { EPOCH_FILE, nextEpoch, storeEpoch, takeLock, setAside } from "./lock.ts";
import { openDatabase, isFault, type OpenedDatabase, type OnFull, type Place } from "./openDatabase.ts";
import { Reserve, RESERVE } from "./reserve.ts";
import { Store } from "./store.ts";
import { upgradeBodies, upgraded } from "./upgrade.ts";

/** A state that cannot be used is an answer: `reason` is a sentence for the operator. */
export type Opened =
  | {
      readonly ok: true;
      readonly store: Store;
      readonly remembered: StoredState;
      readonly epoch: number;
      readonly siteKey: Buffer;
      /** Where a damaged state was moved to; this one is fresh. Null: nothing was damaged. */
      readonly setAside: string | null;
      /** It took the place of a damaged or lost one, now or earlier: what a charger without a command was told is not known. */
      readonly unsure: boolean;
      /** It was put back from a copy, and nobody has said so yet. A verb that only looks leaves that to the daemon. */
      readonly isRestored: boolean;
    }
  | { readonly ok: false; readonly reason: string; readonly broken?: Broken };

export interface OpenOptions {
  readonly now: () => Instant;
  /** That many unpredictable bytes: for a new site key. */
  readonly random: (bytes: number) => Buffer;
  readonly keys: HandedKeys;
  readonly log: Logger;
  /** Milliseconds that never jump: how long commits take. That of the machine unless told. */
  readonly monotonic?: () => number;
  /** A cap on the database, in pages of 4 KiB; `MAX_PAGES` unless told. */
  readonly maxPages?: number;
  /** A verb that only looks must not move what it looks at: it refuses a damaged state instead. */
  readonly damaged?: "setAside" | "refuse";
  /** Absent: a full disk is refused. */
  readonly onFull?: OnFull;
}

/** 2 TiB: twice the largest `retention.bytes`, which bounds what is kept. At this cap commits fail. */
export const MAX_PAGES = 536_870_912;

/** Why there is nothing to open, for a verb that must not make a state. Null: there is a state. */
export function nothingYet(directory: string): string | null {
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

/** Takes the state directory for this process: checked, or fresh, or refused with the reason (DESIGN 5.7). */
export function openState(directory: string, options: OpenOptions): Opened {
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

function openLocked(directory: string, lock: DatabaseSync, options: OpenOptions): Opened | Fault {
  const { now, random, keys, log } = options;
  const key = readOrMakeSiteKey(directory, keys.site, random);
  if (!key.ok) return refused(key.reason);
  const { siteKey, origin } = key;
  const proof = readOrMakeProofKey(directory, keys.proof, random);
  if (!proof.ok) return refused(proof.reason);
  const { proofKey } = proof;
  const place: Place = { directory, siteKey, origin, maxPages: options.maxPages ?? MAX_PAGES };
  let booted: OpenedDatabase | Fault | null = null;
  try {
    booted = openDatabase(place, now(), false, options.onFull);
    if (isFault(booted) && booted.kind === "full" && giveReserve(place, options))
      booted = openDatabase(place, now());
    if (!isFault(booted)) return start(place, proofKey, lock, booted, [], null, options);
    if (booted.kind !== "damaged" || options.damaged === "refuse") return booted;

    const { reason } = booted;
    const moved = setAside(directory, now());
    log.error({ reason, setAside: moved }, "state damaged: set aside whole, starting with a fresh one");
    booted = openDatabase(place, now(), true);
    if (isFault(booted)) return booted;
    return start(place, proofKey, lock, booted, [notice(now(), reason, moved)], moved, options);
  } catch (error) {
    if (booted !== null && !isFault(booted) && booted.connection.database.isOpen) {
      booted.connection.database.close();
    }
    return error instanceof Error && "syscall" in error ? fileFault(error) : faultOf(error);
  }
}

function start(
  place: Place,
  proofKey: KeyObject,
  lock: DatabaseSync,
  booted: OpenedDatabase,
  first: readonly Change[],
  moved: string | null,
  options: OpenOptions,
): Opened | Fault {
  const { log, monotonic = () => performance.now(), damaged: onDamage } = options;
  const { siteKey } = place;
  const isCopy = booted.head.seq > 0 && first.length === 0 && booted.stored === null;
  const seen = booted.remembered.commands.reduce((most, { command }) => Math.max(most, command.epoch), 0);
  const epoch = nextEpoch(booted.stored, options.now(), [seen, booted.headEpoch ?? 0]);
  const signed = storeRun(place, booted, epoch, options);
  const restored = isCopy ? { epoch, isTold: false } : restoredIn(booted.connection);
  const tells = restored !== null && !restored.isTold && onDamage !== "refuse";
  if (isCopy || tells) markRestored(booted.connection, restored?.epoch ?? epoch, tells);
  const disk = new Disk(place, lock, booted, epoch, log);
  const rows = signed === null ? first : [...first, upgraded(options.now(), signed)];
  const committed = rows.length === 0 ? null : disk.commit(rows);
  if (committed !== null && isFault(committed)) {
    disk[Symbol.dispose]();
    return committed;
  }
  const { remembered } = booted;
  const writtenAt = committed?.rows.at(-1)?.at;
  const moments =
    first.length === 0 || writtenAt === undefined ? {} : { lookedAt: writtenAt, recordedAt: writtenAt };
  const store = new Store(disk, { siteKey, proofKey }, log, monotonic);
  const unsure = restored !== null || tookThePlace(disk.connection.database);
  return {
    ok: true,
    store,
    remembered: { ...remembered, commands: knownSince(remembered.commands, restored), ...moments },
    epoch,
    siteKey,
    setAside: moved,
    unsure,
    isRestored: tells,
  };
}

/**
 * Answers how many bodies of an earlier version were signed; null: none had to be. On a full disk the reserve is given
 * first. Throws errors of SQLite and of the file system.
 */
function storeRun(place: Place, booted: OpenedDatabase, epoch: number, options: OpenOptions): number | null {
  const { directory, siteKey } = place;
  const store = (): number | null => {
    // The head first: a power cut in between leaves the file behind, never ahead.
    const signed = upgradeBodies(booted, siteKey, epoch);
    storeEpoch(directory, siteKey, epoch);
    return signed;
  };
  try {
    return store();
  } catch (error) {
    if (!isFull(error)) throw error;
    if (giveReserve(place, options)) return store();
    // By the clock, the next run has a higher epoch all the same.
    if (options.onFull !== "read") throw error;
    return null;
  }
}

/** What room the reserve held is for the record, and a start needs some of it. */
const giveReserve = ({ directory }: Place, { log }: OpenOptions): boolean =>
  new Reserve(join(directory, RESERVE), log).give();

const tookThePlace = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM audit WHERE seq = 1 AND facts ->> 'setAside' IS NOT NULL").get() !==
  undefined;

/** The first row of a fresh record says why it is one. */
const notice = (at: Instant, reason: string, moved: string): Change => ({
  kind: "audit",
  entry: {
    at,
    kind: "daemon",
    charger: null,
    vehicle: null,
    event: null,
    command: null,
    words: `stored state was damaged and set aside in ${basename(moved)}; this is a fresh one`,
    facts: { reason, setAside: basename(moved) },
  },
});
