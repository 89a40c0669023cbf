import { hash } from "node:crypto";

import {
  minutes,
  type Instant,
  after,
  later,
  type EventId,
  type Millis,
  between,
  earlier,
  hours,
} from "./units.ts";

/** Payload types that are acted on, as the partner writes them. */
export const PAYLOAD_TYPES = { current: "CurrentLevel", power: "PowerLevel" } as const;

/**
 * The level of an event. `level` is the number on the wire; the site's configuration gives its unit
 * (`control.units`).
 */
export type Ask =
  | { readonly kind: "current"; readonly level: number }
  | { readonly kind: "power"; readonly level: number }
  /** Unknown payload types are stored, shown, reported if asked, and never acted on. */
  | { readonly kind: "unknown"; readonly payloadType: string };

/** Vehicles or groups that the partner names, by the type of the names. */
export interface Target {
  readonly type: string;
  readonly values: readonly string[];
}

/** A report descriptor as received. The report plan decides what zero or absence means. */
export interface ReportDescriptor {
  readonly payloadType: string;
  readonly readingType: string;
  readonly targets: readonly Target[];
  readonly aggregate: boolean;
  readonly historical: boolean;
  readonly frequency: number | null;
  readonly numIntervals: number | null;
  readonly repeat: number | null;
  readonly startInterval: number | null;
}

/** A revision of an event, normalized. No member is optional. */
export interface CoordinationEvent {
  readonly id: EventId;
  /** modificationDateTime. createdDateTime where that is absent. */
  readonly revision: Instant;
  readonly created: Instant;
  readonly name: string;
  readonly programId: string;
  readonly priority: number | null;
  /**
   * Start as hashed for the start offset: an ISO instant with milliseconds, so two notations of one instant give one
   * offset.
   * For "now": the text on the wire.
   */
  readonly wireStart: string;
  /** "now": a start before the year 2000. Intake replaces it by the first receipt. */
  readonly start: Instant | "now";
  readonly duration: Millis;
  /** Range of the random start. Zero: none. */
  readonly randomizeStart: Millis;
  readonly ask: Ask;
  readonly targets: readonly Target[];
  readonly reports: readonly ReportDescriptor[];
  /** SHA-256 of all members above, hex. Equal hashes mean equal revisions. */
  readonly hash: string;
}

/** A revision with its start settled. A start of "now" is the moment of the first receipt. */
export interface Revision {
  readonly event: CoordinationEvent;
  readonly start: Instant;
}

/** A revision that was replaced or withdrawn at `at`, perhaps inside its window. */
export interface Ending {
  readonly revision: Revision;
  readonly at: Instant;
  /**
   * Receipt of the revision, or of one before it that is not kept and has the same beginnings. Absent: an earlier release
   * stored it.
   */
  readonly receivedAt?: Instant;
}

/**
 * Stored state of one event id. Dispatches are derived from it and never stored.
 * `goneUntil`: the last withdrawal or earlier receipt, where the clock at the receipt was behind it. Absent: the receipt
 * is later than all of them.
 */
export type KnownEvent =
  | {
      readonly kind: "live";
      readonly id: EventId;
      readonly revision: Revision;
      /** A fetched copy wins over a webhook's copy of the same revision. */
      readonly source: "webhook" | "fetch";
      readonly receivedAt: Instant;
      readonly endings: readonly Ending[];
      /** Largest number of report descriptors of any revision. Each of them ends as sent or flagged. */
      readonly descriptors: number;
      readonly goneUntil?: Instant;
    }
  /** A tombstone. Only a newer revision, or a later fetch that holds the event, revives it. */
  | {
      readonly kind: "withdrawn";
      readonly id: EventId;
      /** Highest revision seen. The receipt, where none was. */
      readonly watermark: Instant;
      /** Anchor of the last revision, in case it returns unchanged. Null: its start was not "now". */
      readonly anchor: Instant | null;
      readonly receivedAt: Instant;
      /** Last delete, repeats included. The result of a fetch that was sent before it is older. */
      readonly deletedAt: Instant;
      readonly endings: readonly Ending[];
      readonly descriptors: number;
      readonly goneUntil?: Instant;
    };

/** An event that is over, as kept in memory. Targets and report descriptors stay on disk. */
export interface EventSummary {
  readonly kind: "over";
  readonly id: EventId;
  readonly was: KnownEvent["kind"];
  /** For a withdrawn event: the highest revision seen. */
  readonly revision: Instant;
  /** Hash of the last revision. Null: withdrawn. */
  readonly hash: string | null;
  readonly receivedAt: Instant;
  /** For a withdrawn event: its withdrawal. */
  readonly start: Instant;
  /** No window is open from this moment on, for any vehicle. */
  readonly until: Instant;
  /** See `KnownEvent`. */
  readonly descriptors: number;
  /**
   * Fingerprint of each report descriptor of the last revision. It shows whether a later revision asks for something
   * else.
   */
  readonly asks: readonly string[];
  /** Size of the whole event on disk, characters. */
  readonly size: number;
}

/** An event in memory: whole while a window may be open, then a summary. */
export type TrackedEvent = KnownEvent | EventSummary;

/** Read access to stored events. An event that is not stored, or not readable, is absent from the answer. */
export interface EventArchive {
  readonly whole: (ids: readonly EventId[]) => Promise<ReadonlyMap<EventId, KnownEvent>>;
  readonly summaries: (ids: readonly EventId[]) => Promise<ReadonlyMap<EventId, EventSummary>>;
  /** `whole` for the request of a person. Rejects while the database is away. Absent: `whole` never waits for one. */
  readonly wholeNow?: EventArchive["whole"];
}

/** First receipt of a start of "now". Null: the last revision had a start of its own, or the event is unknown. */
export function anchorOf(known: KnownEvent | undefined): Instant | null {
  if (known?.kind !== "live") return known?.anchor ?? null;
  const { event, start } = known.revision;
  return event.start === "now" ? start : null;
}

/**
 * Last withdrawal or receipt, where the clock at the next receipt (`at`) is behind it. Undefined: the clock is not behind.
 * Dispatches of such an event before that moment were acted on already, are withdrawn, or were not known yet.
 */
export function goneUntil(known: KnownEvent | undefined, at: Instant): Instant | undefined {
  if (known === undefined) return undefined;
  const latest = later(lastNoticeOf(known, at), known.goneUntil ?? at);
  return latest > at ? latest : undefined;
}

/** A receipt counts where the revision shows that the clock is behind. The receipt may be wrong otherwise. */
const lastNoticeOf = (known: KnownEvent, at: Instant): Instant => {
  if (known.kind === "withdrawn") return known.deletedAt;
  return isDatedAhead(known.revision.event.revision, at) ? known.receivedAt : at;
};

/**
 * The revision that was known at a moment. Null: none, none is kept, or the event was withdrawn since.
 * Revisions that were withdrawn and came back do not continue each other.
 */
export function knownAt(known: KnownEvent, moment: Instant): Revision | null {
  if (known.kind !== "live") return null;
  if (known.receivedAt <= moment) return known.revision;
  let next = known.receivedAt;
  for (const { revision, at, receivedAt } of known.endings.toReversed()) {
    if (at !== next || receivedAt === undefined) return null;
    if (receivedAt <= moment) return revision;
    next = receivedAt;
  }
  return null;
}

/** Limit for correcting dates. A clock that was further ahead was unset, so its dates mean nothing. */
const FURTHEST_AHEAD = hours(24);

/**
 * Sets dates in the future to `now`, after the clock was set back. They were written while the clock was ahead.
 * Without this, a replaced revision would hold again between the end of its successor and the wrong date.
 * Returns the same object where no date is later than `now`.
 */
export function clampToNow(tracked: KnownEvent, now: Instant): KnownEvent {
  const newest = tracked.kind === "live" ? tracked.receivedAt : tracked.deletedAt;
  if (newest <= now || between(now, newest) > FURTHEST_AHEAD) return tracked;
  // The receipt becomes `now`, and the last withdrawal is earlier.
  const { goneUntil: _, ...known } = tracked;
  const endings = known.endings.map(({ revision, at, receivedAt }) => ({
    revision: startedBy(revision, now),
    at: earlier(at, now),
    ...(receivedAt === undefined ? {} : { receivedAt: earlier(receivedAt, now) }),
  }));
  return known.kind === "live"
    ? { ...known, revision: startedBy(known.revision, now), receivedAt: now, endings }
    : {
        ...known,
        anchor: known.anchor === null ? null : earlier(known.anchor, now),
        receivedAt: earlier(known.receivedAt, now),
        deletedAt: now,
        endings,
      };
}

const startedBy = (revision: Revision, now: Instant): Revision =>
  revision.event.start === "now" ? { ...revision, start: earlier(revision.start, now) } : revision;

/** Longest spread of an unplanned end. An older ending has no release left to send. */
export const LONGEST_TAIL = minutes(10);

/** Report descriptors beyond this number are flagged as a mistake. */
export const MOST_DESCRIPTORS = 32;

/** No window of the event is open from this moment on. In the future while one may still be. */
export function overSince(known: KnownEvent): Instant {
  const ends = known.kind === "live" ? [lastEnd(known), ...tailEnds(known)] : tailEnds(known);
  return ends.reduce(later, known.receivedAt);
}

/** Ends of the spread of the unplanned ends. */
const tailEnds = ({ endings }: KnownEvent): readonly Instant[] =>
  endings.map(({ at }) => after(at, LONGEST_TAIL));

/** End of the last possible window, with the largest start offset. */
export function lastEnd({ revision: { event, start } }: KnownEvent & { readonly kind: "live" }): Instant {
  return after(after(start, event.randomizeStart), event.duration);
}

/** Reduces an event to its summary. `size`: characters that the whole event takes on disk. */
export function summaryOf(known: KnownEvent, size: number): EventSummary {
  const { id, receivedAt, descriptors } = known;
  const common = { kind: "over", id, receivedAt, until: overSince(known), descriptors, size } as const;
  if (known.kind === "withdrawn") {
    return {
      ...common,
      was: "withdrawn",
      revision: known.watermark,
      hash: null,
      start: receivedAt,
      asks: [],
    };
  }
  const { event, start } = known.revision;
  const asks = event.reports
    .slice(0, MOST_DESCRIPTORS)
    .map((_, descriptor) => askPrint(known.revision, descriptor));
  return { ...common, was: "live", revision: event.revision, hash: event.hash, start, asks };
}

/** Fingerprint of one report descriptor and of the event's start and duration. */
export const askPrint = ({ event }: Revision, descriptor: number): string =>
  hash("sha256", JSON.stringify([event.reports[descriptor], event.start, event.duration])).slice(0, 16);

/**
 * Latest moment at which the event may hold on any charger, the spread of an unplanned end included. Null: none.
 * A start later than `now` is ignored. `since`: when the charger was released, perhaps before the clock was set back.
 */
export function openUntil(
  known: TrackedEvent | undefined,
  now: Instant,
  since: Instant = now,
): Instant | null {
  if (known === undefined || known.kind === "over") return null;
  const isBegun = known.kind === "live" && known.revision.start <= later(now, since);
  const ends = isBegun ? [lastEnd(known), ...tailEnds(known)] : tailEnds(known);
  const last = ends.reduce(later, now);
  return last > now ? last : null;
}

/** A mistaken time zone is less. A revision dated further ahead of our clock proves nothing about its order. */
const MOST_AHEAD = hours(24);

/** True: later revisions of the event may be dated earlier than this one. A fetch decides between them. */
export const isDatedAhead = (revision: Instant, at: Instant): boolean => revision > after(at, MOST_AHEAD);
