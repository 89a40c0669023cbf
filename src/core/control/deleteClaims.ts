import { between, type EventId, type Instant, minutes } from "../units.ts";

interface Claim {
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
  readonly #claims = new Map<EventId, Claim>();

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
