import { concatMap, EMPTY, Observable, Subject, type Subscriber, tap } from "rxjs";

import {
  type Delivery,
  type EventHint,
  eventOf,
  type Fetched,
  type IngestAnswer,
  type Notice,
} from "../../domain/delivery.ts";
import { type EventId, type Millis, type Instant, millis, minutes, seconds } from "../../domain/units.ts";
import { backoff } from "../../platform/clock.ts";
import { fanIn, follow } from "../../platform/scheduling.ts";
import type { PollingPorts, Arrival } from "../ports.ts";
import type { ControlState } from "../state.ts";
import { missingAfterList, idsIn } from "./ingest.ts";
import { latestNotices } from "./intake.ts";
import type { PollRequest } from "./pollRequest.ts";

/** A reason to poll early: the list changed, these events changed, or an operator requested a poll. */
export type Hint = EventHint | PollRequest;

const isRequest = (hint: Hint): hint is PollRequest => typeof hint === "object" && "onList" in hint;

const FIRST_RETRY = seconds(1);
const LONGEST_RETRY = minutes(5);
/** Shortest interval between list requests caused by hints. */
const HINTS_EVERY = seconds(10);
/** Cap on events that failed by id. Further failures do not request the list. */
const MOST_FAILED = 1_000;

/**
 * Polls the partner: the list repeatedly, one request at a time, and single events on demand. `every` 0: the list is
 * answered once there is a new one, so there is no pause.
 */
export const polling = (ports: PollingPorts, hint$: Observable<Hint>, every: Millis): Observable<Fetched> =>
  new Observable((answers) => {
    const lists = new ListPolls(ports, every, answers);
    const singles = new SinglePolls(ports, answers, () => lists.hint());
    follow(answers, hint$, (hint) => {
      if (hint === "list") lists.hint();
      else if (isRequest(hint)) lists.request(hint);
      else singles.request(hint);
    });
    lists.ask();
    return () => lists.end();
  });

/** Requests of the list: after a pause, sooner after a hint, and at once for an operator. */
class ListPolls {
  readonly #ports: PollingPorts;
  readonly #every: Millis;
  readonly #answers: Subscriber<Fetched>;
  #isAsking = false;
  /** A hint that arrives during a list request counts for the next one: that list may be older than the hint. */
  #isHinted = false;
  #requests: readonly PollRequest[] = [];
  /** Earliest request because of a hint. Monotonic clock, ms. */
  #hintsFrom: number;
  #failures = 0;
  #pause: NodeJS.Timeout | undefined;
  #hurry: NodeJS.Timeout | undefined;

  constructor(ports: PollingPorts, every: Millis, answers: Subscriber<Fetched>) {
    this.#ports = ports;
    this.#every = every;
    this.#answers = answers;
    this.#hintsFrom = ports.monotonic();
  }

  hint(): void {
    this.#isHinted = true;
    this.#ports.wantList?.();
    if (!this.#isAsking) this.#askSoon();
  }

  request(request: PollRequest): void {
    this.#requests = [...this.#requests, request];
    if (!this.#isAsking) this.ask();
  }

  ask(): void {
    this.end();
    this.#isAsking = true;
    if (this.#isHinted) this.#hintsFrom = this.#ports.monotonic() + HINTS_EVERY;
    this.#isHinted = false;
    const requests = this.#requests;
    this.#requests = [];
    this.#ports
      .list(requests.length > 0)
      .then((fetched) => this.#onList(fetched, requests))
      .catch((error: unknown) => this.#answers.error(error));
  }

  end(): void {
    clearTimeout(this.#pause);
    clearTimeout(this.#hurry);
    this.#hurry = undefined;
  }

  #onList(fetched: Fetched, requests: readonly PollRequest[]): void {
    if (this.#answers.closed) return;
    // An operator's failed polls must not lengthen our own back-off.
    const counted = requests.length > 0 ? Math.max(this.#failures, 1) : this.#failures + 1;
    this.#failures = fetched.kind === "failed" ? counted : 0;
    const pause = pauseAfter(fetched, this.#failures, this.#every, this.#ports.random());
    for (const { onList } of requests) onList(fetched);
    this.#answers.next(fetched);
    // An answer may end the flow. A timer that is set now would outlive it.
    if (this.#answers.closed) return;
    this.#isAsking = false;
    if (this.#requests.length > 0) return this.ask();
    this.#pause = setTimeout(() => this.ask(), pause);
    if (this.#isHinted) this.#askSoon();
  }

  /** A hint does not shorten the pause while the partner fails, or asked us to wait. */
  #askSoon(): void {
    if (this.#failures > 0) return;
    this.#hurry ??= setTimeout(() => this.ask(), Math.max(0, this.#hintsFrom - this.#ports.monotonic()));
  }
}

/** Requests of single events, sequential and in order. A failed event is left to the next list. */
class SinglePolls {
  readonly #ports: Pick<PollingPorts, "event">;
  readonly #answers: Subscriber<Fetched>;
  /** A first failed fetch by id. The webhook was answered already, so the sender does not repeat it. */
  readonly #unsettled: () => void;
  readonly #waiting = new Set<EventId>();
  readonly #failed = new Set<EventId>();
  #isAsking = false;

  constructor(ports: Pick<PollingPorts, "event">, answers: Subscriber<Fetched>, unsettled: () => void) {
    this.#ports = ports;
    this.#answers = answers;
    this.#unsettled = unsettled;
  }

  request(ids: readonly EventId[]): void {
    for (const id of ids) this.#waiting.add(id);
    if (!this.#isAsking) this.#askAll().catch((error: unknown) => this.#answers.error(error));
  }

  async #askAll(): Promise<void> {
    this.#isAsking = true;
    for (const id of this.#waiting) {
      this.#waiting.delete(id);
      const fetched = await this.#ports.event(id);
      if (this.#answers.closed) return;
      if (fetched.kind !== "failed") this.#failed.delete(id);
      else if (!this.#failed.has(id) && this.#failed.size < MOST_FAILED) {
        this.#failed.add(id);
        this.#unsettled();
      }
      this.#answers.next(fetched);
      if (this.#answers.closed) return;
    }
    this.#isAsking = false;
  }
}

function pauseAfter(fetched: Fetched, failures: number, every: Millis, fraction: number): Millis {
  if (fetched.kind !== "failed" || every === 0) return millis(every * (0.9 + 0.2 * fraction));
  return millis(Math.max(fetched.retryAfter ?? 0, backoff(failures, fraction, FIRST_RETRY, LONGEST_RETRY)));
}

/** Events of a list that are ingested in one turn of the event loop, and committed in one transaction. */
const PART = 250;

/** Too long for one turn of the event loop. Lists only: a webhook is answered as a whole. */
export const isLong = ({ source, notices }: Delivery): boolean => source === "list" && notices.length > PART;

/** A long list as parts that are ingested in order. */
interface ListParts {
  readonly parts: readonly Delivery[];
  /**
   * Unreadable entries, ingested after all parts. They stay together because one row of the record sums them
   * up.
   */
  readonly last: Delivery;
}

/** All entries of one event stay in one part. No part is complete, so none shows absence. */
export function partsOf(delivery: Delivery): ListParts {
  const readable = delivery.notices.filter(({ kind }) => kind !== "rejected");
  const notices = latestNotices(readable) === readable ? readable : togetherById(readable);
  const parts: Delivery[] = [];
  for (let from = 0; from < notices.length;) {
    let until = Math.min(from + PART, notices.length);
    while (isOfOneEvent(notices[until - 1], notices[until])) until += 1;
    parts.push({ ...delivery, notices: notices.slice(from, until), complete: false });
    from = until;
  }
  const unreadable = delivery.notices.filter(({ kind }) => kind === "rejected");
  return { parts, last: { ...delivery, notices: unreadable, complete: false } };
}

const togetherById = (notices: readonly Notice[]): readonly Notice[] =>
  [...Map.groupBy(notices, (notice) => eventOf(notice)).values()].flat();

const isOfOneEvent = (a: Notice | undefined, b: Notice | undefined): boolean =>
  a !== undefined && b !== undefined && eventOf(a) === eventOf(b);

export interface PartnerPorts extends PollingPorts {
  /** Events that only a fetch by id can settle. */
  readonly fetchById: (ids: readonly EventId[]) => void;
  /** Called once a fetched delivery is committed, or could not be stored. */
  readonly settled: (delivery: Delivery, answer: IngestAnswer) => void;
}

/**
 * Answers of the partner to our requests, and the deliveries among them. Requests begin with a subscription to `polled$`.
 * `fetched$`: an answer whose delivery is on its way.
 */
export function partnerSources(
  state: ControlState,
  ports: PartnerPorts,
  hint$: Observable<Hint>,
  every: Millis,
): { readonly fetched$: Observable<Fetched>; readonly polled$: Observable<Arrival> } {
  const fetched$ = new Subject<Fetched>();
  const arrived$ = new Subject<Arrival>();
  const ingest = (fetched: Fetched): Observable<void> | Promise<void> => {
    if (fetched.kind === "read" && isLong(fetched.delivery)) {
      const emit = (part: Arrival): void => arrived$.next(part);
      // A list counts as fetched once all of it is ingested. A new event must not start by half a list.
      return ingestInParts(state, ports, fetched.delivery, emit).then(() => fetched$.next(fetched));
    }
    if (fetched.kind === "read") {
      const { delivery } = fetched;
      arrived$.next({ delivery, settle: (answer) => ports.settled(delivery, answer) });
    }
    fetched$.next(fetched);
    return EMPTY;
  };
  const polled$ = fanIn<Arrival>((join) => {
    join(arrived$, (arrival) => arrival);
    const ingested$ = polling(ports, hint$, every).pipe(
      tap((fetched) => {
        if (fetched.kind === "unchanged") askForMissing(state, ports, null, fetched.at);
      }),
      concatMap(ingest),
    );
    join(ingested$);
  });
  return { fetched$, polled$ };
}

function askForMissing(
  state: ControlState,
  ports: PartnerPorts,
  ids: ReadonlySet<EventId> | null,
  at: Instant,
): void {
  const missing = missingAfterList(state, ids, at);
  if (missing.length > 0) ports.fetchById(missing);
}

/** Ingests a long list in parts. Each part has a commit of its own, and the event loop runs in between. */
async function ingestInParts(
  state: ControlState,
  ports: PartnerPorts,
  delivery: Delivery,
  emit: (part: Arrival) => void,
): Promise<void> {
  const { parts, last } = partsOf(delivery);
  const ingestPart = (part: Delivery, isPart: boolean): Promise<IngestAnswer> =>
    new Promise((settle) => emit({ delivery: part, isPart, settle }));
  let answer: IngestAnswer = { ok: true, ingested: { accepted: 0, repeats: 0, rejected: 0 } };
  for (const part of parts) {
    answer = sumOf(answer, await ingestPart(part, true));
    if (!answer.ok) break;
  }
  answer = sumOf(answer, await ingestPart(last, false));
  if (answer.ok && delivery.complete) askForMissing(state, ports, new Set(idsIn(delivery)), delivery.at);
  ports.settled(delivery, answer);
}

const sumOf = (a: IngestAnswer, b: IngestAnswer): IngestAnswer => {
  if (!a.ok || !b.ok) return a.ok ? b : a;
  return {
    ok: true,
    ingested: {
      accepted: a.ingested.accepted + b.ingested.accepted,
      repeats: a.ingested.repeats + b.ingested.repeats,
      rejected: a.ingested.rejected + b.ingested.rejected,
    },
  };
};
