import type { ChargerId, EventId } from "../domain/units.ts";

/** The changes that one reader has not handled yet. Several changes of one thing count as one. */
export class UnreadChanges<Id> {
  readonly #ids = new Set<Id>();

  /** In the order in which they changed first. */
  [Symbol.iterator](): SetIterator<Id> {
    return this.#ids.values();
  }

  add(id: Id): void {
    this.#ids.add(id);
  }

  addAll(ids: Iterable<Id>): void {
    for (const id of ids) this.#ids.add(id);
  }

  remove(id: Id): void {
    this.#ids.delete(id);
  }

  /** Removes and returns all of them. */
  takeAll(): readonly Id[] {
    if (this.#ids.size === 0) return [];
    const ids = [...this.#ids];
    this.#ids.clear();
    return ids;
  }
}

/**
 * The one place that learns what changed. Each reader has its own list and reads in its own time. A further reader is
 * one more list here.
 */
export class ChangeFeed {
  /** For the MQTT state of chargers (control/send/pipeline.ts). */
  readonly forPublishedState = new UnreadChanges<ChargerId>();
  /** For report obligations (reporting/stages.ts). */
  readonly forReports = new UnreadChanges<EventId>();

  /** Command, presence, telemetry, vehicle or silence of a charger may differ from what was published. */
  chargerChanged(charger: ChargerId): void {
    this.forPublishedState.add(charger);
  }

  /** An event was added, changed, condensed or forgotten. */
  eventChanged(event: EventId): void {
    this.forReports.add(event);
  }
}
