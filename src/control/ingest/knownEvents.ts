import { hash } from "node:crypto";

import type { Rejected } from "../../domain/delivery.ts";
import type { EventArchive, EventSummary, KnownEvent, TrackedEvent } from "../../domain/event.ts";
import type { EventId, Instant } from "../../domain/units.ts";

/** The known state of each event. An event that is over is a summary here. The whole event is in the archive. */
export class KnownEvents extends Map<EventId, TrackedEvent> {
  readonly #archive: EventArchive;
  readonly #onChange: (id: EventId) => void;

  constructor(archive: EventArchive, onChange: (id: EventId) => void) {
    super();
    this.#archive = archive;
    this.#onChange = onChange;
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
    this.#onChange(id);
    return super.set(id, known);
  }

  override delete(id: EventId): boolean {
    this.#onChange(id);
    return super.delete(id);
  }

  override clear(): void {
    for (const id of this.keys()) this.#onChange(id);
    super.clear();
  }
}

/** Read-only view. Writes go through the schedule. */
export type ReadonlyKnownEvents = ReadonlyMap<EventId, TrackedEvent> &
  Pick<KnownEvents, "whole" | "openAt" | "stored">;

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
