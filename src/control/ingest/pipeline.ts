import {
  type Observable,
  Subject,
  tap,
  concatMap,
  of,
  share,
  mergeMap,
  map,
  merge,
  BehaviorSubject,
  defer,
  filter,
  from,
  ignoreElements,
  NEVER,
  race,
  repeat,
  switchMap,
  timer,
} from "rxjs";

import type { Delivery, EventHint, Fetched, IngestAnswer, Notice } from "../../domain/delivery.ts";
import { type EventId, type Millis, type Instant, millis, minutes, seconds } from "../../domain/units.ts";
import { backoff } from "../../platform/clock.ts";
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
  defer(() => {
    const unsettled$ = new Subject<Hint>();
    return merge(
      lists(ports, merge(hint$, unsettled$), every),
      singles(ports, hint$, () => unsettled$.next("list")),
    );
  });

function lists(ports: PollingPorts, hint$: Observable<Hint>, every: Millis): Observable<Fetched> {
  return defer(() => {
    // A hint that arrives during a list request counts for the next one. That list may be older than the
    // hint.
    const hinted$ = new BehaviorSubject(false);
    const requested$ = new BehaviorSubject<readonly PollRequest[]>([]);
    let hintsFrom = ports.monotonic();
    let failures = 0;
    let pause = every;
    const list$ = defer(() => {
      if (hinted$.value) hintsFrom = millis(ports.monotonic() + HINTS_EVERY);
      hinted$.next(false);
      const requests = requested$.value;
      requested$.next([]);
      const isRequested = requests.length > 0;
      return from(ports.list(isRequested)).pipe(
        tap((fetched) => {
          // An operator's failed polls must not lengthen our own back-off.
          const counted = isRequested ? Math.max(failures, 1) : failures + 1;
          failures = fetched.kind === "failed" ? counted : 0;
          pause = pauseAfter(fetched, failures, every, ports.random());
          for (const { onList } of requests) onList(fetched);
        }),
      );
    }).pipe(
      repeat({
        delay: () => {
          // While the partner fails, or asked us to wait, a hint does not shorten the pause.
          const hurry$ = failures > 0 ? NEVER : hinted$.pipe(filter(Boolean));
          return race(
            timer(pause),
            requested$.pipe(filter((requests) => requests.length > 0)),
            hurry$.pipe(switchMap(() => timer(Math.max(0, hintsFrom - ports.monotonic())))),
          );
        },
      }),
    );
    const hints$ = hint$.pipe(
      tap((hint) => {
        if (hint === "list") hinted$.next(true);
        else if (isRequest(hint)) requested$.next([...requested$.value, hint]);
      }),
      ignoreElements(),
    );
    return merge(hints$, list$);
  });
}

/**
 * `unsettled`: a first failed fetch by id. The webhook was answered already, so the sender does not repeat
 * it.
 */
function singles(ports: PollingPorts, hint$: Observable<Hint>, unsettled: () => void): Observable<Fetched> {
  return defer(() => {
    const waiting = new Set<EventId>();
    const failed = new Set<EventId>();
    return hint$.pipe(
      mergeMap((hint) => (hint === "list" || isRequest(hint) ? [] : from(hint))),
      filter((id) => !waiting.has(id)),
      tap((id) => waiting.add(id)),
      // Sequential and in order. A failed event is left to the next list.
      concatMap(async (id) => {
        waiting.delete(id);
        const fetched = await ports.event(id);
        if (fetched.kind !== "failed") failed.delete(id);
        else if (!failed.has(id) && failed.size < MOST_FAILED) {
          failed.add(id);
          unsettled();
        }
        return fetched;
      }),
    );
  });
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
    while (until < notices.length && idOf(notices[until]) === idOf(notices[until - 1])) until += 1;
    parts.push({ ...delivery, notices: notices.slice(from, until), complete: false });
    from = until;
  }
  const unreadable = delivery.notices.filter(({ kind }) => kind === "rejected");
  return { parts, last: { ...delivery, notices: unreadable, complete: false } };
}

const togetherById = (notices: readonly Notice[]): readonly Notice[] =>
  [...Map.groupBy(notices, idOf).values()].flat();

const idOf = (notice: Notice | undefined): string | null => {
  if (notice === undefined) return null;
  return notice.kind === "event" ? notice.event.id : notice.id;
};

export interface PartnerPorts extends PollingPorts {
  /** Events that only a fetch by id can settle. */
  readonly fetchById: (ids: readonly EventId[]) => void;
  /** Called once a fetched delivery is committed, or could not be stored. */
  readonly settled: (delivery: Delivery, answer: IngestAnswer) => void;
}

/** Answers of the partner to our requests, and the deliveries among them. */
export function partnerSources(
  state: ControlState,
  ports: PartnerPorts,
  hint$: Observable<Hint>,
  every: Millis,
): { readonly fetched$: Observable<Fetched>; readonly polled$: Observable<Arrival> } {
  const parts$ = new Subject<Arrival>();
  const fetched$ = polling(ports, hint$, every).pipe(
    tap((fetched) => {
      if (fetched.kind === "unchanged") askForMissing(state, ports, null, fetched.at);
    }),
    // A list counts as fetched once all of it is ingested. A new event must not start by half a list.
    concatMap((fetched) =>
      fetched.kind === "read" && isLong(fetched.delivery)
        ? ingestInParts(state, ports, fetched.delivery, (part) => parts$.next(part)).then(() => fetched)
        : of(fetched),
    ),
    share(),
  );
  const short$ = fetched$.pipe(
    mergeMap((fetched) => (fetched.kind === "read" && !isLong(fetched.delivery) ? [fetched.delivery] : [])),
    map((delivery): Arrival => ({ delivery, settle: (answer) => ports.settled(delivery, answer) })),
  );
  return { fetched$, polled$: merge(short$, parts$) };
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
