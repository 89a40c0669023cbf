import type { KnownEvent } from "./control/known.ts";
import type { EventId } from "./units.ts";

/** What is known of each event, and of which of them that has changed since somebody took it in. */
export class KnownEvents extends Map<EventId, KnownEvent> {
  readonly #changed = new Set<EventId>();

  override set(id: EventId, known: KnownEvent): this {
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
