import { type EventId, type Instant, type Millis, between, earlier, later, minutes } from "./units.ts";

/** The payload types that are acted on, as the partner spells them. */
export const PAYLOAD_TYPES = { current: "CurrentLevel", power: "PowerLevel" } as const;

/** What an event asks for. `level` is the wire's own number; its unit is a setting of the site (expand). */
export type Ask =
  | { readonly kind: "current"; readonly level: number }
  | { readonly kind: "power"; readonly level: number }
  /** Unknown payload types are kept, shown, reported if asked, and never acted on. */
  | { readonly kind: "unknown"; readonly payloadType: string };

export interface Target {
  readonly type: string;
  readonly values: readonly string[];
}

/** partner-interface 2.3, as it arrived: what zero or absence means is decided by the report plan. */
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

/** One revision of an event, normalized (partner-interface 2.1). Total: nothing here is optional. */
export interface CoordinationEvent {
  readonly id: EventId;
  /** modificationDateTime; createdDateTime where that is absent. */
  readonly revision: Instant;
  readonly created: Instant;
  readonly name: string;
  readonly programId: string;
  readonly priority: number | null;
  /**
   * The start as the start offset is derived from it: an ISO instant with milliseconds, so that two spellings of one
   * instant draw alike. The text on the wire where that means "now" (DESIGN 5.3).
   */
  readonly wireStart: string;
  /** "now": a start before the year 2000, anchored to the first receipt by intake. */
  readonly start: Instant | "now";
  readonly duration: Millis;
  /** Zero: none asked. */
  readonly randomizeStart: Millis;
  readonly ask: Ask;
  readonly targets: readonly Target[];
  readonly reports: readonly ReportDescriptor[];
  /** SHA-256 of all of the above, hex: two revisions with the same hash are the same. */
  readonly hash: string;
}

/** One revision with its start settled: where the wire said "now", the moment of the first receipt. */
export interface Revision {
  readonly event: CoordinationEvent;
  readonly start: Instant;
}

/** A revision that was replaced or withdrawn at `at`, perhaps in the middle of what it asked for. */
export interface Ending {
  readonly revision: Revision;
  readonly at: Instant;
}

/**
 * All that is stored of one event ID. Dispatches are derived from it (expand), never stored.
 * `goneUntil`: the last withdrawal before the receipt, where the clock was behind at the receipt. Absent: the receipt is
 * later than every withdrawal.
 */
export type KnownEvent =
  | {
      readonly kind: "live";
      readonly id: EventId;
      readonly revision: Revision;
      /** What a fetch returned wins over what a webhook said of the same revision. */
      readonly source: "webhook" | "fetch";
      readonly receivedAt: Instant;
      readonly endings: readonly Ending[];
      /** The most report descriptors that any revision had: each ends sent or flagged, whatever became of it (L3). */
      readonly descriptors: number;
      readonly goneUntil?: Instant;
    }
  /** A tombstone: only a newer revision, or a later fetch that holds the event, revives it. */
  | {
      readonly kind: "withdrawn";
      readonly id: EventId;
      /** The highest revision seen; the receipt where none was. */
      readonly watermark: Instant;
      /** What "now" meant of its last revision, for if it comes back as it was; null: it had a start of its own. */
      readonly anchor: Instant | null;
      readonly receivedAt: Instant;
      /** When the last delete came, repeats included: what a fetch asked for before it returns is older. */
      readonly deletedAt: Instant;
      readonly endings: readonly Ending[];
      readonly descriptors: number;
      readonly goneUntil?: Instant;
    };

/** What memory keeps of an event that is over. Its targets and report descriptors are on disk, and read when needed. */
export interface EventSummary {
  readonly kind: "over";
  readonly id: EventId;
  readonly was: KnownEvent["kind"];
  /** Of a withdrawn event the highest revision seen. */
  readonly revision: Instant;
  /** Of the revision that counted last; null: it was withdrawn. */
  readonly hash: string | null;
  readonly receivedAt: Instant;
  /** Of a withdrawn event its withdrawal. */
  readonly start: Instant;
  /** From this moment on nothing of it can be open for any vehicle. */
  readonly until: Instant;
  /** As of the whole event. */
  readonly descriptors: number;
  /** A print for each report descriptor of the last revision: whether a later revision asks for something else. */
  readonly asks: readonly string[];
  /** Characters that the whole event takes on disk. */
  readonly size: number;
}

/** An event in memory: whole while it is open, a summary once it is over. */
export type TrackedEvent = KnownEvent | EventSummary;

/** The stored events. */
export interface EventArchive {
  /** Null: it is not stored, or cannot be read. */
  readonly event: (id: EventId) => KnownEvent | null;
  readonly summary: (id: EventId) => EventSummary | null;
}

/** The moment that "now" meant, stored with the first receipt; null: the last revision had a start of its own, or none came. */
export function anchorOf(known: KnownEvent | undefined): Instant | null {
  if (known?.kind !== "live") return known?.anchor ?? null;
  const { event, start } = known.revision;
  return event.start === "now" ? start : null;
}

/**
 * When the event was last withdrawn before a receipt at `at` by a clock that is behind that withdrawal. Undefined: the
 * clock is not behind. What such an event asked for until then was acted on, or not asked for any more.
 */
export function goneUntil(known: KnownEvent | undefined, at: Instant): Instant | undefined {
  const latest =
    known?.kind === "withdrawn" ? later(known.deletedAt, known.goneUntil ?? at) : known?.goneUntil;
  return latest !== undefined && latest > at ? latest : undefined;
}

/** A clock that is set back further than this had no idea of the time, and says nothing of when things came. */
const FURTHEST_AHEAD = minutes(24 * 60);

/**
 * An event as it is after the clock was set back: what is dated later than now came while the clock was ahead, and is
 * dated now. Else a revision that was replaced in that time would hold again, from the end of its successor until the
 * wrong date. The very same object where nothing is dated later.
 */
export function clampToNow(tracked: KnownEvent, now: Instant): KnownEvent {
  const newest = tracked.kind === "live" ? tracked.receivedAt : tracked.deletedAt;
  if (newest <= now || between(now, newest) > FURTHEST_AHEAD) return tracked;
  // The receipt counts as of now, and the last withdrawal was before it.
  const { goneUntil: _, ...known } = tracked;
  const endings = known.endings.map(({ revision, at }) => ({
    revision: startedBy(revision, now),
    at: earlier(at, now),
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
