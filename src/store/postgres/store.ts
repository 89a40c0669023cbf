import type { KeyObject } from "node:crypto";
import type { Logger } from "pino";

import type { AuditRow } from "../../domain/audit.ts";
import type { Change, Committed, Lost, Stored } from "../../domain/changes.ts";
import type { EventArchive, EventSummary } from "../../domain/event.ts";
import type { Reading } from "../../domain/reading.ts";
import type { Beat, CommitTime, Store, StoreStats } from "../../domain/store.ts";
import type { EventId, Instant, Millis, Windows } from "../../domain/units.ts";
import { eventIn } from "../bodies.ts";
import { seal } from "../chain.ts";
import { CommitStats, Unstored } from "../fault.ts";
import { queryAudit, queryHashes, queryOldRows } from "./auditRows.ts";
import { archived, loadDropped, loadOwed } from "./bodies.ts";
import type { Commits, KnownHead } from "./commits.ts";
import { faultOf, type SiteConnections } from "./database.ts";
import { queryEventRows, queryRecordRows } from "./eventRows.ts";
import type { Lease } from "./lease.ts";
import { oldReports, readLists, readQuarantine, readReport, readReports, type StoredLists } from "./lists.ts";
import { ReadingQueue } from "./readingQueue.ts";
import { pruneReadings } from "./readings.ts";
import { verify } from "./verify.ts";

/** Delay of changes that no caller waits for, ms. */
const LAZY_COMMIT_MS = 100;
/** Retry interval for changes that must not be lost, ms. */
const UNSTORED_RETRY_MS = 1_000;
const DONE: Stored = { ok: true };
const UNSTORED_BEFORE = { ok: false, reason: "an earlier commit failed" } as const;
const REFUSED: Committed = { ...UNSTORED_BEFORE, dropped: [], stored: null };

/** Parts of an opened store. */
export interface PostgresParts {
  readonly from: SiteConnections;
  readonly lease: Lease;
  readonly commits: Commits;
  readonly known: KnownHead;
  readonly lists: StoredLists;
  readonly proofKey: KeyObject;
  readonly log: Logger;
  readonly monotonic: () => number;
}

/**
 * The state of a site in PostgreSQL, for the process that leads it. Changes that are written while a commit is on its
 * way share the next one.
 */
export class PostgresStore implements Store {
  onCommitted: (rows: readonly AuditRow[], tookMs: number) => void = () => {};
  /** Id of the site. */
  readonly site: string;
  readonly proofKey: KeyObject;
  readonly archive: EventArchive;
  readonly #parts: PostgresParts;
  readonly #from: SiteConnections;
  readonly #readings: ReadingQueue;
  readonly #stats: CommitStats;
  readonly #unstored = new Unstored();
  /** As the start read them. Null: a commit may have changed them. */
  #lists: StoredLists | null;
  #commitCount = 0;
  #bytes = 0;
  #staged: Change[] = [];
  /** Result of the commit of the staged changes. Null: no caller waits for it. */
  #batch: PromiseWithResolvers<Stored> | null = null;
  /** A caller waits for a commit now. */
  #isCommitDue = false;
  /** The commit on its way, and all that follow it at once. Null: none. */
  #running: Promise<Stored> | null = null;
  /** The read of the stored state after a failed commit. Null: none is under way. */
  #recovery: Promise<Lost> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isDisposed = false;

  constructor(parts: PostgresParts) {
    const { from, lease, log, monotonic, proofKey } = parts;
    this.#parts = parts;
    this.#from = from;
    this.site = from.site;
    this.proofKey = proofKey;
    this.#lists = parts.lists;
    this.#stats = new CommitStats(monotonic);
    this.#readings = new ReadingQueue(from, lease.epoch, log, () => (this.#commitCount += 1));
    this.archive = {
      whole: (ids) => archived(from, "event", ids, eventIn),
      summaries: (ids) => archived(from, "event_summary", ids, (body): EventSummary => JSON.parse(body)),
    };
  }

  write(changes: readonly Change[]): void {
    if (this.#isDisposed) throw new Error("the store is closed");
    for (const change of changes) this.#staged.push(change);
    if (this.#staged.length > 0) this.#timer ??= setTimeout(() => void this.#flush(), LAZY_COMMIT_MS);
  }

  writeUntilStored(changes: readonly Change[]): Promise<void> {
    this.write(changes);
    return this.#unstored.keep(changes);
  }

  async durable(when: CommitTime = "now"): Promise<Committed> {
    if (this.#recovery !== null) return this.#afterRollback(REFUSED);
    const outcome = await this.committed(when);
    // Another caller of the same commit rolls back an earlier one, which nobody waited for.
    if (this.#recovery !== null) return this.#afterRollback(outcome.ok ? outcome : REFUSED);
    const dropped = this.#unstored.takeDropped();
    const hasLost = dropped.length > 0 && this.#parts.lease.state !== "lost";
    const lost = hasLost ? await this.#recover(dropped) : null;
    // Without the lease this run decides nothing any more, so there is nothing to roll back.
    const isOver = lost === null || lost.stored === null;
    if (!outcome.ok) return { ...outcome, ...(isOver ? { dropped: [], stored: null } : lost) };
    return isOver ? outcome : { ...outcome, lost };
  }

  /** A decision before the rollback is one on a state that is not stored: a repeat of an event may be none. */
  async #afterRollback(answer: Committed): Promise<Committed> {
    await this.#recovery;
    return answer;
  }

  async #recover(dropped: readonly Change[]): Promise<Lost> {
    this.#recovery = loadDropped(this.#from, dropped, {
      isOver: () => this.#isDisposed || this.#parts.lease.state === "lost",
      commits: this.#parts.commits,
      dropLater: () => {
        this.#failed(this.#unstored.waiting, UNSTORED_BEFORE.reason);
        return this.#unstored.takeDropped();
      },
    });
    const lost = await this.#recovery;
    this.#recovery = null;
    // Changes that are kept.
    void this.#flush();
    return lost;
  }

  committed(when: CommitTime = "now"): Promise<Stored> {
    if (this.#staged.length === 0) return this.#running ?? Promise.resolve(DONE);
    this.#batch ??= Promise.withResolvers();
    // The timer of `write` commits what is due soon.
    if (when === "now" && !this.#isCommitDue) {
      this.#isCommitDue = true;
      setImmediate(() => void this.#flush());
    }
    return this.#batch.promise;
  }

  /** By the lease: its renewal is a commit. A restart does not bring the database back. */
  beat(_at: Instant): Beat {
    const { state } = this.#parts.lease;
    if (state === "leading") return { ok: true };
    const reason = this.#stats.view().failing?.reason ?? `the lease is ${state}`;
    return { ok: false, reason, isReadable: true };
  }

  head(): { readonly seq: number; readonly hash: string; readonly seal: string } {
    const { head } = this.#parts.commits;
    return { ...head, seal: seal(this.#from.siteKey, head) };
  }

  stats(): StoreStats {
    return { ...this.#stats.view(), commits: this.#commitCount, bytes: this.#bytes, free: null };
  }

  /** Commits until no caller waits. */
  async #flush(): Promise<Stored> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // The changes are committed after it.
    if (this.#recovery !== null) return UNSTORED_BEFORE;
    if (this.#running !== null) return this.#running;
    let last: Stored = DONE;
    do {
      this.#running = this.#commit();
      last = await this.#running;
    } while (this.#batch !== null);
    this.#running = null;
    if (this.#staged.length > 0) this.#timer ??= setTimeout(() => void this.#flush(), LAZY_COMMIT_MS);
    return last;
  }

  async #commit(): Promise<Stored> {
    const { commits, monotonic, lease } = this.#parts;
    const { staged, batch } = this.#takeStaged();
    const changes = [...this.#unstored.waiting, ...staged];
    if (changes.length === 0) {
      batch?.resolve(DONE);
      return DONE;
    }
    if (changes.some(({ kind }) => kind !== "audit" && kind !== "evaluated")) this.#lists = null;
    const began = monotonic();
    const outcome = await commits.commit(changes);
    const tookMs = monotonic() - began;
    const isStored = !("reason" in outcome);
    this.#stats.count(tookMs, isStored ? null : outcome.reason);
    if (isStored) {
      this.#commitCount += 1;
      this.#unstored.succeeded(changes);
      this.#parts.known.saw(commits.head, lease.epoch);
      batch?.resolve(DONE);
      if (outcome.rows.length > 0) this.onCommitted(outcome.rows, tookMs);
      return DONE;
    }
    batch?.resolve(outcome);
    const kept = this.#failed(changes, outcome.reason);
    if (kept > 0 && !this.#isDisposed && this.#parts.lease.state !== "lost")
      this.#timer ??= setTimeout(() => void this.#flush(), UNSTORED_RETRY_MS);
    return outcome;
  }

  /** The staged changes, and the callers that wait for their commit. */
  #takeStaged() {
    const taken = { staged: this.#staged, batch: this.#batch };
    this.#staged = [];
    this.#batch = null;
    this.#isCommitDue = false;
    return taken;
  }

  /**
   * Drops these changes, and those that were staged since: they were decided on a state that is not stored. Those that must
   * not be lost are tried again each second. Returns their number.
   */
  #failed(changes: readonly Change[], reason: string): number {
    const { staged, batch } = this.#takeStaged();
    const all = [...changes, ...staged];
    const dropped = this.#unstored.failed(all);
    const kept = all.length - dropped;
    if (dropped > 0)
      this.#parts.log.error({ reason, changes: dropped, kept }, "commit failed, its changes are dropped");
    batch?.resolve({ ok: false, reason });
    return kept;
  }

  owed: Store["owed"] = () => loadOwed(this.#from, this.#parts.commits);
  audit: Store["audit"] = (query) => queryAudit(this.#from, query);
  hashes: Store["hashes"] = (seqs) => queryHashes(this.#from, seqs);
  oldRows: Store["oldRows"] = (query) => queryOldRows(this.#from, query);
  verify: Store["verify"] = () => verify(this.#from);

  eventRows(event: EventId, until: Instant, windows: Windows = new Map()): ReturnType<Store["eventRows"]> {
    return queryEventRows(this.#from, event, until, windows);
  }

  recordRows: Store["recordRows"] = (seqs) => queryRecordRows(this.#from, seqs);

  keepReadings(readings: readonly Reading[]): void {
    this.#readings.add(readings);
  }

  readings: Store["readings"] = (chargers, from, until, onForeign) =>
    this.#readings.of([{ chargers: [...chargers], from, until }], async () => {}, onForeign);
  readingsIn: Store["readingsIn"] = (...asked) => this.#readings.of(...asked);
  seats: Store["seats"] = async (vehicle, from, until) =>
    (await this.#readings.seats(vehicle, [{ from, until }])).flat();
  seatsIn: Store["seatsIn"] = (vehicle, windows) => this.#readings.seats(vehicle, windows);

  async pruneReadings(now: Instant, keep: Millis | null, most = 1e12): ReturnType<Store["pruneReadings"]> {
    try {
      const kept = await pruneReadings(this.#from, this.#parts.lease.epoch, now, keep, most);
      this.#bytes = await this.#from.database.size();
      return kept;
    } catch (error) {
      this.#parts.log.error(faultOf(error), "old readings cannot be pruned");
      return null;
    }
  }

  reports: Store["reports"] = (query) => readReports(this.#from, query);
  report: Store["report"] = (name) => readReport(this.#from, name);
  oldReports: Store["oldReports"] = (before, most) => oldReports(this.#from, before, most);
  alarms: Store["alarms"] = async () => (await this.#stored()).alarms;
  departures: Store["departures"] = async () => (await this.#stored()).departures;
  prices: Store["prices"] = async () => (await this.#stored()).prices;
  quarantine: Store["quarantine"] = (limit) => readQuarantine(this.#from, limit);

  /** The database is copied by its own tools. */
  beginCopy = (): boolean => false;
  endCopy = (): boolean => false;

  readonly #stored = async (): Promise<StoredLists> => this.#lists ?? readLists(this.#from);

  /** Commits staged changes, then releases the site. Without the lease there is nothing to commit. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.#parts.lease.state === "lost") this.#readings.abandon();
    else {
      await this.#recovery?.catch(faultOf);
      await this.#running;
      await this.#flush();
      await this.#readings[Symbol.asyncDispose]();
    }
    clearTimeout(this.#timer);
    this.#parts.known[Symbol.dispose]();
    await this.#parts.lease.release();
    await this.#from.database[Symbol.asyncDispose]();
  }
}
