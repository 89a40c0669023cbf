import { hash } from "node:crypto";

import type { Rejected } from "../../domain/delivery.ts";
import type { EventArchive, EventSummary, KnownEvent, TrackedEvent } from "../../domain/event.ts";
import type { EventId, Instant } from "../../domain/units.ts";

/**
 * What is known of each event, and of which of them that has changed since somebody took it in. An event that is over
 * is a summary here; the whole event is in the archive.
 */
export class KnownEvents extends Map<EventId, TrackedEvent> {
  readonly #changed = new Set<EventId>();

  readonly #archive: EventArchive;

  constructor(archive: EventArchive) {
    super();
    this.#archive = archive;
  }

  /** The whole event. Undefined: there is none; null: it is stored and cannot be read. */
  whole(id: EventId): KnownEvent | undefined | null {
    const known = this.get(id);
    return known?.kind === "over" ? this.#archive.event(id) : known;
  }

  /** The whole of an event that may have been over only by a clock that was ahead. Null: it is over at `now`, too. */
  openAt(tracked: TrackedEvent, now: Instant): KnownEvent | null {
    if (tracked.kind !== "over") return tracked;
    return tracked.until > now ? this.#archive.event(tracked.id) : null;
  }

  /** What memory would keep of an event if it was over, by what is stored of it. Null: it is not stored. */
  stored(id: EventId): EventSummary | null {
    return this.#archive.summary(id);
  }

  override set(id: EventId, known: TrackedEvent): this {
    this.#changed.add(id);
    return super.set(id, known);
  }

  override delete(id: EventId): boolean {
    this.#changed.add(id);
    return super.delete(id);
  }

  override clear(): void {
    this.allChanged();
    super.clear();
  }

  /** Whoever took them in starts over. */
  allChanged(): void {
    for (const id of this.keys()) this.#changed.add(id);
  }

  /** The events that were added, changed or forgotten since the last call. For one reader. */
  takeChanged(): readonly EventId[] {
    if (this.#changed.size === 0) return NONE;
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }
}

const NONE: readonly EventId[] = [];

/** Cap on remembered rejections. Larger than the longest list that is accepted, so one list never evicts itself. */
const MOST = 100_000;

/** The rejected input that was recorded already: each is recorded once. */
export class Rejections {
  readonly #prints = new Set<string>();

  /** Whether this was not rejected before. */
  isNew({ id, path, reason, raw }: Rejected): boolean {
    const print = hash("sha256", JSON.stringify([id, path, reason, raw]), "base64");
    if (this.#prints.has(print)) return false;
    if (this.#prints.size >= MOST) this.#prints.clear();
    this.#prints.add(print);
    return true;
  }

  /** After a failed commit it is not known which rows are stored: twice is better than never. */
  clear(): void {
    this.#prints.clear();
  }
}
