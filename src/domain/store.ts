import type { KeyObject } from "node:crypto";

import type { Alarm } from "./alarm.ts";
import type { AuditEntry, AuditKind, AuditRow, RecordRow } from "./audit.ts";
import type { Change, Committed, Stored, StoredState } from "./changes.ts";
import type { PlugIn, SetDeparture } from "./departure.ts";
import type { EventArchive } from "./event.ts";
import type { Leadership } from "./leadership.ts";
import type { PriceSeries } from "./prices.ts";
import type { Reading } from "./reading.ts";
import type { ReportRecord } from "./report.ts";
import type { Instant, ChargerId, EventId, Millis, VehicleId, Window, Windows } from "./units.ts";

/** "now": mostly at the end of this tick. */
export type CommitTime = "now" | "soon";

/**
 * Everything that survives a restart, as the program asks for it. `store/sqlite/` and `store/postgres/` implement it.
 *
 * Commits. Changes are staged in order; a commit stores all that is staged, or none of it. After a commit the changes
 * survive a power cut. A webhook is answered, and a command is published, only after `durable` has resolved.
 * A single process at a time writes a site. A commit of any other process is refused.
 *
 * Reads. They return committed data. A reading that waits for its commit is returned as well.
 * A method that reads throws, or rejects, if the data cannot be read.
 *
 * Moments are `Instant` (ms since 1970, UTC), durations `Millis`. Energies are Wh, powers W, currents A.
 */
export interface Store extends AsyncDisposable {
  /** Called after each commit that added audit rows, with the rows and the duration of the commit in ms. */
  onCommitted: (rows: readonly AuditRow[], tookMs: number) => void;
  /** Private key that signs proofs. */
  readonly proofKey: KeyObject;
  readonly archive: EventArchive;

  /** Stages changes in order. They are committed with the next `durable`, or within 100 ms without it. Throws once closed. */
  write(changes: readonly Change[]): void;
  /** `write` for changes that outlive a failed commit. Resolves once they are stored. */
  writeUntilStored(changes: readonly Change[]): Promise<void>;
  /**
   * Resolves after the commit of everything staged so far. Never rejects. Not ok: nothing of it is stored, nor
   * anything that was staged until this answer. For control: the answer has the dropped changes of every failed
   * commit since the last one, for the rollback.
   * "soon": what is staged waits up to 100 ms for the commit of something more urgent.
   */
  durable(when?: CommitTime): Promise<Committed>;
  /** `durable` for every other room. It leaves the dropped changes to control. */
  committed(): Promise<Stored>;
  /** Tests for the watchdog that commits work: by the last commit since the last beat, or by a small one now. */
  beat(at: Instant): Beat;
  /** Report obligations and open reports. */
  owed(): Promise<Pick<StoredState, "duties" | "outbox">>;

  /** Rows of the record. */
  audit(query: AuditQuery): Promise<readonly AuditRow[]>;
  /** Verifies the hash chain, then the other tables. Millions of rows take seconds; other work runs in between. */
  verify(): Promise<Verified>;
  /** Finds the rows that concern an event whose last window ends at `until`. `windows`: its window for each vehicle. */
  eventRows(event: EventId, until: Instant, windows?: Windows): Promise<EventRows>;
  /** These rows, in order. One that is no longer stored is left out. */
  recordRows(seqs: readonly number[]): Promise<readonly RecordRow[]>;
  /** Hashes of those of these rows that are still stored. */
  hashes(seqs: readonly number[]): Promise<ReadonlyMap<number, string>>;
  /** Last row of the record, with its seal. A copy of it elsewhere, in the log for example, reveals a truncation. */
  head(): { readonly seq: number; readonly hash: string; readonly seal: string };
  /** Rows of the record to prune next. Null: none. */
  oldRows(query: OldRowsQuery): Promise<OldRows | null>;

  /** Stores readings within ten seconds. A crash loses at most that much. */
  keepReadings(readings: readonly Reading[]): void;
  /**
   * Readings of these chargers in [from, until), ordered by time for each charger. `onForeign`: called for each stored
   * message that another program changed; such messages are left out.
   */
  readings(
    chargers: Iterable<ChargerId>,
    from: Instant,
    until: Instant,
    onForeign?: OnForeign,
  ): Promise<readonly Reading[]>;
  /** `readings` of many windows, in their order. `pause`: awaited between them, for other work. */
  readingsIn(
    windows: readonly ChargersAt[],
    pause: () => Promise<void>,
    onForeign?: OnForeign,
  ): Promise<readonly Reading[]>;
  /** Chargers that a vehicle was on, on the days (UTC) that [from, until) touches. */
  seats(vehicle: VehicleId, from: Instant, until: Instant): Promise<readonly ChargerId[]>;
  /** `seats` for each of these windows. */
  seatsIn(vehicle: VehicleId, windows: readonly Window[]): Promise<readonly (readonly ChargerId[])[]>;
  /**
   * A short step of pruning readings: those older than `keep`, and the oldest above `most`. `keep` null: none is too old.
   * Null: the write is refused.
   */
  pruneReadings(now: Instant, keep: Millis | null, most?: number): Promise<KeptReadings | null>;

  /** Composed reports, newest first. */
  reports(query: ReportQuery): Promise<readonly ReportRecord[]>;
  /** A report with its body as sent to the partner. Null: no such report. Its body null: pruned, or changed on the disk. */
  report(name: string): Promise<{ readonly record: ReportRecord; readonly body: string | null } | null>;
  /** Names of closed reports that were composed before `before`, oldest first, at most `most`. */
  oldReports(before: Instant, most: number): Promise<readonly string[]>;

  /** Alarms as last stored. No decision depends on them. */
  alarms(): Promise<readonly Alarm[]>;
  /** Departures that were set, and registers at the plug-ins. One that was changed on the disk is left out. */
  departures(): Promise<StoredDepartures>;
  /** The last readable prices. No decision depends on them. */
  prices(): Promise<readonly PriceSeries[]>;
  /** Rejected input, newest first. */
  quarantine(limit: number): Promise<readonly Quarantined[]>;
  stats(): StoreStats;

  /** Keeps the stored files unchanged until `endCopy`. False: another copy is under way. */
  beginCopy(): boolean;
  /** False: the files changed during the copy, which is useless. */
  endCopy(): boolean;
}

/** Time for which the readings of some chargers are read. */
export interface ChargersAt extends Window {
  readonly chargers: readonly ChargerId[];
}

/** Departures that were set, and plug-ins by charger. */
export interface StoredDepartures {
  readonly departures: readonly SetDeparture[];
  readonly plugIns: ReadonlyMap<ChargerId, PlugIn>;
}

/** Result of a test commit. `isReadable`: committed data can still be read. */
export type Beat =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly isReadable: boolean };

/** The stored state of a site, opened for this process. */
export interface OpenedState<S extends Store = Store> {
  readonly ok: true;
  readonly store: S;
  readonly storedState: StoredState;
  /** Number of this run. Higher than that of every earlier run. */
  readonly epoch: number;
  readonly siteKey: Buffer;
  /** Directory of a damaged state; the open one is fresh. Null: nothing was damaged. */
  readonly setAside: string | null;
  /**
   * The state replaced a damaged or lost one, now or earlier. The last command of a charger without a
   * stored one is unknown.
   */
  readonly assertAll: boolean;
  /**
   * The state was restored from a backup, and that is not on record yet. A read-only verb leaves the row
   * to the daemon.
   */
  readonly isRestored: boolean;
  readonly lastRun: LastRun;
  /** Null: no other process can have this state. */
  readonly leadership: Leadership | null;
}

/** Facts that the last run left on record. Read them before the first commit. */
interface LastRun {
  /** First rows of the outages that were still open. */
  readonly openOutages: () => readonly AuditEntry[];
  /** Times at which the broker acknowledged a new level for a charger since `since`, at most an hour ago, oldest first. */
  readonly writes: (charger: ChargerId, since: Instant) => readonly Instant[];
  /** The newest rows about rejected input, newest first. */
  readonly rejected: () => readonly AuditRow[];
}

/**
 * Treatment of the state of an earlier version, which cannot read an upgraded one. `refuse`: a verb that only looks leaves it
 * as it is.
 */
export type OnOlder = "upgrade" | "refuse";

/** An unusable state is a value: `reason` is a sentence for the operator. */
export type Opened<S extends Store = Store> =
  | OpenedState<S>
  | { readonly ok: false; readonly reason: string; readonly broken?: Broken };

/**
 * Absent members do not filter. `after` and `before` are a `seq`, which is left out. `part`: entries of the row `after`
 * that were read; absent: all. `limit` defaults to 1,000.
 */
export interface AuditQuery {
  readonly event?: string;
  readonly charger?: string;
  readonly kind?: AuditKind;
  /** Leaves out rows that are later. */
  readonly notAfter?: Instant;
  readonly after?: number;
  readonly part?: number;
  readonly before?: number;
  /** Entry of the row `before`: the ones ahead of it are read as well. */
  readonly beforePart?: number;
  readonly limit?: number;
  /** Newest first; otherwise oldest first. */
  readonly newest?: boolean;
}

/** Rejected input as stored. `raw` is JSON text, capped by the reader. */
export interface Quarantined {
  readonly at: Instant;
  readonly source: string;
  readonly event: string | null;
  readonly path: string;
  readonly reason: string;
  readonly raw: string;
}

/** Absent members do not filter. `limit` defaults to 1,000. */
export interface ReportQuery {
  readonly event?: string;
  readonly limit?: number;
}

/**
 * Commits since the start (readings included), the longest commit in ms (it blocks the event loop), and the
 * size on disk.
 */
export interface StoreStats {
  readonly commits: number;
  readonly failures: number;
  readonly longestCommitMs: number;
  /** Reason of the last failure, and time since the first failure of this series. Null: the last commit succeeded. */
  readonly failing: { readonly reason: string; readonly forMs: number } | null;
  readonly bytes: number;
  /** Bytes that the disk of the state has left for this user. Null: not known. */
  readonly free: number | null;
}

/** State after a step of pruning. */
export interface KeptReadings {
  readonly rows: number;
  /** Some readings were deleted for their number, before their time. */
  readonly leftEarly: boolean;
}

/** A stored message of a charger that another program changed. */
interface ForeignReading {
  readonly charger: ChargerId;
  readonly at: Instant;
}

export type OnForeign = (reading: ForeignReading) => void;

/** `head`: hash of the last row. `readings`: stored messages with an HMAC. `unsigned`: those from before there was one. */
export type Verified =
  | {
      readonly ok: true;
      readonly rows: number;
      readonly head: string;
      readonly readings?: number;
      readonly unsigned?: number;
    }
  | Broken;

/** `seq`: the first wrong row of the record. Null: the fault lies outside the record. */
export interface Broken {
  readonly ok: false;
  readonly seq: number | null;
  readonly reason: string;
}

/** Audit rows that concern one event. */
export type EventRows =
  | {
      readonly ok: true;
      /** Their numbers, in order. */
      readonly seqs: readonly number[];
      /** The checkpoint that replaces the pruned rows. Null: nothing was pruned. */
      readonly checkpoint: RecordRow | null;
    }
  /** Row `seq` has a wrong hash: this record proves nothing. */
  | { readonly ok: false; readonly seq: number };

/** Oldest audit rows that may be pruned, with what the checkpoint row needs of the last one. */
export interface OldRows {
  readonly rows: number;
  readonly through: number;
  readonly hash: string;
  /** Time of the last of them. */
  readonly at: Instant;
}

export interface OldRowsQuery {
  /** Rows written before this moment may go. Null: no limit by age. */
  readonly before: Instant | null;
  /** Rows beyond this number may go. */
  readonly maxRows: number;
  /** Maximum rows per run. */
  readonly most: number;
}
