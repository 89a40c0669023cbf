import type { KeyObject } from "node:crypto";
import type { Logger } from "pino";

import type { AuditEntry, AuditRow } from "../../domain/audit.ts";
import type { Change, Committed, StoredState, Scope, StoredScope } from "../../domain/changes.ts";
import type { EventArchive } from "../../domain/event.ts";
import type { PriceSeries } from "../../domain/prices.ts";
import type { Reading } from "../../domain/reading.ts";
import type { ReportRecord } from "../../domain/report.ts";
import type { OldRows, OldRowsQuery } from "../../domain/retention.ts";
import type {
  AuditQuery,
  Quarantined,
  StoreStats,
  EventRows,
  KeptReadings,
  OnForeign,
  ReportQuery,
  Store,
  Verified,
} from "../../domain/store.ts";
import type { ChargerId, EventId, Instant, Millis, VehicleId, Windows } from "../../domain/units.ts";
import { runToEnd, type ResumableTask } from "../../platform/cooperative.ts";
import {
  queryAudit,
  queryPrices,
  queryQuarantine,
  queryWrites,
  queryOldReports,
  queryOldRows,
} from "./auditRows.ts";
import { seal, type Head } from "./chain.ts";
import { CommitStats } from "./commitBatch.ts";
import type { Disk } from "./disk.ts";
import { archiveOf, queryEventRows, queryHashes, queryOpenOutages } from "./eventRecord.ts";
import { Unstored, isFault } from "./fault.ts";
import type { Keys } from "./keys.ts";
import { loadOwed, loadScope, knownSince, restoredIn } from "./loadState.ts";
import { ReadingBuffer } from "./readingBuffer.ts";
import { queryReport, queryReports } from "./reports.ts";
import { verifyingState } from "./verify.ts";

/** Delay of changes that no caller waits for, such as outcomes, ms. A commit costs 30 KB of flash whatever it holds. */
const LAZY_COMMIT_MS = 100;
/** Threshold of a slow commit, ms, plus one millisecond for each change. */
const SLOW_MS = 50;
/** Longest pause after a slow commit, ms. */
const LONGEST_PAUSE_MS = 1_000;
/** Above this many staged changes the depot is receiving commands: readings wait. */
const MANY = 100;
/** Retry interval for changes that must not be lost, ms. */
const UNSTORED_RETRY_MS = 5_000;
const DONE: Committed = { ok: true };

/**
 * State that survives a restart. Changes written in one tick of the event loop share a commit: a power cut leaves
 * all or none. On a slow disk several ticks share one: a sync blocks the loop, and starts must not be late.
 */
export class SqliteStore implements Store {
  onCommitted: (rows: readonly AuditRow[], tookMs: number) => void = () => {};
  readonly proofKey: KeyObject;
  readonly events: EventArchive;
  readonly #disk: Disk;
  readonly #siteKey: Buffer;
  readonly #log: Logger;
  readonly #monotonic: () => number;
  readonly #readings: ReadingBuffer;
  readonly #unstored = new Unstored();
  #staged: Change[] = [];
  #batch: PromiseWithResolvers<Committed> | null = null;
  #commitTimer: NodeJS.Timeout | undefined;
  #pauseTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  /** Monotonic, ms: no commit before it, to leave time for other work. */
  #pausedUntil = -Infinity;
  readonly #stats: CommitStats;
  #committedSinceBeat = false;
  #disposed = false;

  constructor(disk: Disk, { siteKey, proofKey }: Keys, log: Logger, monotonic: () => number) {
    this.proofKey = proofKey;
    this.events = archiveOf(disk, siteKey, log);
    this.#disk = disk;
    this.#siteKey = siteKey;
    this.#log = log;
    this.#monotonic = monotonic;
    this.#stats = new CommitStats(monotonic);
    this.#readings = new ReadingBuffer(disk, log, () => this.#staged.length < MANY);
  }

  /** Stages changes in order. They are committed with the next `durable`, or soon without it. */
  write(changes: readonly Change[]): void {
    if (this.#disposed) throw new Error("the store is closed");
    for (const change of changes) this.#staged.push(change);
    if (this.#staged.length === 0) return;
    this.#commitTimer ??= setTimeout(() => this.#commit(), Math.max(LAZY_COMMIT_MS, this.#pause));
  }

  /** As `write`, for changes that survive a failed commit. Resolves once they are stored. */
  writeUntilStored(changes: readonly Change[]): Promise<void> {
    this.write(changes);
    return this.#unstored.keep(changes);
  }

  /** Resolves after the commit of everything written so far, mostly at the end of this tick. Not ok: nothing is stored. */
  durable(): Promise<Committed> {
    if (this.#staged.length === 0) return Promise.resolve(DONE);
    if (this.#batch === null) {
      this.#batch = Promise.withResolvers();
      const pause = this.#pause;
      if (pause > 0) this.#pauseTimer = setTimeout(() => this.#commit(), pause);
      else setImmediate(() => this.#commit());
    }
    return this.#batch.promise;
  }

  /** Tests for the watchdog that commits work: by the last commit since the last beat, or by a small one now. */
  beat(at: Instant): Committed {
    const proven = this.#committedSinceBeat;
    this.#committedSinceBeat = false;
    const fault = proven ? null : this.#disk.beat(at);
    return fault === null ? DONE : { ok: false, reason: fault.reason, dropped: [] };
  }

  /** The stored state of a scope, for a rollback after a failed commit. Throws if the disk cannot be read. */
  stored(scope: Scope): StoredScope {
    const stored = loadScope(
      this.#disk.connection.database,
      { siteKey: this.#siteKey, isSigned: true },
      scope,
    );
    if (isFault(stored)) throw new Error(stored.reason);
    return { ...stored, commands: knownSince(stored.commands, restoredIn(this.#disk.connection)) };
  }

  /** Stored report obligations and open reports. Throws if the disk cannot be read. */
  owed(): Pick<StoredState, "duties" | "outbox"> {
    const owed = loadOwed(this.#disk.connection.database, { siteKey: this.#siteKey, isSigned: true });
    if (isFault(owed)) throw new Error(owed.reason);
    return owed;
  }

  audit(query: AuditQuery): readonly AuditRow[] {
    return queryAudit(this.#disk.connection.database, query);
  }

  writes(charger: ChargerId, since: Instant): readonly Instant[] {
    return queryWrites(this.#disk.connection.database, charger, since);
  }

  /** Verifies the hash chain, then the other tables. Millions of rows take seconds, so the task yields after each step. */
  verifying(): ResumableTask<Verified> {
    const disk = this.#disk;
    return verifyingState(
      () => disk.connection,
      this.#siteKey,
      () => disk.storedEpoch,
    );
  }

  verify = (): Verified => runToEnd(this.verifying());

  eventRows(event: EventId, until: Instant, windows: Windows = new Map()): Generator<void, EventRows> {
    return queryEventRows(this.#disk.connection.database, event, until, windows);
  }

  openOutages(): readonly AuditEntry[] {
    return queryOpenOutages(this.#disk.connection.database);
  }

  hashes(seqs: readonly number[]): ReadonlyMap<number, string> {
    return queryHashes(this.#disk.connection.database, seqs);
  }

  oldRows(query: OldRowsQuery): OldRows | null {
    return queryOldRows(this.#disk.connection.database, query);
  }

  oldReports(before: Instant, most: number): readonly string[] {
    return queryOldReports(this.#disk.connection.database, before, most);
  }

  /** See `Disk.beginCopy`. */
  beginCopy(): boolean {
    return this.#disk.beginCopy();
  }

  /** See `Disk.endCopy`. */
  endCopy(): boolean {
    return this.#disk.endCopy();
  }

  /** The head of the record with its seal. A copy of it elsewhere, in the log for example, reveals a truncation. */
  head(): Head & { readonly seal: string } {
    const { head } = this.#disk;
    return { ...head, seal: seal(this.#siteKey, head) };
  }

  quarantine(limit: number): readonly Quarantined[] {
    return queryQuarantine(this.#disk.connection.database, limit);
  }

  prices(): readonly PriceSeries[] {
    return queryPrices(this.#disk.connection.database);
  }

  /** Stores readings within ten seconds. A crash loses at most that much. */
  keepReadings(readings: readonly Reading[]): void {
    this.#readings.add(readings);
  }

  /** Readings of these chargers in [from, until), ordered by time for each charger, waiting ones included. */
  readings(chargers: Iterable<ChargerId>, from: Instant, until: Instant, onForeign?: OnForeign) {
    return this.#readings.of([...chargers], from, until, onForeign);
  }

  seats(vehicle: VehicleId, from: Instant, until: Instant): readonly ChargerId[] {
    return this.#readings.seats(vehicle, from, until);
  }

  /**
   * A short step of pruning readings, see `pruneReadings`. Call it every minute or so. Null: the disk rejects
   * the write.
   */
  pruneReadings(now: Instant, keep: Millis | null, most = Infinity): KeptReadings | null {
    return this.#readings.prune(now, keep, most);
  }

  reports(query: ReportQuery): readonly ReportRecord[] {
    return queryReports(this.#disk.connection.database, this.#siteKey, query);
  }

  report(name: string): ReturnType<typeof queryReport> {
    return queryReport(this.#disk.connection.database, this.#siteKey, name);
  }

  stats(): StoreStats {
    return { ...this.#stats.view(), commits: this.#disk.commits, bytes: this.#disk.bytes };
  }

  #commit(): void {
    const batch = this.#batch;
    const staged = [...this.#unstored.waiting, ...this.#staged];
    clearTimeout(this.#commitTimer);
    clearTimeout(this.#pauseTimer);
    clearTimeout(this.#retryTimer);
    this.#commitTimer = undefined;
    this.#staged = [];
    this.#batch = null;
    if (staged.length === 0) return batch?.resolve(DONE);
    const began = this.#monotonic();
    const outcome = this.#disk.commit(staged);
    const ended = this.#monotonic();
    const tookMs = ended - began;
    this.#stats.count(tookMs, isFault(outcome) ? outcome.reason : null);
    if (tookMs > Math.max(SLOW_MS, staged.length))
      this.#pausedUntil = ended + Math.min(tookMs, LONGEST_PAUSE_MS);
    this.#committedSinceBeat = !isFault(outcome);
    if (isFault(outcome)) {
      const { reason } = outcome;
      const dropped = this.#unstored.failed(staged);
      const kept = staged.length - dropped;
      if (dropped > 0)
        this.#log.error({ reason, changes: dropped, kept }, "commit failed, its changes are dropped");
      if (kept > 0 && !this.#disposed) this.#retryTimer = setTimeout(() => this.#commit(), UNSTORED_RETRY_MS);
      batch?.resolve({ ok: false, reason, dropped: this.#unstored.takeDropped() });
      return;
    }
    this.#unstored.succeeded();
    batch?.resolve(DONE);
    if (outcome.rows.length > 0) this.onCommitted(outcome.rows, tookMs);
  }

  /** Milliseconds until the next commit may begin. Not positive: at once. */
  get #pause(): number {
    return this.#pausedUntil - this.#monotonic();
  }

  /** Commits staged changes, then releases the lock. */
  [Symbol.dispose](): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#commit();
    this.#readings[Symbol.dispose]();
    this.#disk[Symbol.dispose]();
  }
}
