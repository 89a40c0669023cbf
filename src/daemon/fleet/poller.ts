import type { Logger } from "pino";

import type { Delivery } from "../../domain/delivery.ts";
import type { EventId, Millis } from "../../domain/units.ts";
import { faultOf } from "../../store/postgres/database.ts";
import type { FleetInbox } from "../../store/postgres/fleetInbox.ts";
import type { EventService } from "../edges.ts";
import type { ListAnswer, ListFeed } from "./listFeed.ts";

/** Shortest interval of lists that were asked for, ms. */
const WANTED_EVERY_MS = 10_000;

interface PollerParts {
  readonly inbox: FleetInbox;
  readonly feed: ListFeed;
  readonly partner: Pick<EventService, "list" | "event">;
  readonly pollEvery: Millis;
  readonly monotonic: () => number;
  readonly log: Logger;
}

/** The partner's list for the fleet: one process fetches it and stores it, every process reads it. */
export class FleetPoller {
  readonly #parts: PollerParts;
  readonly #fetches = new Map<EventId, ReturnType<EventService["event"]>>();
  #polledAt = Number.NEGATIVE_INFINITY;
  #pause: number;
  #wanted = -1;
  #bodyNumber = -1;

  constructor(parts: PollerParts) {
    this.#parts = parts;
    this.#pause = parts.pollEvery;
  }

  /** Fetches the list if it is due and this process polls. `wanted`: the number of requests so far. */
  async poll(wanted: number): Promise<void> {
    const { inbox, partner, pollEvery, monotonic } = this.#parts;
    if (!(await inbox.polls())) return;
    const since = monotonic() - this.#polledAt;
    const isWanted = this.#wanted >= 0 && wanted !== this.#wanted && since >= WANTED_EVERY_MS;
    if (since < this.#pause && !isWanted) return;
    this.#wanted = wanted;
    this.#polledAt = monotonic();
    const fetched = await partner.list();
    if (fetched.kind === "failed") {
      this.#pause = Math.max(fetched.retryAfter ?? 0, Math.min(pollEvery, 5_000));
      await inbox.store(JSON.stringify(fetched satisfies ListAnswer), null);
      return;
    }
    this.#pause = pollEvery;
    // The list is never settled at the client, so it is always read whole.
    if (fetched.kind === "unchanged") return;
    const { notices, at, askedAt, complete } = fetched.delivery;
    const answer: ListAnswer = { kind: "read", at, askedAt, complete, skew: fetched.skew };
    await inbox.store(JSON.stringify(answer), JSON.stringify(notices));
  }

  /** Reads the last list, if it has another number than the one that is known. */
  async read(number: number): Promise<void> {
    const { inbox, feed } = this.#parts;
    if (number === feed.number) return;
    const stored = await inbox.list(this.#bodyNumber);
    if (stored === null) return;
    const { answer, body } = stored;
    this.#bodyNumber = stored.bodyNumber;
    feed.push(
      stored.number,
      JSON.parse(answer) as ListAnswer,
      body === null ? null : (JSON.parse(body) as Delivery["notices"]),
    );
  }

  /** Fetches one event. Several sites that ask at once share the answer. */
  event(id: EventId): ReturnType<EventService["event"]> {
    const running = this.#fetches.get(id);
    if (running !== undefined) return running;
    const fetch = this.#parts.partner.event(id).finally(() => this.#fetches.delete(id));
    this.#fetches.set(id, fetch);
    return fetch;
  }

  /** Requests a list soon. */
  want(): void {
    this.#parts.inbox
      .wantList()
      .catch((error: unknown) => this.#parts.log.warn(faultOf(error), "no list was requested"));
  }
}
