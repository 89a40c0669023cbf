import {
  concatMap,
  filter,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  share,
  Subject,
  switchMap,
  take,
  tap,
  timer,
} from "rxjs";

import type { Delivery } from "../core/delivery.ts";
import type { Depot } from "../core/depot.ts";
import { type EventId, type Instant, type Millis, minutes, seconds } from "../core/units.ts";
import { isLong, partsOf } from "./listParts.ts";
import { type Hint, polling } from "./polling.ts";
import { idsIn, missingAfterList } from "./take.ts";
import type { Arrival, Fetched, PollingPorts, TakeAnswer } from "./ports.ts";

/** No new start before the partner was asked once, but no longer than this (DESIGN 5.7). */
const FIRST_FETCH_PATIENCE = seconds(10);
/** How long a clock that is behind our own last row is doubted, unless the partner's clock agrees with it. */
const BEHIND_PATIENCE = minutes(5);

export interface PartnerPorts extends PollingPorts {
  /** Events that only a fetch by id can settle. */
  readonly ask: (ids: readonly EventId[]) => void;
  /** What was fetched has been taken in, or could not be stored. */
  readonly settled: (delivery: Delivery, answer: TakeAnswer) => void;
}

/** The partner as control sees it: every answer to our requests, and the deliveries among them. */
export function partnerSources(
  depot: Depot,
  ports: PartnerPorts,
  hint$: Observable<Hint>,
  every: Millis,
): { readonly fetched$: Observable<Fetched>; readonly polled$: Observable<Arrival> } {
  const parts$ = new Subject<Arrival>();
  const fetched$ = polling(ports, hint$, every).pipe(
    tap((fetched) => {
      if (fetched.kind === "unchanged") askForMissing(depot, ports, null, fetched.at);
    }),
    // It counts as fetched once it is taken in: a new start must not go by the first half of a list.
    concatMap((fetched) =>
      fetched.kind === "read" && isLong(fetched.delivery)
        ? takeInParts(depot, ports, fetched.delivery, (part) => parts$.next(part)).then(() => fetched)
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
  depot: Depot,
  ports: PartnerPorts,
  ids: ReadonlySet<EventId> | null,
  at: Instant,
): void {
  const missing = missingAfterList(depot, ids, at);
  if (missing.length > 0) ports.ask(missing);
}

/** Takes in a long list: each part has a commit of its own, and the event loop runs in between. */
async function takeInParts(
  depot: Depot,
  ports: PartnerPorts,
  delivery: Delivery,
  arrives: (part: Arrival) => void,
): Promise<void> {
  const { parts, last } = partsOf(delivery);
  const arrive = (part: Delivery, isPart: boolean): Promise<TakeAnswer> =>
    new Promise((settle) => arrives({ delivery: part, isPart, settle }));
  let answer: TakeAnswer = { ok: true, taken: { accepted: 0, repeats: 0, rejected: 0 } };
  for (const part of parts) {
    answer = sumOf(answer, await arrive(part, true));
    if (!answer.ok) break;
  }
  answer = sumOf(answer, await arrive(last, false));
  if (answer.ok && delivery.complete) askForMissing(depot, ports, new Set(idsIn(delivery)), delivery.at);
  ports.settled(delivery, answer);
}

const sumOf = (a: TakeAnswer, b: TakeAnswer): TakeAnswer => {
  if (!a.ok || !b.ok) return a.ok ? b : a;
  return {
    ok: true,
    taken: {
      accepted: a.taken.accepted + b.taken.accepted,
      repeats: a.taken.repeats + b.taken.repeats,
      rejected: a.taken.rejected + b.taken.rejected,
    },
  };
};

export interface Doubt {
  readonly isDoubted: () => boolean;
  /** The clock of this machine has fallen behind what is on record. */
  readonly doubted$: Observable<unknown>;
  /** The partner's clock agrees with it. */
  readonly agrees$: Observable<unknown>;
  /** It is believed again, because the partner's agrees or because nobody knows better. */
  readonly believe: () => void;
}

/** Each time new starts may happen from now on: after the start, and after each doubt of the clock. */
export const startsAllowed = (
  fetched$: Observable<unknown>,
  { isDoubted, doubted$, agrees$, believe }: Doubt,
): Observable<unknown> =>
  merge(
    afterFirstFetch(fetched$).pipe(filter(() => !isDoubted())),
    doubted$.pipe(
      switchMap(() => afterClockAgrees(agrees$)),
      tap(believe),
    ),
  );

/** When new starts may happen after an ordinary start: once the partner was asked, whatever it answered. */
export const afterFirstFetch = (fetched$: Observable<unknown>): Observable<unknown> =>
  merge(fetched$, timer(FIRST_FETCH_PATIENCE)).pipe(take(1));

/** The same where our clock is behind our own record: once the partner's clock agrees with it. */
const afterClockAgrees = (agrees$: Observable<unknown>): Observable<unknown> =>
  merge(agrees$, timer(BEHIND_PATIENCE)).pipe(take(1));
