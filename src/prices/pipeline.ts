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
import { backoff } from "../platform/clock.ts";
import type { WallClock } from "../platform/localTime.ts";
import { type PriceBoard, applyPriceAnswer } from "./board.ts";

/** The edges as the price pipeline sees them. */
export interface PricePorts {
  readonly now: () => Instant;
  /** In [0, 1). */
  readonly random: () => number;
  readonly wallClock: WallClock;
  /** One request with its deadline; never throws. */
  readonly ask: (query: PriceQuery) => Promise<PricesAsked>;
  /** Stages changes; nobody waits for them. */
  readonly write: (changes: readonly Change[]) => void;
  /** Retained; `path` comes after `<prefix>/<site>/`. Never throws. */
  readonly publish: (path: string, payload: string) => Promise<Sent>;
  readonly counted: (query: PriceQuery, outcome: PriceOutcome) => void;
  /** Something that a person should look into. */
  readonly alarm: (words: string) => void;
}

/** Depots do not all ask in the same second. */
const SPREAD = seconds(30);
const FIRST_RETRY = seconds(10);
const LONGEST_RETRY = minutes(5);
/** After these the next time it is due will do: prices are known hours ahead. */
const RETRIES = 4;

/**
 * Keeps every price series fetched, stored and published: at the start, and whenever it is due. Prices are shown,
 * never acted on. `brokerUp$`: a broker is there (again); the site's own, "", may have forgotten what it retained.
 */
export function prices(
  board: PriceBoard,
  due$: Observable<unknown>,
  brokerUp$: Observable<string>,
  ports: PricePorts,
): Observable<unknown> {
  if (board.stands.size === 0) return EMPTY;
  const taken$ = new Subject<void>();
  const fetching = (query: PriceQuery, due$: Observable<unknown>): Observable<unknown> =>
    merge(of(0), due$.pipe(map(() => ports.random() * SPREAD))).pipe(
      // A series that is being fetched, with all retries, is not chased by the next time it is due.
      exhaustMap((wait) => timer(wait).pipe(switchMap(() => attempts(query, ports)))),
      tap((attempt) => {
        take(board, query, attempt, ports);
        taken$.next();
      }),
    );
  const forgotten$ = brokerUp$.pipe(
    filter((broker) => broker === ""),
    tap(() => forget(board)),
  );
  const publishing$ = merge(forgotten$, taken$).pipe(
    // In order: what is published last stays at the broker.
    concatMap(() => from([...board.unpublished]).pipe(concatMap((key) => publish(board, key, ports)))),
  );
  return due$.pipe(
    connect((due$) =>
      merge(publishing$, ...[...board.stands.values()].map((query) => fetching(query, due$))),
    ),
  );
}

interface Attempt {
  readonly asked: PricesAsked;
  /** Nothing more is tried until it is due again. */
  readonly isLast: boolean;
}

/** One request, and a few more while it fails and asking again may help. */
const attempts = (query: PriceQuery, ports: PricePorts, failures = 0): Observable<Attempt> =>
  defer(() => ports.ask(query)).pipe(
    switchMap((asked) => {
      const pause = failures < RETRIES ? pauseAfter(asked, failures, ports.random()) : null;
      if (pause === null) return of({ asked, isLast: true });
      const again$ = timer(pause).pipe(switchMap(() => attempts(query, ports, failures + 1)));
      return concat(of({ asked, isLast: false }), again$);
    }),
  );

/** Null: asking again soon would not help. */
function pauseAfter(asked: PricesAsked, failures: number, fraction: number): Millis | null {
  if (asked.kind !== "failed" || !asked.retry) return null;
  return millis(Math.max(asked.retryAfter ?? 0, backoff(failures, fraction, FIRST_RETRY, LONGEST_RETRY)));
}

function take(board: PriceBoard, query: PriceQuery, { asked, isLast }: Attempt, ports: PricePorts): void {
  const { outcome, changes, alarm } = applyPriceAnswer(board, query, asked, isLast, ports);
  ports.write(changes);
  ports.counted(query, outcome);
  if (alarm !== null) ports.alarm(alarm);
}

/** As if nothing had been published yet. */
function forget(board: PriceBoard): void {
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
