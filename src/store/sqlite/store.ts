import type { KeyObject } from "node:crypto";
import type { Logger } from "pino";

import type { AuditEntry } from "../../domain/audit.ts";
import type { Change, Committed, StoredState, Scope, StoredScope } from "../../domain/changes.ts";
import type { EventArchive } from "../../domain/event.ts";
import type { PriceSeries } from "../../domain/prices.ts";
import type { Reading } from "../../domain/reading.ts";
import type { ReportRecord } from "../../domain/report.ts";
import type { OldRows, OldRowsQuery } from "../../domain/retention.ts";
import type { ChargerId, EventId, Instant, Millis, VehicleId, Windows } from "../../domain/units.ts";
import { runToEnd, type ResumableTask } from "../../platform/cooperative.ts";
import {
  queryAudit,
  queryPrices,
  queryQuarantine,
  queryWrites,
  type AuditQuery,
  type Quarantined,
  queryOldReports,
  queryOldRows,
  type AuditRow,
} from "./auditRows.ts";
import { seal, type Head } from "./chain.ts";
import { CommitStats, type StoreStats } from "./commitBatch.ts";
import type { Disk } from "./disk.ts";
import { archiveOf, type EventRows, queryEventRows, queryHashes, queryOpenOutages } from "./eventRecord.ts";
import { Unstored } from "./fault.ts";
import type { Keys } from "./keys.ts";
import { loadOwed, loadScope, knownSince, restoredIn } from "./loadState.ts";
import { isFault } from "./openDatabase.ts";
import type { KeptReadings } from "./pruneReadings.ts";
import { ReadingBuffer } from "./readingBuffer.ts";
import type { OnForeign } from "./readings.ts";
import { queryReport, queryReports, type ReportQuery } from "./reports.ts";
import { type Verified, verifyingState } from "./verify.ts";

/** What nobody waits for, outcomes above all, is gathered this long: a commit costs 30 KB of flash whatever is in it. */
const UNHURRIED_MS = 100;
/** A commit that took longer than this, and a millisecond for each change, tells of a slow disk (F08). */
const SLOW_MS = 50;
/** So long at most a slow disk makes the next commit wait, ms. */
const LONGEST_REST_MS = 1_000;
/** More changes than this on their way to the disk are a depot being told something: readings wait meanwhile. */
const MANY = 100;
/** After a failed commit the changes that must not be lost are tried again this often, ms. */
const UNSTORED_RETRY_MS = 5_000;
const DONE: Committed = { ok: true };

/**
 * What survives a restart. Changes written in one turn of the event loop are one commit: all who wait for it
 * share its one sync, and a power cut leaves all of them or none. On a slow disk more turns share one: the loop stands
 * still during a sync, and must have as long for everything else, or starts and leases would be late (F08).
 */
export class Store implements Disposable {
  /** Called after each commit that added to the record, with what it added and how long it took. */
  onCommitted: (rows: readonly AuditRow[], tookMs: number) => void = () => {};

  /** Private; signs proofs. */
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
  #later: NodeJS.Timeout | undefined;
  #rested: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  /** Until then the loop is to have time for other things, monotonic ms. */
  #restsUntil = -Infinity;
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

  /** Staged in order. Committed with the next turn that somebody waits for, or soon by itself. */
  write(changes: readonly Change[]): void {
    if (this.#disposed) throw new Error("the store is closed");
    for (const change of changes) this.#staged.push(change);
    if (this.#staged.length === 0) return;
    this.#later ??= setTimeout(() => this.#commit(), Math.max(UNHURRIED_MS, this.#rest));
  }

  /** The same for changes that outlive a failed commit. Resolves once they are stored. */
  writeUntilStored(changes: readonly Change[]): Promise<void> {
    this.write(changes);
    return this.#unstored.keep(changes);
  }

  /** Answers after the commit that holds everything written so far, mostly at the end of this turn. Not ok: none of it was kept. */
  durable(): Promise<Committed> {
    if (this.#staged.length === 0) return Promise.resolve(DONE);
    if (this.#batch === null) {
      this.#batch = Promise.withResolvers();
      const rest = this.#rest;
      if (rest > 0) this.#rested = setTimeout(() => this.#commit(), rest);
      else setImmediate(() => this.#commit());
    }
    return this.#batch.promise;
  }

  /** Whether commits work: by the last one since the last beat, or by a small one now. For the watchdog. */
  beat(at: Instant): Committed {
    const proven = this.#committedSinceBeat;
    this.#committedSinceBeat = false;
    const fault = proven ? null : this.#disk.beat(at);
    return fault === null ? DONE : { ok: false, reason: fault.reason, dropped: [] };
  }

  /** The stored state of a scope: for rolling back after a failed commit. Throws where the disk cannot be read. */
  stored(scope: Scope): StoredScope {
    const stored = loadScope(
      this.#disk.connection.database,
      { siteKey: this.#siteKey, isSigned: true },
      scope,
    );
    if (isFault(stored)) throw new Error(stored.reason);
    return { ...stored, commands: knownSince(stored.commands, restoredIn(this.#disk.connection)) };
  }

  /** What is stored of reports that are owed. Throws where the disk cannot be read. */
  owed(): Pick<StoredState, "duties" | "outbox"> {
    const owed = loadOwed(this.#disk.connection.database, { siteKey: this.#siteKey, isSigned: true });
    if (isFault(owed)) throw new Error(owed.reason);
    return owed;
  }

  /** Rows of the record, oldest first unless told otherwise; only what is committed. */
  audit(query: AuditQuery): readonly AuditRow[] {
    return queryAudit(this.#disk.connection.database, query);
  }

  /** When the broker took a new level for this charger since then, oldest first. */
  writes(charger: ChargerId, since: Instant): readonly Instant[] {
    return queryWrites(this.#disk.connection.database, charger, since);
  }

  /** Follows the whole hash chain, then checks what is stored beside it: seconds for millions of rows, so that it can be left after each step. */
  verifying(): ResumableTask<Verified> {
    const disk = this.#disk;
    return verifyingState(
      () => disk.connection,
      this.#siteKey,
      () => disk.storedEpoch,
    );
  }

  /** The same in one go, for who has nothing else to do. */
  verify = (): Verified => runToEnd(this.verifying());

  /** What the record says of an event whose last window ends at `until`. `windows`: when it asks what of whom. */
  eventRows(event: EventId, until: Instant, windows: Windows = new Map()): Generator<void, EventRows> {
    return queryEventRows(this.#disk.connection.database, event, until, windows);
  }

  /** Rows of outages that are not over by the end of the record. */
  openOutages(): readonly AuditEntry[] {
    return queryOpenOutages(this.#disk.connection.database);
  }

  /** The hashes of those of these rows that are kept. */
  hashes(seqs: readonly number[]): ReadonlyMap<number, string> {
    return queryHashes(this.#disk.connection.database, seqs);
  }

  /** What of the record may be pruned next. */
  oldRows(query: OldRowsQuery): OldRows | null {
    return queryOldRows(this.#disk.connection.database, query);
  }

  /** Names of reports that were composed before then and are closed. */
  oldReports(before: Instant, most: number): readonly string[] {
    return queryOldReports(this.#disk.connection.database, before, most);
  }

  /** See `Disk.keepStill`. */
  keepStill(): boolean {
    return this.#disk.keepStill();
  }

  /** See `Disk.copied`. */
  copied(): boolean {
    return this.#disk.copied();
  }

  /** The end of the record with its seal: kept elsewhere, in the log say, it shows that later nothing was cut off. */
  head(): Head & { readonly seal: string } {
    const { head } = this.#disk;
    return { ...head, seal: seal(this.#siteKey, head) };
  }

  /** Input that could not be read, newest first. */
  quarantine(limit: number): readonly Quarantined[] {
    return queryQuarantine(this.#disk.connection.database, limit);
  }

  /** The last prices that could be read. Nothing is decided by them. */
  prices(): readonly PriceSeries[] {
    return queryPrices(this.#disk.connection.database);
  }

  /** Kept within ten seconds: a crash may lose that much, and nothing else. */
  keep(readings: readonly Reading[]): void {
    this.#readings.add(readings);
  }

  /** What these chargers said and were told in [from, until), each in its order of time, the latest included. */
  readings(chargers: Iterable<ChargerId>, from: Instant, until: Instant, onForeign?: OnForeign) {
    return this.#readings.of([...chargers], from, until, onForeign);
  }

  /** The chargers that a vehicle was on, on the days that [from, until) touches. */
  seats(vehicle: VehicleId, from: Instant, until: Instant): readonly ChargerId[] {
    return this.#readings.seats(vehicle, from, until);
  }

  /** One small step of forgetting readings: see `pruneReadings`. To be called every minute or so. Null: the disk refuses. */
  pruneReadings(now: Instant, keep: Millis | null, most = Infinity): KeptReadings | null {
    return this.#readings.prune(now, keep, most);
  }

  /** Reports that were composed, the newest first. */
  reports(query: ReportQuery): readonly ReportRecord[] {
    return queryReports(this.#disk.connection.database, this.#siteKey, query);
  }

  /** One report with its body as it goes to the partner; null: there is none of this name. */
  report(name: string): ReturnType<typeof queryReport> {
    return queryReport(this.#disk.connection.database, this.#siteKey, name);
  }

  stats(): StoreStats {
    return { ...this.#stats.view(), commits: this.#disk.commits, bytes: this.#disk.bytes };
  }

  #commit(): void {
    const turn = this.#batch;
    const staged = [...this.#unstored.waiting, ...this.#staged];
    clearTimeout(this.#later);
    clearTimeout(this.#rested);
    clearTimeout(this.#retry);
    this.#later = undefined;
    this.#staged = [];
    this.#batch = null;
    if (staged.length === 0) return turn?.resolve(DONE);
    const began = this.#monotonic();
    const outcome = this.#disk.commit(staged);
    const ended = this.#monotonic();
    const tookMs = ended - began;
    this.#stats.count(tookMs, isFault(outcome) ? outcome.reason : null);
    if (tookMs > Math.max(SLOW_MS, staged.length))
      this.#restsUntil = ended + Math.min(tookMs, LONGEST_REST_MS);
    this.#committedSinceBeat = !isFault(outcome);
    if (isFault(outcome)) {
      const { reason } = outcome;
      const dropped = this.#unstored.failed(staged);
      const kept = staged.length - dropped;
      if (dropped > 0)
        this.#log.error({ reason, changes: dropped, kept }, "commit failed, its changes are dropped");
      if (kept > 0 && !this.#disposed) this.#retry = setTimeout(() => this.#commit(), UNSTORED_RETRY_MS);
      turn?.resolve({ ok: false, reason, dropped: this.#unstored.takeDropped() });
      return;
    }
    this.#unstored.succeeded();
    turn?.resolve(DONE);
    if (outcome.rows.length > 0) this.onCommitted(outcome.rows, tookMs);
  }

  /** Milliseconds until the next commit may begin; not positive: at once. */
  get #rest(): number {
    return this.#restsUntil - this.#monotonic();
  }

  /** Commits what is staged, then gives the state free. */
  [Symbol.dispose](): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#commit();
    this.#readings[Symbol.dispose]();
    this.#disk[Symbol.dispose]();
  }
}
