import type { KnownEvent, TrackedEvent } from "../../domain/event.ts";
import { between, earlier, type EventId, type Instant, minutes } from "../../domain/units.ts";

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

interface DeleteClaim {
  /** When the newest delete came. */
  readonly at: Instant;
  /** When the event was last asked for by id because of a delete. */
  readonly askedAt: Instant;
  /** No fetch has confirmed or refuted it yet. */
  readonly isOpen: boolean;
}

/** A captured delete that is sent again and again costs at most one request in this time; the list settles the rest. */
const ASK_AGAIN = minutes(1);
/** An open claim that no fetch could settle for this long is dropped; the lists alone decide then (DESIGN 5.2). */
const LONGEST_OPEN = minutes(60);
/** Claims kept; the oldest is dropped first. */
const MOST_CLAIMS = 1_000;

/**
 * Deletes without a revision. Such a body may be a replay of an old one, so it withdraws nothing by itself: the event is
 * asked for by id, and a 404 or 410 to a request made after the delete withdraws it (DESIGN 5.2). In memory only: after
 * a restart two lists that lack the event decide.
 */
export class DeleteClaims {
  readonly #claims = new Map<EventId, DeleteClaim>();

  /** A delete of this event came. True: ask for the event by id now. */
  add(id: EventId, at: Instant): boolean {
    const before = this.#claims.get(id);
    // A clock that was set back since must not make the wait longer.
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

  /** A fetch by id that was asked for at `askedAt` found the event, or withdrew it. */
  settle(id: EventId, askedAt: Instant): void {
    const claim = this.#claims.get(id);
    if (claim !== undefined && claim.at <= askedAt) this.#claims.set(id, { ...claim, isOpen: false });
  }

  /** After a complete list: the events with an open claim that it lacks. They are asked for by id at once. */
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
