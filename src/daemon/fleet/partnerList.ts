import type { Logger } from "pino";

import { Rejections } from "../../control/ingest/quarantine.ts";
import type { Delivery, Fetched, Notice } from "../../domain/delivery.ts";
import {
  type EventId,
  type Instant,
  instant,
  type Millis,
  millis,
  minutes,
  seconds,
} from "../../domain/units.ts";
import { backoff } from "../../platform/clock.ts";
import type { FleetInbox } from "../../store/postgres/fleetInbox.ts";
import type { EventService, Machine } from "../edges.ts";
import { type Deleted, Entries, shareFor, unreadable } from "./routing.ts";

/** An answer of the partner without its entries. `skew`: clock of this machine minus the partner's. */
export type ListAnswer = ReadAnswer | Extract<Fetched, { kind: "failed" }>;

interface ReadAnswer extends Pick<Delivery, "at" | "askedAt" | "complete"> {
  readonly kind: "read";
  readonly skew: Millis | null;
}

/** The same as it is stored for all processes. `skew` is by the machine that polled. */
type StoredAnswer =
  | (ReadAnswer & {
      /** Clock of the database minus the partner's. Absent: a process of an earlier release polled. */
      readonly ofDatabase?: Millis | null;
      /** Time just before the request, by the clock of the database. Absent: as above. */
      readonly askedOfDatabase?: Instant;
    })
  | Exclude<ListAnswer, ReadAnswer>;

/** The last answer, and the entries of the last list. */
interface Stored {
  readonly number: number;
  readonly answer: ListAnswer;
  readonly entries: Entries;
  /** Deletes that arrived after the request for the list, by event: the list may hold the event still. */
  readonly deleted: ReadonlyMap<string, Deleted>;
}

const idsOf = (notices: readonly Notice[]): readonly EventId[] =>
  notices.flatMap((notice) => (notice.kind === "event" ? notice.event.id : []));

/** Shortest interval of the same failure for a site, ms. Each costs every site of the process an evaluation. */
const FAILED_AGAIN_MS = 60_000;

/** The partner's lists, as one process of the fleet fetched them, for each site of this process. */
export class ListFeed {
  readonly #monotonic: () => number;
  #stored: Stored | null = null;
  #next = Promise.withResolvers<void>();

  /** `monotonic` in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  get number(): number {
    return this.#stored?.number ?? 0;
  }

  /** The next answer for all sites. `notices` null: the entries of the last list. */
  push(
    number: number,
    answer: ListAnswer,
    notices: readonly Notice[] | null,
    deleted: Stored["deleted"] = new Map(),
  ): void {
    const entries = notices === null ? (this.#stored?.entries ?? new Entries([])) : new Entries(notices);
    this.#stored = { number, answer, entries, deleted };
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  /**
   * The lists for a site with these vehicles. Each is answered once there is a new one. `event`: fetches one event from the
   * partner. `ahead`: the clock of the site minus that of this machine.
   */
  siteOf(
    vehicles: readonly string[],
    event: EventService["event"],
    ahead: () => Millis,
  ): Pick<EventService, "list" | "event" | "settled"> {
    let last = 0;
    let failed = { reason: "", at: Number.NEGATIVE_INFINITY };
    const isNews = ({ answer }: Stored): boolean =>
      answer.kind === "read" ||
      answer.reason !== failed.reason ||
      this.#monotonic() - failed.at >= FAILED_AGAIN_MS;
    /** Events that the site has, as far as the lists and its deliveries since the last one show. */
    let known = new Set<EventId>();
    /** Complete lists that were answered. */
    const prints = new WeakMap<Delivery, string>();
    let settled: string | null = null;
    /** The receipt of the last delivery that was not a complete list. */
    let otherAt = instant(0);
    const skewOf = (skew: Millis | null): Millis | null => (skew === null ? null : millis(skew + ahead()));
    return {
      list: async () => {
        while (this.#stored === null || this.#stored.number === last || !isNews(this.#stored))
          await this.#next.promise;
        const { number, answer, entries, deleted } = this.#stored;
        last = number;
        failed = { reason: answer.kind === "failed" ? answer.reason : "", at: this.#monotonic() };
        if (answer.kind === "failed") return answer;
        const { at, askedAt, complete } = answer;
        const skew = skewOf(answer.skew);
        const own = new Set(vehicles);
        const listedEvents = entries.of(own, known);
        const unread = entries.unreadOf(own, known);
        // A site that knows the event got its delete already.
        const early = [...new Set(idsOf(listedEvents))].flatMap((id) =>
          known.has(id) ? [] : (deleted.get(id) ?? []),
        );
        const notices = [...early, ...listedEvents, ...unread];
        const { rejected } = entries;
        // An event that cannot be read in this list, or that a part of a list lacks, is still known.
        const kept = complete ? rejected.filter((id) => known.has(id)) : known;
        known = new Set([...kept, ...idsOf(notices)]);
        const print = JSON.stringify([listedEvents.map(({ event: { hash } }) => hash), rejected, unread]);
        // A list that is not complete proves no absence, and "unchanged" would.
        if (complete && print === settled) return { kind: "unchanged", at, skew };
        // Entries that the site does not record are listed all the same.
        const recorded = new Set(unread.map(({ id }) => id));
        const ids = rejected.filter((id) => !recorded.has(id));
        const listed = ids.length === 0 ? {} : { unchanged: { ids, rejected: 0 } };
        const delivery: Delivery = { source: "list", at, askedAt, notices, complete, ...listed };
        // The next list revives an event that it holds still.
        if (complete && early.length === 0) prints.set(delivery, print);
        return { kind: "read", delivery, skew };
      },
      event: async (id) => {
        // Two lists lacked it, or a delivery contradicts it.
        known.add(id);
        const fetched = await event(id);
        if (fetched.kind !== "read") return fetched;
        const own = new Set(vehicles);
        const notices = fetched.delivery.notices.map((notice) =>
          notice.kind === "event"
            ? { kind: "event" as const, event: shareFor(notice.event, (vehicle) => own.has(vehicle)) }
            : notice,
        );
        return { ...fetched, skew: skewOf(fetched.skew), delivery: { ...fetched.delivery, notices } };
      },
      settled: (delivery) => {
        for (const id of idsOf(delivery.notices)) known.add(id);
        const print = prints.get(delivery);
        // Another delivery may have withdrawn an event that the next list still holds. See `VtnClient.settled`.
        settled = print !== undefined && delivery.askedAt > otherAt ? print : null;
        if (print === undefined) otherAt = delivery.at;
      },
    };
  }
}

/** Shortest interval of lists that were asked for, ms. */
const WANTED_EVERY_MS = 10_000;
const FIRST_RETRY = seconds(1);
const LONGEST_RETRY = minutes(5);

interface PollerParts extends Pick<Machine, "now" | "random"> {
  readonly inbox: Pick<
    FleetInbox,
    "polls" | "whilePolling" | "store" | "list" | "time" | "deletedSince" | "wantList"
  >;
  readonly feed: ListFeed;
  readonly partner: Pick<EventService, "list" | "event">;
  readonly pollEvery: Millis;
  readonly monotonic: () => number;
  readonly log: Pick<Logger, "warn">;
}

/** The partner's list for the fleet: one process fetches it and stores it, every process reads it. */
export class FleetPoller {
  /** Ends the wait for the list that is on its way. Call it once `poll` is not called any more. */
  end = (): void => {};
  readonly #parts: PollerParts;
  readonly #rejections = new Rejections();
  readonly #fetches = new Map<EventId, ReturnType<EventService["event"]>>();
  #polledAt = Number.NEGATIVE_INFINITY;
  #pause: number;
  /** Failed lists in a row. */
  #failures = 0;
  #wanted = -1;
  /** A site of this process wants a list. */
  #isListWanted = false;
  #bodyNumber = -1;

  constructor(parts: PollerParts) {
    this.#parts = parts;
    this.#pause = parts.pollEvery;
  }

  /** Requests a list for a site. Thousands of sites may do so at once: `poll` passes that on. */
  wantList(): void {
    this.#isListWanted = true;
  }

  /** Fetches the list if it is due and this process polls. `wanted`: the number of requests so far. */
  async poll(wanted: number): Promise<void> {
    const { inbox, partner, pollEvery, monotonic, random } = this.#parts;
    const ended = Promise.withResolvers<null>();
    this.end = () => ended.resolve(null);
    const isListWanted = this.#isListWanted;
    // A site may ask again meanwhile.
    this.#isListWanted = false;
    if (isListWanted)
      await inbox.wantList().catch((error: unknown) => {
        this.#isListWanted = true;
        throw error;
      });
    const askedOfDatabase = await inbox.polls();
    if (askedOfDatabase === null) return;
    const since = monotonic() - this.#polledAt;
    // While the partner fails, a request does not shorten the pause.
    const isWanted =
      this.#failures === 0 && this.#wanted >= 0 && wanted !== this.#wanted && since >= WANTED_EVERY_MS;
    if (since < this.#pause && !isWanted) return;
    this.#wanted = wanted;
    this.#polledAt = monotonic();
    const fetched = await inbox.whilePolling(() => Promise.race([partner.list(), ended.promise]));
    if (fetched === null) return;
    if (fetched.kind === "failed") {
      this.#failures += 1;
      const pause = backoff(this.#failures, random(), FIRST_RETRY, LONGEST_RETRY);
      this.#pause = Math.max(fetched.retryAfter ?? 0, pause);
      return inbox.store(JSON.stringify(fetched satisfies ListAnswer), null);
    }
    this.#failures = 0;
    this.#pause = pollEvery;
    // The list is never settled at the client, so it is always read whole.
    if (fetched.kind === "unchanged") return;
    const { notices, at, askedAt, complete } = fetched.delivery;
    this.#logUnreadable(notices);
    const { skew } = fetched;
    const ofDatabase = skew === null ? null : millis(skew - (await this.#lead()));
    const times = { at, askedAt, askedOfDatabase };
    const answer: StoredAnswer = { kind: "read", ...times, complete, skew, ofDatabase };
    await inbox.store(JSON.stringify(answer), JSON.stringify(notices));
  }

  /** Each entry once. A site that has its event, or a vehicle that it names, records it. */
  #logUnreadable(notices: readonly Notice[]): void {
    const rejected = notices.filter((notice) => notice.kind === "rejected");
    const fresh = rejected.filter((one) => this.#rejections.isNew(one));
    if (fresh.length > 0)
      this.#parts.log.warn(
        unreadable(fresh),
        "the list has entries that cannot be read: the sites that they concern record them",
      );
  }

  /** Reads the last list, if it has another number than the one that is known. */
  async read(number: number): Promise<void> {
    const { inbox, feed } = this.#parts;
    if (number === feed.number) return;
    const stored = await inbox.list(this.#bodyNumber);
    if (stored === null) return;
    const { body, bodyNumber } = stored;
    const read = JSON.parse(stored.answer) as StoredAnswer;
    const asked = read.kind === "read" ? read.askedOfDatabase : undefined;
    const deleted = asked === undefined ? new Map() : await inbox.deletedSince(asked);
    const answer = await this.#ownOf(read);
    this.#bodyNumber = bodyNumber;
    const notices = body === null ? null : (JSON.parse(body) as Delivery["notices"]);
    feed.push(stored.number, answer, notices, deleted);
  }

  /** The answer with the skew of this machine. Null where an earlier release stored its own: the clocks may differ. */
  async #ownOf(answer: StoredAnswer): Promise<ListAnswer> {
    if (answer.kind === "failed") return answer;
    const { ofDatabase = null, askedOfDatabase: _, ...read } = answer;
    return { ...read, skew: ofDatabase === null ? null : millis(ofDatabase + (await this.#lead())) };
  }

  /** Clock of this machine minus that of the database. */
  async #lead(): Promise<Millis> {
    const { inbox, now } = this.#parts;
    const before = now();
    const time = await inbox.time();
    return millis(Math.round((before + now()) / 2 - time));
  }

  /** Fetches one event. Several sites that ask at once share the answer. */
  event(id: EventId): ReturnType<EventService["event"]> {
    const running = this.#fetches.get(id);
    if (running !== undefined) return running;
    const fetch = this.#parts.partner.event(id).finally(() => this.#fetches.delete(id));
    this.#fetches.set(id, fetch);
    return fetch;
  }
}
