import { filter, map, merge, mergeMap, type Observable, share, switchMap, take, tap, timer } from "rxjs";

import type { Delivery } from "../core/delivery.ts";
import type { Depot } from "../core/depot.ts";
import { type EventId, type Millis, minutes, seconds } from "../core/units.ts";
import { type Hint, polling } from "./polling.ts";
import { missingAfterList } from "./take.ts";
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
  const fetched$ = polling(ports, hint$, every).pipe(
    tap((fetched) => {
      if (fetched.kind !== "unchanged") return;
      const missing = missingAfterList(depot, null, fetched.at);
      if (missing.length > 0) ports.ask(missing);
    }),
    share(),
  );
  const polled$ = fetched$.pipe(
    mergeMap((fetched) => (fetched.kind === "read" ? [fetched.delivery] : [])),
    map((delivery): Arrival => ({ delivery, settle: (answer) => ports.settled(delivery, answer) })),
  );
  return { fetched$, polled$ };
}

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
