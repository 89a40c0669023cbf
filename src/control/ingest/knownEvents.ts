import type { EventArchive, EventSummary, KnownEvent, TrackedEvent } from "../../domain/event.ts";
import type { EventId, Instant } from "../../domain/units.ts";
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

  /** `readWhole` for the request of a person: rejects while the store cannot be read. */
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
