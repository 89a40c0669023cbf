import type { Json } from "./audit.ts";
import type { Delivery, EventHint } from "./delivery.ts";
import { type Instant, iso, type Millis } from "./units.ts";

/**
 * The right of this process to command the site. `store/postgres/lease.ts` has the whole life of a lease.
 * - `leading`: the lease was renewed a short time ago.
 * - `in doubt`: it was not. Nothing may be sent.
 * - `lost`: another process leads, or the site was removed or changed. This run can neither send nor store anything again.
 */
export type LeaseState = "leading" | "in doubt" | "lost";

/** Reason of a refusal after the lease was lost. */
export const ANOTHER_LEADS = "another process leads this site now";
/** Reason where the database lacks commits that it had answered. */
export const RESTORED = "the database was restored to an earlier state";
/** Reason where a person ended the term: the site was removed from its fleet, or another file was put. */
export const SITE_CHANGED = "the site was removed, or its file was changed";

/** The leader of a site. `self`: this process may command it now. */
export interface LeaderView {
  readonly self: boolean;
  /** Host and process id. */
  readonly process: string;
  readonly epoch: number;
  readonly since: Instant;
  readonly leaseUntil: Instant;
  /** Address of its page for people. Null: it has none that another machine reaches, or none yet. */
  readonly page: string | null;
}

/** E.g. `gw-1 4711 leads the site depot since 2026-11-23T05:30:00Z, and its page is https://gw-1:8080`. */
export const formatLeader = ({ process, since, page }: LeaderView, site: string): string =>
  `${process} leads the site ${site} since ${iso(since).replace(/\.\d+Z$/, "Z")}${page === null ? "" : `, and its page is ${page}`}`;

/** The leader as the API shows it. */
export const shownLeader = ({ since, leaseUntil, ...leader }: LeaderView): Json => ({
  ...leader,
  since: iso(since),
  leaseUntil: iso(leaseUntil),
});

/** The leader as a stand-in last read it. */
export interface LeaderSeen {
  /** Null: no process has the lease now. */
  readonly leader: LeaderView | null;
  /** Clock of this machine minus that of the database. Null: not known. */
  readonly ahead: Millis | null;
  /** Reason why the database did not answer at the last attempt. Null: it did. */
  readonly fault: string | null;
}

/** Leases of one process, over every time that it led. */
export interface Terms {
  /** Leases that were lost: another process led before a release. */
  lost: number;
}

/** A term that ended without a release: its process was killed, frozen or cut off from the database. */
export interface LapsedTerm {
  /** Host and process id. */
  readonly process: string;
  /** End of its lease. */
  readonly at: Instant;
}

/** Most deliveries of one `Leadership.waiting`. */
export const MOST_WAITING = 100;

/** The lease of this process on its site. */
export interface Leadership {
  readonly terms: Readonly<Terms>;
  /** The term before this one. Null: the site was released, or no process led it. */
  lapsed(now: Instant): LapsedTerm | null;
  /** Called when the work for the chargers begins. `page`: address of the page of this process for people. */
  begun(page: string | null): void;
  /** Time from the end of the lease before, or its release, to `begun`. Null: no process led before. */
  readonly failover: Millis | null;
  /** Deliveries that wait as of the last read. `longest`: since this process first read them. Null: none. */
  readonly backlog: { readonly count: number; readonly longest: Millis } | null;
  /** Computed from the clock at each call. */
  readonly state: LeaseState;
  /** Doubts that a renewal ended. A busy process may not look at the state while it is in doubt. */
  readonly doubts: number;
  /** The lease as people see it. `now`: of the machine's clock. */
  view(now: Instant): LeaderView;
  /** Called once, when the lease is lost. */
  onLost: (reason: string) => void;
  /**
   * Deliveries that a stand-in received and no process has ingested, oldest first. `after`: only those behind the one of
   * this number. Rejects if they cannot be read.
   */
  waiting(after?: number): Promise<readonly Delivery[]>;
  /** Called when the database announces that a delivery waits. It does so while `isNotified`. */
  onWaiting: () => void;
  /** Called with a hint that a stand-in received. Without a connection for announcements none arrives. */
  onHint: (wanted: EventHint) => void;
  readonly isNotified: boolean;
  /**
   * Puts a delivery that cannot be ingested into the quarantine. False: it waits no more, or another process leads.
   * Rejects if that cannot be stored.
   */
  setAside(delivery: Delivery, reason: string): Promise<boolean>;
}
