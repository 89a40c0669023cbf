import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import { formatLeader, type LeaderSeen } from "../../domain/leadership.ts";
import type { Broken, OnOlder, Opened } from "../../domain/store.ts";
import type { Instant } from "../../domain/units.ts";
import { Announcements } from "./announcements.ts";
import { Commits, forgetReleases, KnownHead } from "./commits.ts";
import {
  Database,
  type DatabaseOptions,
  faultOf,
  isAwaited,
  isPassing,
  type SiteConnections,
} from "./database.ts";
import { hintIn, Inbox } from "./inbox.ts";
import { remedyOf } from "./inspect.ts";
import { type Lease, type LeaseOptions, readLeader, takeLease } from "./lease.ts";
import { migrate, warnOfVersion } from "./schema.ts";
import { type KeyOptions, keysOf, type SiteKeys } from "./siteKeys.ts";
import { readStarts, type StartRead } from "./starts.ts";
import { PostgresStore } from "./store.ts";

export interface OpenPostgresOptions
  extends Pick<DatabaseOptions, "url" | "schema" | "log">, LeaseOptions, KeyOptions {
  readonly now: () => Instant;
  readonly monotonic: () => number;
  readonly log: Logger;
  /** A verb leaves the row about a restore to the daemon. */
  readonly isVerb?: boolean;
  /** Absent: the schema of an earlier version is upgraded. */
  readonly older?: OnOlder;
  /** Called while another process leads. It ends the waiting with the signal. Absent: that is refused. */
  readonly standBy?: {
    readonly signal: AbortSignal;
    /** Interval of requests for the lease, ms. Absent: a third of the lease. */
    readonly everyMs?: number;
    /** Begins to take deliveries. What it returns is disposed of before this process leads. */
    readonly begin?: (inbox: Inbox) => Promise<AsyncDisposable | null>;
    /** Called before `begin`, and after each further request for the lease. */
    readonly onSeen?: (seen: LeaderSeen) => void;
  };
}

/**
 * Opens the state of a site as its leader. It waits until no other process leads. With `standBy` it waits for a database
 * that is away as well: it may start later than this machine.
 */
export async function openPostgres(options: OpenPostgresOptions): Promise<Opened<PostgresStore>> {
  const { length, standBy, log } = options;
  const database = new Database({ ...options, patience: Math.ceil((length * 2) / 3) });
  /** Why the last try failed. Null: it is the first one. */
  let fault: string | null = null;
  for (;;) {
    try {
      const opened = await openOnce(database, options);
      return opened.ok ? opened : await giveUp(database, opened);
    } catch (error) {
      if (error instanceof NoListener) {
        await database[Symbol.asyncDispose]();
        throw error.cause;
      }
      const { reason, code } = error instanceof Error ? faultOf(error) : { reason: String(error), code: "" };
      const message = `state.postgres.url: ${reason}; expected ${remedyOf(code)}`;
      if (standBy?.signal.aborted === true) {
        const last = fault ?? (isPassing(error) ? message : "stopped before this process led the site");
        return await giveUp(database, { reason: last });
      }
      if (standBy === undefined || !isPassing(error)) return await giveUp(database, { reason: message });
      if (fault === null) log.error(`${message}: it is tried again until the database answers`);
      fault = message;
      await sleep(standBy.everyMs ?? length / 3, undefined, { signal: standBy.signal }).catch(() => {});
    }
  }
}

/** `begin` failed: an address is taken, for example. A database that is away is a different matter. */
class NoListener extends Error {}

/** Throws errors of the database. The lease is released then. */
async function openOnce(database: Database, options: OpenPostgresOptions): Promise<Opened<PostgresStore>> {
  const { length, site } = options;
  const ready = await prepare(database, options);
  if (typeof ready === "string") return { ok: false, reason: ready };
  const from = { ...ready, database, site };
  const inbox = new Inbox(from);
  const lease = await lead(
    database,
    inbox,
    new KnownHead(options.directory, from, options.monotonic),
    options,
  );
  if (lease === null) {
    const { leader } = await readLeader(database, site, options.now);
    const who = leader === null ? "" : ` (${formatLeader(leader, site)})`;
    const remedy = "use the verb there, or stop it first";
    return {
      ok: false,
      reason: `another setpointd leads the site ${site} on this database${who}: ${remedy}`,
    };
  }
  try {
    const opened = await load(from, lease, options);
    if (!opened.ok) {
      await lease.release();
      return opened;
    }
    lease.inbox = inbox;
    lease.announcements = new Announcements({ ...options, patience: length }, (payload) => {
      if (payload === site) lease.onWaiting();
      const hint = hintIn(payload, site);
      if (hint !== null) lease.onHint(hint);
    });
    return opened;
  } catch (error) {
    await lease.release();
    throw error;
  }
}

async function giveUp(
  database: Database,
  refused: { readonly reason: string; readonly broken?: Broken },
): Promise<Opened<PostgresStore> & { readonly ok: false }> {
  await database[Symbol.asyncDispose]();
  return { ...refused, ok: false };
}

/** The schema and the row of the site, with the keys that it was made with. A text: the reason why not. */
async function prepare(database: Database, options: OpenPostgresOptions): Promise<SiteKeys | string> {
  const unusable = await migrate(database, options.schema, undefined, options.older);
  if (unusable !== null) return unusable;
  await warnOfVersion(database, options.log);
  return keysOf(database, options);
}

/** Waits for the lease. Null: another process has it, and this one may not wait. */
async function lead(
  database: Database,
  inbox: Inbox,
  known: KnownHead,
  options: OpenPostgresOptions,
): Promise<Lease | null> {
  const { standBy, length, monotonic, log, site, now } = options;
  await using stack = new AsyncDisposableStack();
  let isWaiting = false;
  let seen: LeaderSeen = { leader: null, ahead: null, fault: null };
  for (;;) {
    try {
      // A lease that was taken without an answer would keep the site from others.
      if (seen.fault !== null) await database.answer();
      const lease = await takeLease(database, options, monotonic);
      if (lease !== null || standBy === undefined) return lease;
      seen = { ...(await readLeader(database, site, now)), fault: null };
      await known.follow();
    } catch (error) {
      // The first answer is for a person. Later the listener of the stand-in stays open.
      if (!isWaiting || !isAwaited(error)) throw error;
      const fault = faultOf(error);
      log.warn(fault, "the lease cannot be asked for");
      seen = { ...seen, fault: fault.reason };
    }
    standBy?.onSeen?.(seen);
    if (!isWaiting) {
      const begun = standBy?.begin?.(inbox).catch((cause: unknown) => {
        throw new NoListener("a listener of the stand-in", { cause });
      });
      stack.use(await begun);
    }
    isWaiting = true;
    const every = standBy?.everyMs ?? length / 3;
    await sleep(every, undefined, standBy === undefined ? {} : { signal: standBy.signal });
  }
}

/** Reads the state as the last leader left it. No commit of that leader can follow: the epoch is ours. */
async function load(
  from: SiteConnections & SiteKeys,
  lease: Lease,
  options: OpenPostgresOptions,
): Promise<Opened<PostgresStore>> {
  const starts = await readStarts(from.database, [from], options.now());
  return openedAt(from, lease, starts.get(from.site), options);
}

/** The state of a site whose lease was taken. The keys are those that the site was made with. */
export async function openedAt(
  from: SiteConnections & SiteKeys,
  lease: Lease,
  start: StartRead | undefined,
  {
    log,
    monotonic,
    directory,
    isVerb = false,
  }: Pick<OpenPostgresOptions, "log" | "monotonic" | "directory" | "isVerb">,
): Promise<Opened<PostgresStore>> {
  if (start === undefined) return { ok: false, reason: "the site was deleted from the database" };
  if (!start.ok) return start;
  const { siteKey, proofKey } = from;
  const { storedState, lists, head, commits: number, restored, outages, writes, rejected } = start;
  const commits = new Commits(from, lease, { head, number });
  const known = new KnownHead(directory, from, monotonic);
  const isRestored = await known.isMissing(head, restored);
  const commands = isRestored
    ? await forgetReleases(from, lease, storedState.commands, isVerb)
    : storedState.commands;
  return {
    ok: true,
    store: new PostgresStore({ from, lease, commits, known, lists, proofKey, log, monotonic }),
    storedState: { ...storedState, commands },
    epoch: lease.epoch,
    siteKey,
    setAside: null,
    assertAll: isRestored || restored !== null,
    isRestored: isRestored && !isVerb,
    lastRun: {
      openOutages: () => outages,
      writes: (charger, since) => (writes.get(charger) ?? []).filter((at) => at >= since),
      rejected: () => rejected,
    },
    leadership: lease,
  };
}
