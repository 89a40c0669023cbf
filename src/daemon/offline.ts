import { hostname } from "node:os";

import type { ProfileChecks } from "../config/checks.ts";
import type { Fleet } from "../config/fleet.ts";
import type { Config } from "../config/schema.ts";
import type { DatabaseConfig } from "../config/sections/state.ts";
import { auditRow } from "../domain/audit.ts";
import type { LeaderSeen } from "../domain/leadership.ts";
import type { OnOlder, Opened, OpenedState, Store } from "../domain/store.ts";
import { earlier, type Instant, instant } from "../domain/units.ts";
import { capsOf, pruned, type Retention } from "../retention/rules.ts";
import type { SiteRow } from "../store/postgres/fleetList.ts";
import type { StoredSite } from "../store/postgres/fleetSites.ts";
import type { FleetSnapshot } from "../store/postgres/fleetWork.ts";
import type { Inspected } from "../store/postgres/inspect.ts";
import type { LeaseOptions } from "../store/postgres/lease.ts";
import type { SiteKeys } from "../store/postgres/siteKeys.ts";
import { missingStateReason, openState } from "../store/sqlite/open.ts";
import type { OnFull } from "../store/sqlite/openDatabase.ts";
import type { Machine } from "./edges.ts";

/** Parts of the configuration that a verb needs to open the state. */
export type StateOfSite = Pick<Config, "state" | "keys" | "database" | "site">;

/** Reason why there is no stored state. Null: there is one. */
export const missingOffline = ({ state, database }: StateOfSite): string | null =>
  database === null ? missingStateReason(state) : null;

interface OfflineOptions {
  /** A missing state is made. */
  readonly create?: boolean;
  readonly onFull?: OnFull;
  /** Absent: the state of an earlier version is upgraded. */
  readonly older?: OnOlder;
  /** Longest wait for the record of a fleet, ms. */
  readonly freeWithinMs?: number;
}

/**
 * Opens the state for a verb while no daemon runs, and holds it until it is disposed of. A damaged state is refused,
 * because only the daemon may set it aside.
 */
export async function openOffline(
  site: StateOfSite,
  { now, randomBytes, log }: Pick<Machine, "now" | "randomBytes" | "log">,
  { create = false, onFull, older = "upgrade", freeWithinMs = FREE_WITHIN_MS }: OfflineOptions = {},
): Promise<OpenedState | (Opened & { readonly ok: false; readonly isMissing: boolean })> {
  const { state, keys, database } = site;
  if (database !== null) {
    const missing = create ? null : await missingInDatabase(database, site.site.id, log);
    if (missing !== null) return { ok: false, reason: missing, isMissing: true };
    const { openPostgres } = await import("../store/postgres/open.ts");
    const options = databaseOptions(site, database, { now, randomBytes, log });
    const wait = isOfFleet(site) ? untilFree(options, freeWithinMs) : null;
    const opened = await openPostgres({ ...options, ...wait?.options, isVerb: true, older });
    if (opened.ok) return opened;
    return { ...opened, reason: wait?.reasonOf(opened.reason) ?? opened.reason, isMissing: false };
  }
  const missing = create ? null : missingStateReason(state);
  if (missing !== null) return { ok: false, reason: missing, isMissing: true };
  const options = { now, random: randomBytes, keys, log, damaged: "refuse", older } as const;
  const opened = openState(state, onFull === undefined ? options : { ...options, onFull });
  return opened.ok ? opened : { ...opened, isMissing: false };
}

/** No site can have this id. */
const FLEET = "(fleet)";

/** The record of what people change for the whole fleet. It is stored as that of a site without chargers. */
export const recordOfFleet = <T extends StateOfSite>(shared: T): T => ({
  ...shared,
  site: { ...shared.site, id: FLEET },
});

const isOfFleet = ({ site }: StateOfSite): boolean => site.id === FLEET;

/** Longest wait for the record of a fleet, ms. A process holds it for one commit. */
const FREE_WITHIN_MS = 15_000;
/** Interval of requests for it, ms. A third of a lease of minutes would be longer than that wait. */
const FREE_EVERY_MS = 250;

/** Lease on it, ms: a process that was killed while it held it delays the next one for less than that wait. */
const HELD_FOR_MS = 5_000;

/** Options for the record of a fleet, which is opened once it is free, and the reason where that takes too long. */
function untilFree({ process, length }: Pick<LeaseOptions, "process" | "length">, withinMs: number) {
  const signal = AbortSignal.timeout(withinMs);
  let seen: LeaderSeen | null = null;
  const onSeen = (read: LeaderSeen): void => void (seen = read);
  const holder = (): string | null => seen?.leader?.process ?? null;
  return {
    options: {
      // The name is not that of a process that leads sites: this lease is none of its share.
      process: `${process} (record)`,
      length: Math.min(length, HELD_FOR_MS),
      standBy: { signal, everyMs: FREE_EVERY_MS, onSeen },
    },
    /** `reason`: that of the database. */
    reasonOf: (reason: string): string => {
      if (!signal.aborted || holder() === null) return reason;
      return `${holder()} has the record of the fleet open: it was not free for ${withinMs / 1_000} s`;
    },
  };
}

/** An act of a person, for the record. */
export interface Act {
  readonly at: Instant;
  readonly message: string;
  readonly facts: Readonly<Record<string, string>>;
}

/** Rows that are pruned at once: each pruning adds one. */
const PRUNED_AT_ONCE = 100;

/** Adds these acts to the record of the fleet, and prunes it. Null: they are stored. A text: the reason why not. */
export async function recordInFleet(
  shared: StateOfSite & Pick<Config, "retention">,
  machine: Pick<Machine, "now" | "randomBytes" | "log">,
  acts: readonly Act[],
  freeWithinMs = FREE_WITHIN_MS,
): Promise<string | null> {
  const opened = await openOffline(recordOfFleet(shared), machine, { create: true, freeWithinMs });
  if (!opened.ok) return opened.reason;
  await using store = opened.store;
  // Each machine has users of its own.
  const where = { machine: hostname(), folder: shared.state };
  store.write(
    acts.map(({ at, message, facts }) =>
      auditRow("operator", at, message, { facts: { ...facts, ...where } }),
    ),
  );
  const stored = await store.durable();
  if (!stored.ok) return stored.reason;
  // A clock that is wrong by years would prune everything. The epoch is by the clock of the database.
  const now = earlier(machine.now(), instant(opened.epoch * 1_000));
  await pruneRecord(store, shared.retention, now).catch((error: unknown) =>
    machine.log.warn({ err: error }, "the record of the fleet cannot be pruned"),
  );
  return null;
}

/** Prunes the oldest rows once there are enough of them. */
async function pruneRecord(store: Store, keep: Retention, now: Instant): Promise<void> {
  const before = instant(now - keep.audit);
  const old = await store.oldRows({ before, maxRows: capsOf(keep).record, most: PRUNED_AT_ONCE });
  if (old?.rows === PRUNED_AT_ONCE) store.write(pruned(old, now));
}

/** `missingOffline` for a database. Null as well: the database cannot be asked, and opening it gives the reason. */
async function missingInDatabase(
  { url, schema }: DatabaseConfig,
  id: string,
  log: Machine["log"],
): Promise<string | null> {
  const { Database } = await import("../store/postgres/database.ts");
  const { hasState } = await import("../store/postgres/inspect.ts");
  await using database = new Database({ url, schema, patience: INSPECT_WITHIN_MS, log });
  const isThere = await hasState(database, id).catch(() => true);
  return isThere
    ? null
    : `there is no state of the site ${id} in the schema ${schema} of this database: nothing has run there yet`;
}

/** Options to open the database of a site. */
export const databaseOptions = (
  { site, state: directory, keys }: StateOfSite,
  { url, schema, siteKeys, lease }: DatabaseConfig,
  { now, randomBytes, log }: Pick<Machine, "now" | "randomBytes" | "log">,
) => ({
  url,
  schema,
  site: site.id,
  process: `${hostname()} ${process.pid}`,
  length: lease,
  directory,
  keys,
  siteKeys,
  now,
  random: randomBytes,
  monotonic: () => performance.now(),
  log,
});

/** Keys of a site that are in its database, which stays as it is. Null: they are files in the folder. */
export async function keysInDatabase(
  { database: configured, site: { id } }: Pick<StateOfSite, "database" | "site">,
  { log }: Pick<Machine, "log">,
): Promise<(SiteKeys & { readonly ok: true }) | { readonly ok: false; readonly reason: string } | null> {
  if (configured === null || configured.siteKeys === null) return null;
  const { url, schema, siteKeys } = configured;
  const { Database, faultOf } = await import("../store/postgres/database.ts");
  const { readKeys } = await import("../store/postgres/siteKeys.ts");
  await using database = new Database({ url, schema, patience: INSPECT_WITHIN_MS, log });
  try {
    const found = await readKeys(database, id, siteKeys());
    if (found === null) return { ok: false, reason: noKeys(id, schema) };
    return typeof found === "string" ? { ok: false, reason: found } : { ok: true, ...found };
  } catch (error) {
    return { ok: false, reason: faultOf(error).reason };
  }
}

const noKeys = (site: string, schema: string): string =>
  `the schema ${schema} of this database has no keys of the site ${site}: the first start of setpointd with state.postgres.siteKeys makes them`;

/** Time for the database to answer a verb, ms. */
const INSPECT_WITHIN_MS = 5_000;

/** Checks the database of a site. Null: its state is a folder. */
export async function inspectDatabase(
  { database: configured, site }: StateOfSite,
  { log }: Pick<Machine, "log">,
): Promise<Inspected | null> {
  if (configured === null) return null;
  const { url, schema, siteKeys } = configured;
  const { Database } = await import("../store/postgres/database.ts");
  const { inspect } = await import("../store/postgres/inspect.ts");
  await using database = new Database({ url, schema, patience: INSPECT_WITHIN_MS, log });
  return await inspect(database, schema, site.id, siteKeys?.() ?? null);
}

/** A site of the fleet as its database has it. */
interface InspectedSite extends SiteRow {
  /** The reason why it cannot be led. Null: none in its file and its keys. */
  readonly fault: string | null;
  /** Its broker. Null: not known. */
  readonly mqtt: Config["mqtt"] | null;
}

/** A fleet as its database has it. */
export interface InspectedFleet {
  readonly database: Inspected;
  /** True: processes and sites were read. */
  readonly isRead: boolean;
  readonly processes: FleetSnapshot["processes"];
  readonly sites: readonly InspectedSite[];
}

/** Sites that one statement reads. */
const READ_AT_ONCE = 100;

/** Reads the processes and the sites of a fleet, and checks what is stored of each site. Changes nothing. */
export async function inspectFleet(
  fleet: Fleet,
  { log, monotonic, randomBytes }: Pick<Machine, "log" | "monotonic" | "randomBytes">,
  checks: ProfileChecks,
): Promise<InspectedFleet> {
  const { url, schema, lease, siteKeys } = fleet.database;
  const { Database } = await import("../store/postgres/database.ts");
  const { inspectSchema, refused } = await import("../store/postgres/inspect.ts");
  const { FleetList } = await import("../store/postgres/fleetList.ts");
  const { FleetSites } = await import("../store/postgres/fleetSites.ts");
  const { FleetWork } = await import("../store/postgres/fleetWork.ts");
  await using database = new Database({ url, schema, patience: INSPECT_WITHIN_MS, log });
  const found = await inspectSchema(database, schema);
  if (!found.isCurrent) return { database: found, isRead: false, processes: [], sites: [] };
  try {
    const stored = new FleetSites(database, siteKeys, randomBytes);
    const work = new FleetWork(database, { process: "", length: lease }, monotonic);
    const { processes } = await work.snapshot();
    const sites: InspectedSite[] = [];
    const rows = await new FleetList(database).list();
    for (let from = 0; from < rows.length; from += READ_AT_ONCE) {
      const some = rows.slice(from, from + READ_AT_ONCE);
      const read = await stored.read(some.map(({ site }) => site));
      for (const row of some)
        sites.push({ ...row, ...(await inspectedFile(fleet, read.get(row.site), checks)) });
    }
    return { database: found, isRead: true, processes, sites };
  } catch (error) {
    return { database: refused(error), isRead: false, processes: [], sites: [] };
  }
}

/** `stored` undefined: the site was removed meanwhile. */
async function inspectedFile(
  fleet: Fleet,
  stored: StoredSite | string | undefined,
  checks: ProfileChecks,
): Promise<Pick<InspectedSite, "fault" | "mqtt">> {
  const { storedSite } = await import("../config/fleet.ts");
  const { editedFile } = await import("../store/postgres/fleetSites.ts");
  if (stored === undefined) return { fault: null, mqtt: null };
  if (typeof stored === "string") return { fault: stored, mqtt: null };
  if (stored.file === null) return { fault: editedFile(stored.site), mqtt: null };
  const loaded = storedSite(fleet, JSON.parse(stored.file), checks);
  if (loaded.ok) return { fault: null, mqtt: loaded.config.mqtt };
  const [first, ...others] = loaded.mistakes;
  const more = others.length === 0 ? "" : `, and ${others.length} more`;
  return { fault: `${first?.path}: ${first?.found}; expected ${first?.expected}${more}`, mqtt: null };
}
