import { between, earlier, type EventId, type Instant, minutes } from "../units.ts";
import type { KnownEvent, TrackedEvent } from "./known.ts";

/** Complete lists in a row that lacked an event before `GET /events/{id}` is asked (DESIGN 5.2). */
const LISTS_BEFORE_ASKING = 2;
/** An event that the lists go on lacking although it is there is asked for again after this time at the latest. */
const LONGEST_WAIT = minutes(60);

interface Absence {
  /** Complete lists in a row that have lacked it, since it was last found by its id. */
  readonly lists: number;
  /** When the first of them came. */
  readonly since: Instant;
  /** How often it was there when it was asked for. */
  readonly found: number;
}

/** What the partner's lists hold and lack, since the start. */
export class Absences {
  /** Of the last complete list; null: there was none. */
  #listed: ReadonlySet<EventId> | null = null;
  /** The live events that have not ended and that the last complete list lacked. */
  #missing = new Map<EventId, Absence>();

  /**
   * After a complete list: the events to be asked for by id now. Null: the list was the same as the last one.
   * Requests by id are few: the events of which nothing is known yet are settled first, of those the one that starts first.
   */
  listed(ids: ReadonlySet<EventId> | null, known: Iterable<TrackedEvent>, now: Instant): readonly EventId[] {
    const listed = ids ?? this.#listed;
    if (listed === null) return [];
    const missing = new Map<EventId, Absence>();
    const due: { readonly id: EventId; readonly start: Instant; readonly wasFound: boolean }[] = [];
    for (const event of known) {
      const { id } = event;
      if (event.kind !== "live" || listed.has(id) || hasEnded(event, now)) continue;
      const absence = lackedAgain(this.#missing.get(id), now);
      missing.set(id, absence);
      if (isDue(absence, now)) due.push({ id, start: event.revision.start, wasFound: absence.found > 0 });
    }
    this.#listed = listed;
    this.#missing = missing;
    return due
      .toSorted((a, b) => Number(a.wasFound) - Number(b.wasFound) || a.start - b.start)
      .map(({ id }) => id);
  }

  /** It is there, says a fetch by id: what the lists lacked until now proves nothing. */
  found(id: EventId): void {
    const absence = this.#missing.get(id);
    if (absence === undefined) return;
    // Whoever else had it fetched, a webhook perhaps, must not make our own wait longer.
    const found = this.isMissing(id) ? absence.found + 1 : absence.found;
    this.#missing.set(id, { ...absence, lists: 0, found });
  }

  /** Enough lists in a row have lacked it to believe that it is gone, if a fetch by id says so too. */
  isMissing(id: EventId): boolean {
    return (this.#missing.get(id)?.lists ?? 0) >= LISTS_BEFORE_ASKING;
  }

  /** The partner's list holds it, or may hold it: there was no complete list yet. */
  mayBeListed(id: EventId): boolean {
    return this.#listed === null || this.#listed.has(id);
  }
}

function lackedAgain(before: Absence | undefined, now: Instant): Absence {
  if (before === undefined) return { lists: 1, since: now, found: 0 };
  // A clock that was set back since must not make the wait longer.
  const since = before.lists === 0 ? now : earlier(before.since, now);
  return { ...before, lists: before.lists + 1, since };
}

/** Each time that it was found the wait is doubled, or each list would spend a request of the few on it. */
function isDue({ lists, since, found }: Absence, now: Instant): boolean {
  if (lists < LISTS_BEFORE_ASKING) return false;
  return lists >= LISTS_BEFORE_ASKING * 2 ** found || between(since, now) >= LONGEST_WAIT;
}

/** No vehicle's window can be open any more, however late it started. */
export function hasEnded(known: KnownEvent & { kind: "live" }, now: Instant): boolean {
  const { event, start } = known.revision;
  return start + event.randomizeStart + event.duration <= now;
}
