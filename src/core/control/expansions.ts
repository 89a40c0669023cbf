import type { EventId } from "../units.ts";
import { type Dispatch, type Expansion, expandAfter, type ExpandContext } from "./expand.ts";
import type { KnownEvent } from "./known.ts";

/** Each takes a few megabytes for 20,000 vehicles. */
const MOST = 4;

/** The expansions of the events that were expanded last: an event that is edited again and again is worked out from there. */
export class Expansions {
  readonly #newest = new Map<EventId, Expansion>();

  expand(known: KnownEvent, context: ExpandContext): readonly Dispatch[] {
    const { id } = known;
    const expansion = expandAfter(this.#newest.get(id) ?? null, known, context);
    this.#newest.delete(id);
    this.#newest.set(id, expansion);
    for (const oldest of this.#newest.keys().take(Math.max(0, this.#newest.size - MOST)))
      this.#newest.delete(oldest);
    return expansion.dispatches;
  }
}
