import { hash } from "node:crypto";

import type { Rejected } from "../../domain/delivery.ts";
import type { EventArchive, EventSummary, KnownEvent, TrackedEvent } from "../../domain/event.ts";
import type { EventId, Instant } from "../../domain/units.ts";

/**
 * The known state of each event, and the ids that changed since `takeChanged`.
 * An event that is over is a summary here. The whole event is in the archive.
 */
export class KnownEvents extends Map<EventId, TrackedEvent> {
  readonly #changed = new Set<EventId>();

  readonly #archive: EventArchive;

  constructor(archive: EventArchive) {
    super();
    this.#archive = archive;
  }

  /** The whole event. Undefined: unknown id. Null: the stored event cannot be read. */
  whole(id: EventId): KnownEvent | undefined | null {
    const known = this.get(id);
    return known?.kind === "over" ? this.#archive.event(id) : known;
  }

  /** The whole event, where only a clock that was ahead ended it. Null: it is over at `now` as well. */
  openAt(tracked: TrackedEvent, now: Instant): KnownEvent | null {
    if (tracked.kind !== "over") return tracked;
    return tracked.until > now ? this.#archive.event(tracked.id) : null;
  }

  /** The summary of the stored event. Null: it is not stored. */
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

  /** Marks every event as changed: the reader of `takeChanged` starts over. */
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
