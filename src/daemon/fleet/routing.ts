import { hash } from "node:crypto";

import { type Notice, type Rejected, eventOf } from "../../domain/delivery.ts";
import type { CoordinationEvent, Target } from "../../domain/event.ts";
import type { EventId } from "../../domain/units.ts";
import { sanitizeForLog } from "../../platform/text.ts";

export type Deleted = Extract<Notice, { readonly kind: "deleted" }>;

type EventNotice = Extract<Notice, { readonly kind: "event" }>;

/** Notices by site. */
export interface Routes {
  readonly bySite: ReadonlyMap<string, readonly Notice[]>;
  /** Sites that have an event from now on. */
  readonly events: readonly { readonly event: string; readonly site: string }[];
  /** Notices that concern no site: of foreign vehicles, of unknown events, or unreadable. */
  readonly foreign: readonly Notice[];
}

/** Sites of vehicles and of events. */
export interface Known {
  readonly ofVehicle: ReadonlyMap<string, string>;
  readonly ofEvent: ReadonlyMap<string, readonly string[]>;
  /** All sites, for events without targets. */
  readonly all: readonly string[];
}

/** Vehicles, or names of other kinds, that these notices are for. */
export const targetsIn = (notices: readonly Notice[]): readonly string[] => [
  ...new Set(
    notices.flatMap((notice) =>
      notice.kind === "event"
        ? notice.event.targets.flatMap(({ values }) => values)
        : notice.kind === "rejected"
          ? textsIn(notice)
          : [],
    ),
  ),
];

/**
 * Texts in an entry that cannot be read. One of them may be the id of a vehicle, so the entry concerns the site of that
 * vehicle. An id with a quote or a backslash is not found.
 */
const textsIn = ({ raw }: Rejected): readonly string[] => [
  ...new Set(
    [...raw.matchAll(TEXTS)].flatMap(([, text = "", end]) =>
      end === undefined ? [] : text.normalize("NFC"),
    ),
  ),
];

/** The raw text may be cut within a text. That one is matched as well: a search for its end from each quote would take long. */
const TEXTS = /"((?:[^"\\]|\\(?:.|$))*)(?:(")|$)/gs;

export const eventsIn = (notices: readonly Notice[]): readonly string[] => [
  ...new Set(
    notices.flatMap((notice) => (notice.kind !== "rejected" ? [eventOf(notice)] : (notice.id ?? []))),
  ),
];

/** Entries named in one line of the log. */
const MOST_NAMED = 20;

/** Unreadable entries for the log. */
export const unreadable = (
  rejected: readonly Rejected[],
): { readonly entries: readonly object[]; readonly count: number } => ({
  entries: rejected.slice(0, MOST_NAMED).map(({ id, path, reason }) => ({
    event: id === null ? null : sanitizeForLog(id),
    path: sanitizeForLog(path),
    reason: sanitizeForLog(reason),
  })),
  count: rejected.length,
});

/** True: an event for every site. */
export const isForAll = (notice: Notice): boolean =>
  notice.kind === "event" && notice.event.targets.every(({ values }) => values.length === 0);

/**
 * Routes notices by vehicle to sites. A site that had an event gets its later revisions too, also without a vehicle of
 * its own: its vehicles may have left the targets.
 */
export function routesOf(notices: readonly Notice[], { ofVehicle, ofEvent, all }: Known): Routes {
  const bySite = new Map<string, Notice[]>();
  const events: { event: string; site: string }[] = [];
  const foreign = new Set<Notice>();
  /** Deletes of events that no site has so far. */
  const early = new Map<string, Deleted>();
  /** Sites by event, with those that got it in this delivery. */
  const having = new Map(ofEvent);
  const give = (site: string, notice: Notice): void => {
    const given = bySite.get(site);
    if (given === undefined) bySite.set(site, [notice]);
    else given.push(notice);
  };
  for (const notice of notices) {
    const id = notice.kind === "rejected" ? notice.id : eventOf(notice);
    const had = (id === null ? undefined : having.get(id)) ?? [];
    if (notice.kind !== "event") {
      const named =
        notice.kind === "rejected" ? textsIn(notice).map((text) => ofVehicle.get(text) ?? []) : [];
      const concerned = new Set([...had, ...named.flat()]);
      for (const site of concerned) give(site, notice);
      if (concerned.size === 0) foreign.add(notice);
      if (had.length === 0 && notice.kind === "deleted") early.set(notice.id, notice);
      continue;
    }
    const { event } = notice;
    const own = isForAll(notice) ? new Map(all.map((site) => [site, event])) : sharesOf(event, ofVehicle);
    const deleted = early.get(event.id);
    for (const [site, share] of own) {
      if (deleted !== undefined && !had.includes(site)) give(site, deleted);
      give(site, { kind: "event", event: share });
      if (!had.includes(site)) events.push({ event: event.id, site });
    }
    having.set(event.id, [...new Set([...had, ...own.keys()])]);
    for (const site of had) if (!own.has(site)) give(site, { kind: "event", event: shareOf(event, NONE) });
    if (own.size === 0 && had.length === 0) foreign.add(notice);
    else if (deleted !== undefined) foreign.delete(deleted);
  }
  return { bySite, events, foreign: [...foreign] };
}

const NONE: readonly Target[] = [];

/** The event for each site with a vehicle in its targets, in one pass over the targets. */
function sharesOf(
  event: CoordinationEvent,
  siteOf: ReadonlyMap<string, string>,
): ReadonlyMap<string, CoordinationEvent> {
  const bySite = new Map<string, Target[]>();
  event.targets.forEach(({ type, values }) => {
    for (const [site, own] of Map.groupBy(values, (value) => siteOf.get(value))) {
      if (site === undefined) continue;
      const targets = bySite.get(site);
      if (targets === undefined) bySite.set(site, [{ type, values: own }]);
      else targets.push({ type, values: own });
    }
  });
  return new Map([...bySite].map(([site, targets]) => [site, shareOf(event, targets)]));
}

/** The event of a site of which these vehicles are targets. */
export function shareFor(event: CoordinationEvent, isOurs: (vehicle: string) => boolean): CoordinationEvent {
  const targets = event.targets
    .map(({ type, values }) => ({ type, values: values.filter(isOurs) }))
    .filter(({ values }) => values.length > 0);
  return shareOf(event, targets);
}

/**
 * An event with these targets only. One foreign target stays where there were others: an event without targets would
 * mean every vehicle. The hash follows from the targets, so that a share compares with a later one.
 */
function shareOf(event: CoordinationEvent, own: readonly Target[]): CoordinationEvent {
  const kept = new Set(own.flatMap(({ values }) => values));
  const foreign = event.targets
    .flatMap(({ type, values }) => values.slice(0, kept.size + 1).map((value) => ({ type, value })))
    .find(({ value }) => !kept.has(value));
  if (foreign === undefined) return event;
  const targets = [...own, { type: foreign.type, values: [foreign.value] }];
  return { ...event, targets, hash: hash("sha256", JSON.stringify([event.hash, targets])) };
}

/** Entries of a list by event and by vehicle. */
export class Entries {
  readonly #byId: ReadonlyMap<EventId, readonly CoordinationEvent[]>;
  readonly #byVehicle = new Map<string, EventId[]>();
  readonly #forAll: EventId[] = [];
  /** Entries that cannot be read, by their texts: one may be the id of a vehicle. */
  readonly #unreadBy = new Map<string, Rejected[]>();
  readonly #unread: readonly Rejected[];
  /** Events that cannot be read. They are listed all the same. */
  readonly rejected: readonly EventId[];

  constructor(notices: readonly Notice[]) {
    this.#unread = notices.filter((notice) => notice.kind === "rejected");
    this.rejected = this.#unread.flatMap(({ id }) => id ?? []);
    for (const notice of this.#unread)
      for (const text of textsIn(notice)) {
        const known = this.#unreadBy.get(text);
        if (known === undefined) this.#unreadBy.set(text, [notice]);
        else known.push(notice);
      }
    const events = notices.flatMap((notice) => (notice.kind === "event" ? notice.event : []));
    this.#byId = Map.groupBy(events, ({ id }) => id);
    for (const { id, targets } of events) {
      const vehicles = new Set(targets.flatMap(({ values }) => values));
      if (vehicles.size === 0) this.#forAll.push(id);
      for (const vehicle of vehicles) {
        const known = this.#byVehicle.get(vehicle);
        if (known === undefined) this.#byVehicle.set(vehicle, [id]);
        else known.push(id);
      }
    }
  }

  /** The entries for a site with these vehicles, and those of the events in `known`: its vehicles may have left them. */
  of(vehicles: ReadonlySet<string>, known: ReadonlySet<EventId>): readonly EventNotice[] {
    const own = new Set(this.#forAll);
    for (const vehicle of vehicles) for (const id of this.#byVehicle.get(vehicle) ?? []) own.add(id);
    for (const id of known) own.add(id);
    const isOurs = (vehicle: string): boolean => vehicles.has(vehicle);
    return [...own].flatMap((id) =>
      (this.#byId.get(id) ?? []).map((event) => ({ kind: "event", event: shareFor(event, isOurs) }) as const),
    );
  }

  /** Entries that cannot be read, of the events in `known` and those that name one of these vehicles. */
  unreadOf(vehicles: ReadonlySet<string>, known: ReadonlySet<EventId>): readonly Rejected[] {
    if (this.#unread.length === 0) return [];
    const named = new Set([...vehicles].flatMap((vehicle) => this.#unreadBy.get(vehicle) ?? []));
    return this.#unread.filter((notice) => named.has(notice) || (notice.id !== null && known.has(notice.id)));
  }
}
