import type { Logger } from "pino";
import type { Change, Committed, Remembered } from "../core/ledger.ts";
import type { Instant } from "../core/units.ts";
import { isFault } from "./boot.ts";
import type { Disk } from "./disk.ts";
import { queryAudit, queryQuarantine, type AuditQuery, type Quarantined } from "./query.ts";
import { remember } from "./remember.ts";
import type { AuditRow } from "./rows.ts";
import { verifyAll, type Verified } from "./verify.ts";

/** Commits since the start, how long they took (ms, the loop stands still meanwhile), and the size on disk. */
export interface StoreStats {
  readonly commits: number;
  readonly failures: number;
  readonly lastCommitMs: number;
  readonly longestCommitMs: number;
  readonly bytes: number;
}

/** What nobody waits for, outcomes above all, is gathered this long: a commit costs 30 KB of flash whatever is in it. */
const UNHURRIED_MS = 100;
const DONE: Committed = { ok: true };

/**
 * What survives a restart. Changes written in one turn of the event loop are one commit: all who wait for it
 * share its one sync, and a power cut leaves all of them or none.
 */
export class Store implements Disposable {
  /** Called after each commit that added to the record, with what it added. */
  onCommitted: (rows: readonly AuditRow[]) => void = () => {};

  readonly #disk: Disk;
  readonly #siteKey: Buffer;
  readonly #log: Logger;
  #staged: Change[] = [];
  #turn: PromiseWithResolvers<Committed> | null = null;
  #later: NodeJS.Timeout | undefined;
  #stats = { commits: 0, failures: 0, lastCommitMs: 0, longestCommitMs: 0 };
  #committedSinceBeat = false;
  #disposed = false;

  constructor(disk: Disk, siteKey: Buffer, log: Logger) {
    this.#disk = disk;
    this.#siteKey = siteKey;
    this.#log = log;
  }

  /** Staged in order. Committed with the next turn that somebody waits for, or soon by itself. */
  write(changes: readonly Change[]): void {
    if (this.#disposed) throw new Error("the store is closed");
    for (const change of changes) this.#staged.push(change);
    if (this.#staged.length > 0) this.#later ??= setTimeout(() => this.#commit(), UNHURRIED_MS);
  }

  /** Answers after the commit that holds everything written so far, at the end of this turn. Not ok: none of it was kept. */
  durable(): Promise<Committed> {
    if (this.#staged.length === 0) return Promise.resolve(DONE);
    if (this.#turn === null) {
      this.#turn = Promise.withResolvers();
      setImmediate(() => this.#commit());
    }
    return this.#turn.promise;
  }

  /** Whether commits work: by the last one since the last beat, or by a small one now. For the watchdog. */
  beat(at: Instant): Committed {
    const proven = this.#committedSinceBeat;
    this.#committedSinceBeat = false;
    const fault = proven ? null : this.#disk.beat(at);
    return fault === null ? DONE : { ok: false, reason: fault.reason };
  }

  /** What is stored now: for starting over after a failed commit. Throws where the disk cannot be read. */
  remembered(): Remembered {
    const remembered = remember(this.#disk.connection.database);
    if (isFault(remembered)) throw new Error(remembered.reason);
    return remembered;
  }

  /** Rows of the record, oldest first unless told otherwise; only what is committed. */
  audit(query: AuditQuery): readonly AuditRow[] {
    return queryAudit(this.#disk.connection.database, query);
  }

  /** Follows the whole hash chain: seconds for millions of rows. */
  verify(): Verified {
    return verifyAll(this.#disk.connection, this.#siteKey);
  }

  /** Input that could not be read, newest first. */
  quarantine(limit: number): readonly Quarantined[] {
    return queryQuarantine(this.#disk.connection.database, limit);
  }

  stats(): StoreStats {
    return { ...this.#stats, bytes: this.#disk.bytes };
  }

  #commit(): void {
    const [turn, staged] = [this.#turn, this.#staged];
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#staged = [];
    this.#turn = null;
    if (staged.length === 0) return turn?.resolve(DONE);
    const began = performance.now();
    const outcome = this.#disk.commit(staged);
    this.#count(performance.now() - began, isFault(outcome));
    this.#committedSinceBeat = !isFault(outcome);
    if (isFault(outcome)) {
      this.#log.error(
        { reason: outcome.reason, changes: staged.length },
        "commit failed, its changes are dropped",
      );
      turn?.resolve({ ok: false, reason: outcome.reason });
      return;
    }
    turn?.resolve(DONE);
    if (outcome.rows.length > 0) this.onCommitted(outcome.rows);
  }

  #count(tookMs: number, failed: boolean): void {
    const { commits, failures, longestCommitMs } = this.#stats;
    this.#stats = {
      commits: failed ? commits : commits + 1,
      failures: failed ? failures + 1 : failures,
      lastCommitMs: tookMs,
      longestCommitMs: Math.max(longestCommitMs, tookMs),
    };
  }

  /** Commits what is staged, then gives the state free. */
  [Symbol.dispose](): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#commit();
    this.#disk[Symbol.dispose]();
  }
}
