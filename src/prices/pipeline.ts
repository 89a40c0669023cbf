import {
  concat,
  concatMap,
  connect,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  from,
  map,
  merge,
  type Observable,
  of,
  Subject,
  switchMap,
  tap,
  timer,
} from "rxjs";

import type { Change } from "../domain/changes.ts";
import type { Sent } from "../domain/command.ts";
import {
  priceKey,
  type PriceOutcome,
  type PricesAsked,
  type PriceQuery,
  serializePrices,
} from "../domain/prices.ts";
import { type Instant, type Millis, millis, minutes, seconds } from "../domain/units.ts";
import { backoff, type WallClock } from "../platform/clock.ts";
import { type PriceBoard, applyPriceAnswer } from "./board.ts";

/** Ports of the price pipeline. */
export interface PricePorts {
  readonly now: () => Instant;
  /** Random number in [0, 1). */
  readonly random: () => number;
  readonly wallClock: WallClock;
  /** Sends one request, with a deadline. Never throws. */
  readonly ask: (query: PriceQuery) => Promise<PricesAsked>;
  /** Queues changes for the next commit. Does not wait for it. */
  readonly write: (changes: readonly Change[]) => void;
  /** Publishes a retained message. `path` comes after `<prefix>/<site>/`. Never throws. */
  readonly publish: (path: string, payload: string) => Promise<Sent>;
  readonly counted: (query: PriceQuery, outcome: PriceOutcome) => void;
  /** Logs a problem for a person. */
  readonly alarm: (message: string) => void;
}

/** Random delay, so that depots do not send requests in the same second. */
const SPREAD = seconds(30);
const FIRST_RETRY = seconds(10);
const LONGEST_RETRY = minutes(5);
/** Retries before waiting for the next due time. Prices are known hours ahead. */
const RETRIES = 4;

/**
 * Fetches, stores and publishes every price series, at the start and whenever it is due. Prices are shown and do not
 * affect charging. `brokerUp$`: a broker is connected; the site's own, "", may have lost its retained messages.
 */
export function prices(
  board: PriceBoard,
  due$: Observable<unknown>,
  brokerUp$: Observable<string>,
  ports: PricePorts,
): Observable<unknown> {
  if (board.stands.size === 0) return EMPTY;
  const applied$ = new Subject<void>();
  const fetching = (query: PriceQuery, due$: Observable<unknown>): Observable<unknown> =>
    merge(of(0), due$.pipe(map(() => ports.random() * SPREAD))).pipe(
      // A due time during a fetch or its retries is skipped.
      exhaustMap((wait) => timer(wait).pipe(switchMap(() => attempts(query, ports)))),
      tap((attempt) => {
        apply(board, query, attempt, ports);
        applied$.next();
      }),
    );
  const forgotten$ = brokerUp$.pipe(
    filter((broker) => broker === ""),
    tap(() => markUnpublished(board)),
  );
  const publishing$ = merge(forgotten$, applied$).pipe(
    // In order: the last message is the one that the broker retains.
    concatMap(() => from([...board.unpublished]).pipe(concatMap((key) => publish(board, key, ports)))),
  );
  return due$.pipe(
    connect((due$) =>
      merge(publishing$, ...[...board.stands.values()].map((query) => fetching(query, due$))),
    ),
  );
}

interface Attempt {
  readonly answer: PricesAsked;
  /** True: no retry until the next due time. */
  readonly isLast: boolean;
}

/** Sends one request, with a few retries while they may help. */
const attempts = (query: PriceQuery, ports: PricePorts, failures = 0): Observable<Attempt> =>
  defer(() => ports.ask(query)).pipe(
    switchMap((answer) => {
      const pause = failures < RETRIES ? pauseAfter(answer, failures, ports.random()) : null;
      if (pause === null) return of({ answer, isLast: true });
      const again$ = timer(pause).pipe(switchMap(() => attempts(query, ports, failures + 1)));
      return concat(of({ answer, isLast: false }), again$);
    }),
  );

/** Pause before the next retry. Null: a retry would not help. */
function pauseAfter(answer: PricesAsked, failures: number, fraction: number): Millis | null {
  if (answer.kind !== "failed" || !answer.retry) return null;
  return millis(Math.max(answer.retryAfter ?? 0, backoff(failures, fraction, FIRST_RETRY, LONGEST_RETRY)));
}

function apply(board: PriceBoard, query: PriceQuery, { answer, isLast }: Attempt, ports: PricePorts): void {
  const { outcome, changes, alarm } = applyPriceAnswer(board, query, answer, isLast, ports);
  ports.write(changes);
  ports.counted(query, outcome);
  if (alarm !== null) ports.alarm(alarm);
}

/** Marks all series as unpublished. */
function markUnpublished(board: PriceBoard): void {
  for (const stand of board.stands.values())
    if (stand.series !== null) board.unpublished.add(priceKey(stand));
}

async function publish(board: PriceBoard, key: string, ports: PricePorts): Promise<void> {
  const series = board.stands.get(key)?.series ?? null;
  board.unpublished.delete(key);
  if (series === null) return;
  const { region, kind } = series;
  const path = kind === "actual" ? `prices/${region}` : `prices/${region}/${kind}`;
  const { ok } = await ports.publish(path, JSON.stringify(serializePrices(series.prices)));
  if (!ok) board.unpublished.add(key);
}
