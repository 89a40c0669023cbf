import { hash } from "node:crypto";

import { auditRow, type AuditEntry, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { Rejected } from "../../domain/delivery.ts";
import type {
  Ending,
  EventArchive,
  EventSummary,
  KnownEvent,
  Revision,
  TrackedEvent,
} from "../../domain/event.ts";
import { type EventId, type Instant, millis, minutes } from "../../domain/units.ts";
import { backoff } from "../../platform/clock.ts";
import { AnnouncingMap } from "../changeFeed.ts";

/** Whole events that were read for one step, by their summaries. Null: the stored event cannot be read. */
export type WholeEvents = ReadonlyMap<EventSummary, KnownEvent | null>;

export const NONE_READ: WholeEvents = new Map();

/** The known state of each event. An event that is over is a summary here. The whole event is in the archive. */
export class KnownEvents extends AnnouncingMap<EventId, TrackedEvent> {
  readonly #archive: EventArchive;

  constructor(archive: EventArchive, onChange: (id: EventId) => void) {
    super(onChange);
    this.#archive = archive;
  }

  /**
   * Runs a step that needs some events whole. `wanted`: those of them that are over. They are read first, and `wanted`
   * is asked again in the turn of the step: an event may have changed meanwhile. Nothing to read: the step runs at once.
   */
  withWhole<T>(
    wanted: () => Iterable<EventSummary>,
    step: (read: WholeEvents) => T | Promise<T>,
    archived = this.#archive.whole,
  ): T | Promise<T> {
    const read = new Map<EventSummary, KnownEvent | null>();
    const run = (): T | Promise<T> => {
      const missing = [...wanted()].filter((summary) => !read.has(summary));
      if (missing.length === 0) return step(read);
      return archived(missing.map(({ id }) => id)).then((found) => {
        for (const summary of missing) read.set(summary, found.get(summary.id) ?? null);
        return run();
      });
    };
    return run();
  }

  /** The whole event. Undefined: unknown id. Null: the stored event cannot be read, or is not among those read. */
  whole(id: EventId, read: WholeEvents): KnownEvent | undefined | null {
    const known = this.get(id);
    return known?.kind === "over" ? (read.get(known) ?? null) : known;
  }

  /** Reads the whole event. Undefined: unknown id. Null: the stored event cannot be read. */
  async readWhole(id: EventId, archived = this.#archive.whole): Promise<KnownEvent | undefined | null> {
    const wanted = (): readonly EventSummary[] => {
      const known = this.get(id);
      return known?.kind === "over" ? [known] : [];
    };
    return this.withWhole(wanted, (read) => this.whole(id, read), archived);
  }

  /** As `readWhole`, for the request of a person: rejects while the store cannot be read. */
  readNow(id: EventId): Promise<KnownEvent | undefined | null> {
    return this.readWhole(id, this.#archive.wholeNow);
  }

  /** Events that are over only by a clock that was ahead. */
  *openAgain(now: Instant): Generator<EventSummary> {
    for (const known of this.values()) if (known.kind === "over" && known.until > now) yield known;
  }

  /** The whole event, where only a clock that was ahead ended it. Null: it is over at `now` as well. */
  openAt(tracked: TrackedEvent, now: Instant, read: WholeEvents): KnownEvent | null {
    if (tracked.kind !== "over") return tracked;
    return tracked.until > now ? (read.get(tracked) ?? null) : null;
  }

  /** Summaries of the stored events. Absent: not stored. */
  stored(ids: readonly EventId[]): Promise<ReadonlyMap<EventId, EventSummary>> {
    return this.#archive.summaries(ids);
  }
}

/** Read-only view. Writes go through the schedule. */
export type ReadonlyKnownEvents = ReadonlyMap<EventId, TrackedEvent> &
  Pick<KnownEvents, "withWhole" | "whole" | "readWhole" | "readNow" | "openAgain" | "openAt" | "stored">;

/** Cap on remembered rejections. Larger than the longest list that is accepted, so one list never evicts itself. */
const MOST = 100_000;

/** Input that was already recorded as rejected. Each input is recorded once. */
export class Rejections {
  readonly #prints = new Set<string>();

  /** True: this input was not rejected before. */
  isNew({ id, path, reason, raw }: Rejected): boolean {
    const print = hash("sha256", JSON.stringify([id, path, reason, raw]), "base64");
    if (this.#prints.has(print)) return false;
    if (this.#prints.size >= MOST) this.#prints.clear();
    this.#prints.add(print);
    return true;
  }

  /** After a failed commit the stored rows are unknown. A second row is better than none. */
  clear(): void {
    this.#prints.clear();
  }
}

/** Rejected entries of one delivery with a row of their own. One more row sums up the rest. */
const OWN_ROWS = 20;
/** Cap on quarantined entries of one delivery. More would only evict each other. */
const MOST_KEPT = 1000;
/** Ids named in the row that stands for the rest. */
const MOST_NAMED = 50;
/** Characters kept of a quarantined entry. */
export const MOST_RAW = 4096;

/**
 * Stores unreadable entries for inspection and records them. The same entry in every poll is recorded once.
 */
export function quarantined(
  { rejections }: { readonly rejections: Rejections },
  rejected: readonly Rejected[],
  { at, source }: { readonly at: Instant; readonly source: string },
): readonly Change[] {
  const fresh = rejected.filter((one) => rejections.isNew(one));
  const kept = fresh
    .slice(0, MOST_KEPT)
    .map((one) => ({ kind: "quarantine", rejected: one, at, source }) as const);
  const rows = fresh.slice(0, OWN_ROWS).map(({ id, path, reason }) => {
    const message = `${id === null ? "something" : `event ${id}`} in a ${source} was set aside: ${path}: ${reason}`;
    return row(at, id, message, { path, reason, source });
  });
  const rest = fresh.slice(OWN_ROWS);
  const [first] = rest;
  if (first === undefined) return [...kept, ...rows];
  const message = `${rest.length} more in the same ${source} were set aside, the next: ${first.path}: ${first.reason}`;
  const ids = rest.flatMap(({ id }) => (id === null ? [] : [id])).slice(0, MOST_NAMED);
  return [...kept, ...rows, row(at, null, message, { count: rest.length, ids, source })];
}

const row = (at: AuditEntry["at"], event: AuditEntry["event"], message: string, details: Json): Change =>
  auditRow("rejected", at, message, { event, facts: details });

/**
 * The oldest ending that is kept. Where each window begins as under the ending before it, which is dropped, it counts as
 * received with that: `knownAt` then finds when the window was known first. Equal target lists are one list in memory.
 */
export function continuing(before: Ending | undefined, ending: Ending): Ending {
  const isAlike = before !== undefined && before.at === ending.receivedAt && beginAlike(before, ending);
  return isAlike && before.receivedAt !== undefined ? { ...ending, receivedAt: before.receivedAt } : ending;
}

const beginAlike = ({ revision: one }: Ending, { revision: other }: Ending): boolean =>
  beginningOf(one) === beginningOf(other) && one.event.targets === other.event.targets;
const beginningOf = ({ start, event }: Revision): string =>
  `${start} ${event.wireStart} ${event.randomizeStart} ${event.duration} ${event.ask.kind}`;

/** Failures of one delivery, each while another was stored, before it goes to the quarantine. */
export const MOST_FAILURES = 3;
/** Waits before a delivery is tried again. They double with each failure. */
const FIRST_WAIT = millis(500);
const LONGEST_WAIT = minutes(1);

/** Failures of one delivery. Times by the monotonic clock, ms. */
export interface DeliveryFailure {
  readonly tries: number;
  /** Failures beside which another delivery was stored: a database that stores nothing is no fault of this one. */
  readonly count: number;
  /** Deliveries that were stored before the last one. */
  readonly stored: number;
  readonly tryAt: number;
}

/** The failures of a delivery after one more. `stored`: deliveries that were stored so far; `before`: until the last failure. */
export function failedAgain(
  last: DeliveryFailure | undefined,
  { stored, before, now }: { readonly stored: number; readonly before: number; readonly now: number },
): DeliveryFailure {
  const tries = last?.tries ?? 0;
  const count = (last?.count ?? 0) + (stored > (last?.stored ?? before) ? 1 : 0);
  return { tries: tries + 1, count, stored, tryAt: now + backoff(tries, 1, FIRST_WAIT, LONGEST_WAIT) };
}

/** A delivery that failed is tried again after a wait, or once another was stored: the next failure counts then. */
export const isDueAgain = (last: DeliveryFailure | undefined, stored: number, now: number): boolean =>
  last === undefined || now >= last.tryAt || stored > last.stored;
