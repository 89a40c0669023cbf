import type { KeyObject } from "node:crypto";
import type { Logger } from "pino";

import type { AuditRow } from "../../domain/audit.ts";
import type { Change, Committed, Lost, Stored } from "../../domain/changes.ts";
import type { EventArchive } from "../../domain/event.ts";
import type { PriceSeries } from "../../domain/prices.ts";
import type { Reading } from "../../domain/reading.ts";
import type { ReportRecord } from "../../domain/report.ts";
import type {
  OldRows,
  OldRowsQuery,
  AuditQuery,
  Beat,
  CommitTime,
  Quarantined,
  StoreStats,
  EventRows,
  KeptReadings,
  ReportQuery,
  Store,
  Verified,
} from "../../domain/store.ts";
import type { EventId, Instant, Millis, Windows } from "../../domain/units.ts";
import { runCooperatively } from "../../platform/cooperative.ts";
import { seal, type Head } from "../chain.ts";
import { CommitStats, Unstored, isFault } from "../fault.ts";
import type { Disk } from "./disk.ts";
import type { Keys } from "../keys.ts";
import { ReadingBuffer } from "./readingBuffer.ts";
import { SqliteReads } from "./reads.ts";

/** Delay of changes that no caller waits for, such as outcomes, ms. A commit costs 30 KB of flash whatever it holds. */
const LAZY_COMMIT_MS = 100;
/** Staged changes above which a commit is not delayed. It blocks the event loop, and grows with each change. */
const MOST_DELAYED = 500;
/** Threshold of a slow commit, ms, plus one millisecond for each change. */
const SLOW_MS = 50;
/** Longest pause after a slow commit, ms. */
const LONGEST_PAUSE_MS = 1_000;
/** Staged changes above which readings wait: commands are being sent. */
const MANY = 100;
/** Retry interval for changes that must not be lost, ms. */
const UNSTORED_RETRY_MS = 5_000;
const DONE: Stored = { ok: true };
const NOTHING_LOST: Lost = { dropped: [], stored: null };

/**
 * State that survives a restart. Changes written in one tick of the event loop share a commit: a power cut leaves
 * all or none. On a slow disk several ticks share one: a sync blocks the loop, and starts must not be late.
 */
export class SqliteStore implements Store, Disposable {
  onCommitted: (rows: readonly AuditRow[], tookMs: number) => void = () => {};
  readonly proofKey: KeyObject;
  /** Reads without waiting, for this room and its tests. */
  readonly reads: SqliteReads;
  readonly #disk: Disk;
  readonly #siteKey: Buffer;
  readonly #log: Logger;
  readonly #monotonic: () => number;
  readonly #readings: ReadingBuffer;
  readonly #unstored = new Unstored();
  #staged: Change[] = [];
  #batch: PromiseWithResolvers<Stored> | null = null;
  #isCommitDue = false;
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
    this.#disk = disk;
    this.#siteKey = siteKey;
    this.#log = log;
    this.#monotonic = monotonic;
    this.#stats = new CommitStats(monotonic);
    this.#readings = new ReadingBuffer(disk, log, () => this.#staged.length < MANY);
    this.reads = new SqliteReads(disk, siteKey, this.#readings, log);
  }

  /** Stages changes in order. They are committed with the next `durable`, or soon without it. */
  write(changes: readonly Change[]): void {
    if (this.#disposed) throw new Error("the store is closed");
    const wereFew = this.#staged.length <= MOST_DELAYED;
    for (const change of changes) this.#staged.push(change);
    if (this.#staged.length === 0) return;
    const areMany = this.#staged.length > MOST_DELAYED;
    if (areMany && wereFew) this.#stopCommitTimer();
    const delay = Math.max(areMany ? 0 : LAZY_COMMIT_MS, this.#pause);
    this.#commitTimer ??= setTimeout(() => this.#commit(), delay);
  }

  /** `write` for changes that survive a failed commit. Resolves once they are stored. */
  writeUntilStored(changes: readonly Change[]): Promise<void> {
    this.write(changes);
    return this.#unstored.keep(changes);
  }

  async durable(when: CommitTime = "now"): Promise<Committed> {
    const outcome = await this.committed(when);
    const dropped = this.#unstored.takeDropped();
    const lost = dropped.length === 0 ? null : { dropped, stored: this.reads.storedOf(dropped) };
    if (!outcome.ok) return { ...outcome, ...(lost ?? NOTHING_LOST) };
    return lost === null ? outcome : { ...outcome, lost };
  }

  /** Resolves after the commit of everything written so far. Not ok: nothing is stored. */
  committed(when: CommitTime = "now"): Promise<Stored> {
    if (this.#staged.length === 0) return Promise.resolve(DONE);
    this.#batch ??= Promise.withResolvers();
    // The timer of `write` commits what is due soon.
    if (when === "now" && !this.#isCommitDue) {
      this.#isCommitDue = true;
      const pause = this.#pause;
      if (pause > 0) this.#pauseTimer = setTimeout(() => this.#commit(), pause);
      else setImmediate(() => this.#commit());
    }
    return this.#batch.promise;
  }

  /** Tests for the watchdog that commits work: by the last commit since the last beat, or by a small one now. */
  beat(at: Instant): Beat {
    const proven = this.#committedSinceBeat;
    this.#committedSinceBeat = false;
    const fault = proven ? null : this.#disk.beat(at);
    return fault === null
      ? { ok: true }
      : { ok: false, reason: fault.reason, isReadable: this.reads.isReadable };
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

  /** Stores readings within ten seconds. A crash loses at most that much. */
  keepReadings(readings: readonly Reading[]): void {
    this.#readings.add(readings);
  }

  /** See `pruneReadings`. Blocks the event loop for 20 ms. */
  async pruneReadings(now: Instant, keep: Millis | null, most = Infinity): Promise<KeptReadings | null> {
    return this.#readings.prune(now, keep, most);
  }

  stats(): StoreStats {
    return {
      ...this.#stats.view(),
      commits: this.#disk.commits,
      bytes: this.#disk.bytes,
      free: this.#disk.free,
    };
  }

  #commit(): void {
    const batch = this.#batch;
    const staged = [...this.#unstored.waiting, ...this.#staged];
    this.#stopCommitTimer();
    clearTimeout(this.#pauseTimer);
    clearTimeout(this.#retryTimer);
    this.#staged = [];
    this.#batch = null;
    this.#isCommitDue = false;
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
      const isFound = this.#disk.isFoundStored();
      const dropped = this.#unstored.failed(staged, isFound);
      const kept = staged.length - dropped;
      if (dropped > 0)
        this.#log.error({ reason, changes: dropped, kept }, "commit failed, its changes are dropped");
      if (kept > 0 && !this.#disposed) this.#retryTimer = setTimeout(() => this.#commit(), UNSTORED_RETRY_MS);
      return batch?.resolve({ ok: false, reason, ...(isFound ? { isUnsure: true } : {}) });
    }
    this.#unstored.succeeded(staged);
    batch?.resolve(DONE);
    if (outcome.rows.length > 0) this.onCommitted(outcome.rows, tookMs);
  }

  get archive(): EventArchive {
    const { events } = this.reads;
    return {
      whole: async (ids) => foundOf(ids, events.event),
      summaries: async (ids) => foundOf(ids, events.summary),
    };
  }

  // Asynchronous, because another store has to wait for its answers. What they return is in `Store`.
  owed = async (): ReturnType<Store["owed"]> => this.reads.owed();

  async audit(query: AuditQuery): Promise<readonly AuditRow[]> {
    return this.reads.audit(query);
  }

  async verify(): Promise<Verified> {
    return runCooperatively(this.reads.verifying(), this.#monotonic);
  }

  async eventRows(event: EventId, until: Instant, windows?: Windows): Promise<EventRows> {
    return runCooperatively(this.reads.eventRows(event, until, windows), this.#monotonic);
  }

  recordRows: Store["recordRows"] = async (seqs) => this.reads.recordRows(seqs);
  hashes: Store["hashes"] = async (seqs) => this.reads.hashes(seqs);

  async oldRows(query: OldRowsQuery): Promise<OldRows | null> {
    return this.reads.oldRows(query);
  }

  async oldReports(before: Instant, most: number): Promise<readonly string[]> {
    return this.reads.oldReports(before, most);
  }

  readings: Store["readings"] = async (...asked) => this.reads.readings(...asked);

  async readingsIn(...[windows, pause, onForeign]: Parameters<Store["readingsIn"]>) {
    const readings: Reading[] = [];
    for (const { chargers, from, until } of windows) {
      for (const reading of this.reads.readings(chargers, from, until, onForeign)) readings.push(reading);
      await pause();
    }
    return readings;
  }

  seats: Store["seats"] = async (...asked) => this.reads.seats(...asked);
  seatsIn: Store["seatsIn"] = async (vehicle, windows) =>
    windows.map(({ from, until }) => this.reads.seats(vehicle, from, until));

  async reports(query: ReportQuery): Promise<readonly ReportRecord[]> {
    return this.reads.reports(query);
  }

  async report(name: string): ReturnType<Store["report"]> {
    return this.reads.report(name);
  }

  async alarms(): ReturnType<Store["alarms"]> {
    return this.reads.alarms();
  }

  departures = async (): ReturnType<Store["departures"]> => this.reads.departures();

  prices = async (): Promise<readonly PriceSeries[]> => this.reads.prices();

  async quarantine(limit: number): Promise<readonly Quarantined[]> {
    return this.reads.quarantine(limit);
  }

  #stopCommitTimer(): void {
    clearTimeout(this.#commitTimer);
    this.#commitTimer = undefined;
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

  async [Symbol.asyncDispose](): Promise<void> {
    this[Symbol.dispose]();
  }
}

function foundOf<T>(ids: readonly EventId[], read: (id: EventId) => T | null): ReadonlyMap<EventId, T> {
  const found = ids.map((id) => [id, read(id)] as const);
  return new Map(found.filter((entry): entry is [EventId, T] => entry[1] !== null));
}
