import { type KnownEvent, lastEnd, type TrackedEvent } from "../../domain/event.ts";
import { between, earlier, type EventId, type Instant, minutes, hours } from "../../domain/units.ts";

/** Complete lists in a row that must lack an event before it is fetched by id. */
const LISTS_BEFORE_ASKING = 2;
/** Longest wait before an event that exists, but that the lists still lack, is fetched again. */
const LONGEST_WAIT = hours(1);

interface Absence {
  /** Complete lists in a row that lacked it, since the last successful fetch by id. */
  readonly lists: number;
  /** Arrival of the first of them. */
  readonly since: Instant;
  /** Fetches by id that found the event. */
  readonly found: number;
}

/** Events that the partner's lists hold and lack, since the start of the program. */
export class Absences {
  /** Ids in the last complete list. Null: no complete list yet. */
  #listed: ReadonlySet<EventId> | null = null;
  /** Live events that have not ended and that the last complete list lacked. */
  #missing = new Map<EventId, Absence>();

  /**
   * After a complete list: the events to fetch by id now. `ids` null: the list was the same as the last one.
   * Requests by id are limited. Events without a fetch so far come first, then the earliest start.
   */
  listed(ids: ReadonlySet<EventId> | null, known: Iterable<TrackedEvent>, now: Instant): readonly EventId[] {
    const listed = ids ?? this.#listed;
    if (listed === null) return [];
    const missing = new Map<EventId, Absence>();
    const due: { readonly id: EventId; readonly start: Instant; readonly wasFound: boolean }[] = [];
    for (const event of known) {
      const { id } = event;
      if (event.kind !== "live" || listed.has(id) || hasEnded(event, now)) continue;
      const absence = countAbsence(this.#missing.get(id), now);
      missing.set(id, absence);
      if (isDue(absence, now)) due.push({ id, start: event.revision.start, wasFound: absence.found > 0 });
    }
    this.#listed = listed;
    this.#missing = missing;
    return due
      .toSorted((a, b) => Number(a.wasFound) - Number(b.wasFound) || a.start - b.start)
      .map(({ id }) => id);
  }

  /** A fetch by id found the event. The lists that lacked it until now prove nothing. */
  found(id: EventId): void {
    const absence = this.#missing.get(id);
    if (absence === undefined) return;
    // A fetch with another cause, such as a webhook, must not make the wait longer.
    const found = this.isMissing(id) ? absence.found + 1 : absence.found;
    this.#missing.set(id, { ...absence, lists: 0, found });
  }

  /** Enough lists in a row lacked the event. It is withdrawn if a fetch by id does not find it either. */
  isMissing(id: EventId): boolean {
    return (this.#missing.get(id)?.lists ?? 0) >= LISTS_BEFORE_ASKING;
  }

  /** The partner's last complete list holds the event, or there was no complete list yet. */
  mayBeListed(id: EventId): boolean {
    return this.#listed === null || this.#listed.has(id);
  }
}

function countAbsence(before: Absence | undefined, now: Instant): Absence {
  if (before === undefined) return { lists: 1, since: now, found: 0 };
  // A clock that was set back must not make the wait longer.
  const since = before.lists === 0 ? now : earlier(before.since, now);
  return { ...before, lists: before.lists + 1, since };
}

/**
 * The wait doubles with each fetch that finds the event. Otherwise each list would spend a request of the
 * budget.
 */
function isDue({ lists, since, found }: Absence, now: Instant): boolean {
  if (lists < LISTS_BEFORE_ASKING) return false;
  return lists >= LISTS_BEFORE_ASKING * 2 ** found || between(since, now) >= LONGEST_WAIT;
}

/** No vehicle's window can be open any more, with the latest random start included. */
export const hasEnded = (known: KnownEvent & { kind: "live" }, now: Instant): boolean =>
  lastEnd(known) <= now;

interface DeleteClaim {
  /** Arrival of the newest delete. */
  readonly at: Instant;
  /** Time of the last fetch by id that a delete caused. */
  readonly askedAt: Instant;
  /** No fetch has confirmed or refuted it yet. */
  readonly isOpen: boolean;
}

/** A replayed delete costs at most one request in this time. The list settles the rest. */
const ASK_AGAIN = minutes(1);
/** An open claim that no fetch settles for this long is dropped. The lists alone decide then. */
const LONGEST_OPEN = hours(1);
/** Cap on claims. The oldest is dropped first. */
const MOST_CLAIMS = 1_000;

/**
 * Deletes without a revision. Such a body may be a replay, so it withdraws nothing by itself.
 * The event is fetched by id. A 404 or 410 to a request made after the delete withdraws it.
 * In memory only: after a restart two lists that lack the event decide.
 */
export class DeleteClaims {
  readonly #claims = new Map<EventId, DeleteClaim>();

  /** Records a delete of this event. True: fetch the event by id now. */
  add(id: EventId, at: Instant): boolean {
    const before = this.#claims.get(id);
    // A clock that was set back must not make the wait longer.
    const wait = before === undefined ? ASK_AGAIN : between(before.askedAt, at);
    const mayAsk = wait >= ASK_AGAIN || wait < 0;
    this.#claims.delete(id);
    this.#claims.set(id, {
      at,
      askedAt: before === undefined || mayAsk ? at : before.askedAt,
      isOpen: true,
    });
    const [oldest] = this.#claims.keys();
    if (this.#claims.size > MOST_CLAIMS && oldest !== undefined) this.#claims.delete(oldest);
    return mayAsk;
  }

  /** A 404 or 410 to a request made at `askedAt` confirms the delete. */
  isConfirmedBy(id: EventId, askedAt: Instant): boolean {
    const claim = this.#claims.get(id);
    return claim !== undefined && claim.isOpen && claim.at <= askedAt;
  }

  /** A fetch by id, requested at `askedAt`, found the event or withdrew it. */
  settle(id: EventId, askedAt: Instant): void {
    const claim = this.#claims.get(id);
    if (claim !== undefined && claim.at <= askedAt) this.#claims.set(id, { ...claim, isOpen: false });
  }

  /** After a complete list: the events with an open claim that it lacks. They are fetched by id at once. */
  lackedBy(isListed: (id: EventId) => boolean, now: Instant): readonly EventId[] {
    const lacked: EventId[] = [];
    for (const [id, claim] of this.#claims) {
      const age = between(claim.at, now);
      const isOver = age < 0 || age > (isListed(id) ? ASK_AGAIN : LONGEST_OPEN);
      if (!claim.isOpen) continue;
      if (isOver) this.#claims.set(id, { ...claim, isOpen: false });
      else if (!isListed(id)) lacked.push(id);
    }
    return lacked;
  }
}
