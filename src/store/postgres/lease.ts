import type { LeaderView, Leadership, LeaseState } from "../../domain/store.ts";
import { type Instant, instant } from "../../domain/units.ts";
import type { Database } from "./database.ts";
import { faultOf } from "./database.ts";
import type { Announcements } from "./announcements.ts";
import type { Inbox } from "./inbox.ts";

/** `process`: name of this process for people. `length` in ms. */
export interface LeaseOptions {
  readonly site: string;
  readonly process: string;
  readonly length: number;
}

/**
 * Whether this process may command the site.
 *
 * ```
 *   standby --> leading <--> in doubt
 *                  |             |
 *                  +----> lost <-+        a new process of the same name starts as a stand-in
 * ```
 *
 * - `standby`: another process has the lease, or did until a moment ago. This one listens and takes deliveries.
 * - `leading`: the lease was renewed less than two thirds of its length ago, by the monotonic clock of this machine.
 * - `in doubt`: it was not. Nothing is sent, as the database may give the site to another process soon. A renewal
 *   ends the doubt, because the epoch is still ours.
 * - `lost`: the database has a higher epoch. Nothing is sent or stored again by this run.
 *
 * A process that was frozen is in doubt at its first instruction: the state is computed from the clock, not set by a
 * timer. Times are ms of the monotonic clock.
 */
export class Lease implements Leadership, Disposable {
  /** Called once, when the database has a higher epoch. */
  onLost: (reason: string) => void = () => {};
  onWaiting: () => void = () => {};
  /** Both are set by the opened state. */
  inbox: Inbox | null = null;
  announcements: Announcements | null = null;
  readonly epoch: number;
  readonly #database: Database;
  readonly #options: LeaseOptions;
  readonly #monotonic: () => number;
  readonly #since: number;
  #renewedAt: number;
  #isLost = false;
  #timer: NodeJS.Timeout | undefined;
  #isRenewing = false;

  /** `renewedAt`: when the statement that won the lease was sent. `renews` false: one statement renews many leases. */
  constructor(
    database: Database,
    options: LeaseOptions,
    won: { readonly epoch: number; readonly renewedAt: number },
    monotonic: () => number,
    renews = true,
  ) {
    this.epoch = won.epoch;
    this.#database = database;
    this.#options = options;
    this.#monotonic = monotonic;
    this.#since = won.renewedAt;
    this.#renewedAt = won.renewedAt;
    if (renews) this.#timer = setInterval(() => void this.#renew(), options.length / 3);
  }

  get site(): string {
    return this.#options.site;
  }

  /** A statement that was sent at `sentAt` renewed this lease with others. */
  renewed(sentAt: number): void {
    this.#renewedAt = sentAt;
  }

  get state(): LeaseState {
    if (this.#isLost) return "lost";
    return this.#monotonic() - this.#renewedAt < (this.#options.length * 2) / 3 ? "leading" : "in doubt";
  }

  view(now: Instant): LeaderView {
    const at = (monotonic: number): Instant => instant(Math.round(now + monotonic - this.#monotonic()));
    return {
      self: this.state === "leading",
      process: this.#options.process,
      epoch: this.epoch,
      since: at(this.#since),
      leaseUntil: at(this.#renewedAt + this.#options.length),
    };
  }

  get isNotified(): boolean {
    return this.announcements?.isListening ?? false;
  }

  async waiting(): ReturnType<Leadership["waiting"]> {
    return (await this.inbox?.waiting()) ?? [];
  }

  async setAside(...[delivery, reason]: Parameters<Leadership["setAside"]>): Promise<void> {
    await this.inbox?.setAside(delivery, reason, this.epoch);
  }

  /** The database refused our epoch. */
  lose(reason: string): void {
    if (this.#isLost) return;
    this.#isLost = true;
    clearInterval(this.#timer);
    this.onLost(reason);
  }

  async #renew(): Promise<void> {
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    const sentAt = this.#monotonic();
    const { site, length } = this.#options;
    try {
      const rows = await this.#database.query(RENEW, [site, this.epoch, length]);
      if (rows.length === 0) this.lose(ANOTHER);
      else this.#renewedAt = sentAt;
    } catch (error) {
      // Tried again at the next turn. The clock decides how long that may go on.
      faultOf(error);
    }
    this.#isRenewing = false;
  }

  /** Gives the site free for the next process. Errors are left to the end of the lease. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    this.announcements?.[Symbol.dispose]();
    if (this.#isLost) return;
    this.#isLost = true;
    await this.#database.query(RELEASE, [this.#options.site, this.epoch]).catch(faultOf);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

export const ANOTHER = "another process leads this site now";

const RENEW = `UPDATE site SET lease_until = clock_timestamp() + $3 * interval '1 ms'
  WHERE id = $1 AND epoch = $2 RETURNING epoch`;
const RELEASE = "UPDATE site SET lease_until = NULL, leader = NULL WHERE id = $1 AND epoch = $2";

/** The epoch follows the clock of the database, so that it rises also where the database was restored. */
const TAKE = `UPDATE site SET epoch = greatest(epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
    leader = $2, led_since = clock_timestamp(), lease_until = clock_timestamp() + $3 * interval '1 ms'
  WHERE id = $1 AND (lease_until IS NULL OR lease_until < clock_timestamp()) RETURNING epoch`;

/** Takes the lease if it is free. Null: another process has it. Throws errors of the database. */
export async function takeLease(
  database: Database,
  options: LeaseOptions,
  monotonic: () => number,
): Promise<Lease | null> {
  const renewedAt = monotonic();
  const [row] = await database.query(TAKE, [options.site, options.process, options.length]);
  if (row === undefined) return null;
  return new Lease(database, options, { epoch: Number(row["epoch"]), renewedAt }, monotonic);
}
