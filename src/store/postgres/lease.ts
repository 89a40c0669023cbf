import {
  ANOTHER_LEADS,
  type LapsedTerm,
  type LeaderSeen,
  type LeaderView,
  type Leadership,
  type LeaseState,
  MOST_WAITING,
  SITE_CHANGED,
  type Terms,
} from "../../domain/leadership.ts";
import { type Instant, instant, type Millis, millis } from "../../domain/units.ts";
import type { Announcements } from "./announcements.ts";
import { type Database, faultOf, type Row } from "./database.ts";
import type { Inbox } from "./inbox.ts";

/** `process`: name of this process for people. `length` in ms. */
export interface LeaseOptions {
  readonly site: string;
  readonly process: string;
  readonly length: number;
  /** Counts over all leases of this process. Absent: this lease alone. */
  readonly terms?: Terms;
}

/** `renewedAt`: when the statement that won the lease was sent. */
interface Won {
  readonly epoch: number;
  readonly renewedAt: number;
  /** Ms since the end of the lease before. Absent: no process led, or that is not known. */
  readonly unled?: number;
  /** The process whose lease ended without a release. */
  readonly lapsed?: string;
}

/**
 * The right of this process to command the site.
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
  onHint: Leadership["onHint"] = () => {};
  /** Both are set by the opened state. */
  inbox: Inbox | null = null;
  announcements: Announcements | null = null;
  /** True: a store that closes does not release the site. No other process takes it before its back-off ends. */
  isRetained = false;
  readonly epoch: number;
  readonly terms: Terms;
  readonly #won: Won;
  /** When each waiting delivery was first read. */
  readonly #waitingSince = new Map<number, number>();
  #failover: Millis | null = null;
  #page: string | null = null;
  /** Kept, so that the wall clock does not change it. */
  #lapsedAt: Instant | null = null;
  readonly #database: Database;
  readonly #options: LeaseOptions;
  readonly #monotonic: () => number;
  #renewedAt: number;
  #doubts = 0;
  #isLost = false;
  #timer: NodeJS.Timeout | undefined;
  #isRenewing = false;
  /** The answer to the last renewal was lost. */
  #isUnsure = false;

  /** `renews` false: one statement renews many leases. */
  constructor(database: Database, options: LeaseOptions, won: Won, monotonic: () => number, renews = true) {
    this.epoch = won.epoch;
    this.#database = database;
    this.#options = options;
    this.#monotonic = monotonic;
    this.#won = won;
    this.terms = options.terms ?? { lost: 0 };
    this.#renewedAt = won.renewedAt;
    if (renews) this.#timer = setInterval(() => void this.#renew(), options.length / 3);
  }

  get site(): string {
    return this.#options.site;
  }

  /** A statement that was sent at `sentAt` renewed this lease, perhaps with others. */
  renewed(sentAt: number): void {
    if (this.state === "in doubt") this.#doubts += 1;
    this.#renewedAt = sentAt;
  }

  /** Time since the last renewal, ms. */
  get age(): number {
    return this.#monotonic() - this.#renewedAt;
  }

  get doubts(): number {
    return this.#doubts;
  }

  get state(): LeaseState {
    if (this.#isLost) return "lost";
    return this.age < (this.#options.length * 2) / 3 ? "leading" : "in doubt";
  }

  view(now: Instant): LeaderView {
    const at = (monotonic: number): Instant => this.#instantOf(monotonic, now);
    return {
      self: this.state === "leading",
      process: this.#options.process,
      epoch: this.epoch,
      since: at(this.#won.renewedAt),
      leaseUntil: at(this.#renewedAt + this.#options.length),
      page: this.#page,
    };
  }

  #instantOf(monotonic: number, now: Instant): Instant {
    return instant(Math.round(now + monotonic - this.#monotonic()));
  }

  lapsed(now: Instant): LapsedTerm | null {
    const { lapsed, renewedAt, unled = 0 } = this.#won;
    if (lapsed === undefined) return null;
    this.#lapsedAt ??= this.#instantOf(renewedAt - unled, now);
    return { process: lapsed, at: this.#lapsedAt };
  }

  begun(page: string | null): void {
    this.#page = page;
    const { renewedAt, unled } = this.#won;
    if (unled !== undefined) this.#failover ??= millis(this.#monotonic() - renewedAt + unled);
  }

  get failover(): Millis | null {
    return this.#failover;
  }

  get backlog(): Leadership["backlog"] {
    const since = Math.min(...this.#waitingSince.values());
    const count = this.#waitingSince.size;
    return count === 0 ? null : { count, longest: millis(this.#monotonic() - since) };
  }

  get isNotified(): boolean {
    // Deliveries of a fleet are read for all of its sites together.
    return this.inbox === null || (this.announcements?.isListening ?? false);
  }

  async waiting(after = 0): ReturnType<Leadership["waiting"]> {
    const found = (await this.inbox?.waiting(after)) ?? [];
    const numbers = new Set(found.map(({ stored = 0 }) => stored));
    // Deliveries behind a full page wait as before.
    const last = found.length < MOST_WAITING ? Number.POSITIVE_INFINITY : Math.max(...numbers);
    for (const number of this.#waitingSince.keys())
      if (number > after && number <= last && !numbers.has(number)) this.#waitingSince.delete(number);
    for (const number of numbers)
      if (!this.#waitingSince.has(number)) this.#waitingSince.set(number, this.#monotonic());
    return found;
  }

  async setAside(...[delivery, reason]: Parameters<Leadership["setAside"]>): Promise<boolean> {
    return (await this.inbox?.setAside(delivery, reason, this.epoch)) ?? false;
  }

  /** The database refused our epoch. */
  lose(reason: string): void {
    if (this.#isLost) return;
    this.#isLost = true;
    if (reason !== SITE_CHANGED) this.terms.lost++;
    clearInterval(this.#timer);
    this.onLost(reason);
  }

  async #renew(): Promise<void> {
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    const { site, length } = this.#options;
    try {
      // Where the network is cut one way, each renewal would keep the site for a process that cannot lead it.
      if (this.#isUnsure) await this.#database.answer();
      this.#isUnsure = true;
      const sentAt = this.#monotonic();
      const rows = await this.#database.query(RENEW, [site, this.epoch, length, this.#page]);
      this.#isUnsure = false;
      if (rows.length === 0) this.lose(ANOTHER_LEADS);
      else this.renewed(sentAt);
    } catch (error) {
      // Tried again at the next turn. The clock decides how long that may go on.
      faultOf(error);
    }
    this.#isRenewing = false;
  }

  /** Releases the site for the next process. After an error the lease ends by itself. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    this.announcements?.[Symbol.dispose]();
    if (this.#isLost || this.isRetained) return;
    this.#isLost = true;
    await this.#database.query(RELEASE, [this.#options.site, this.epoch]).catch(faultOf);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** A renewal that was under way at the release changes nothing. The page carries the epoch of its leader. */
const RENEW = `UPDATE site SET lease_until = clock_timestamp() + $3 * interval '1 ms',
  page = $2::text || ' ' || $4::text
  WHERE id = $1 AND epoch = $2 AND leader IS NOT NULL RETURNING epoch`;
/** The next leader reads from the end of the lease how long the site had none. */
const RELEASE = "UPDATE site SET lease_until = clock_timestamp(), leader = NULL WHERE id = $1 AND epoch = $2";

/**
 * Longest time that a lease or a claim may lie ahead: twice the longest length of the configuration. Beyond it the clock of
 * the database was set back since, and a process that still runs would have renewed it.
 */
export const LONGEST_AHEAD = "interval '10 min'";

/** True for a site whose lease was released or has ended. `site`: name of the table in the statement. */
export const isFree = (site: string): string =>
  `(${site}.leader IS NULL OR ${site}.lease_until IS NULL
    OR ${site}.lease_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + ${LONGEST_AHEAD})`;

/** The epoch follows the clock of the database, so that it rises also where the database was restored. */
const TAKE = `WITH free AS (
    SELECT id, leader, lease_until FROM site
    WHERE id = $1 AND ${isFree("site")} FOR UPDATE
  ) UPDATE site SET epoch = greatest(site.epoch + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
    leader = $2, led_since = clock_timestamp(), lease_until = clock_timestamp() + $3 * interval '1 ms'
  FROM free WHERE site.id = free.id RETURNING site.epoch, free.leader AS lapsed,
    (extract(epoch FROM clock_timestamp() - free.lease_until) * 1000)::float8 AS unled`;

/** Takes the lease if it is free. Null: another process has it. Throws errors of the database. */
export async function takeLease(
  database: Database,
  options: LeaseOptions,
  monotonic: () => number,
): Promise<Lease | null> {
  const renewedAt = monotonic();
  const [row] = await database.query(TAKE, [options.site, options.process, options.length]);
  if (row === undefined) return null;
  const { epoch, lapsed, unled } = row;
  const before = {
    ...(unled === null ? {} : { unled: Math.max(0, Number(unled)) }),
    ...(lapsed === null ? {} : { lapsed: String(lapsed) }),
  };
  return new Lease(database, options, { epoch: Number(epoch), renewedAt, ...before }, monotonic);
}

/** Durations are by the clock of the database, which may differ from that of this machine. */
const LEADER = `SELECT leader, epoch, CASE WHEN page LIKE epoch || ' %' THEN substr(page, strpos(page, ' ') + 1) END AS page,
    (extract(epoch FROM clock_timestamp() - led_since) * 1000)::float8 AS led,
    (extract(epoch FROM lease_until - clock_timestamp()) * 1000)::float8 AS rest,
    (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS clock
  FROM site WHERE id = $1`;

/** The process that leads the site, and the clocks. `now`: of this machine. Throws errors of the database. */
export async function readLeader(
  database: Database,
  site: string,
  now: () => Instant,
): Promise<Omit<LeaderSeen, "fault">> {
  const [row] = await database.query(LEADER, [site]);
  if (row === undefined) return { leader: null, ahead: null };
  const ahead = millis(Math.round(now() - Number(row["clock"])));
  return { leader: leaderIn(row, now()), ahead };
}

function leaderIn({ leader, epoch, page, led, rest }: Row, now: Instant): LeaderView | null {
  if (leader === null || Number(rest) <= 0) return null;
  return {
    self: false,
    process: String(leader),
    epoch: Number(epoch),
    since: instant(Math.round(now - Number(led))),
    leaseUntil: instant(Math.round(now + Number(rest))),
    page: page === null ? null : String(page),
  };
}
