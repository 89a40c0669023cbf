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
  interval,
  exhaustMap,
  groupBy,
  range,
} from "rxjs";

import { auditRow } from "../domain/audit.ts";
import type { Delivery } from "../domain/delivery.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import {
  type EventId,
  type Instant,
  type Millis,
  minutes,
  seconds,
  instant,
  iso,
  millis,
  type ChargerId,
} from "../domain/units.ts";
import { alarm, batchPerTick, tickEnd$ } from "../platform/scheduling.ts";
import { idsIn, missingAfterList } from "./ingest/ingest.ts";
import { isLong, partsOf, type Hint, polling } from "./ingest/pipeline.ts";
import type {
  Arrival,
  Fetched,
  PollingPorts,
  IngestAnswer,
  ControlPorts,
  Freeing,
  Reevaluation,
} from "./ports.ts";
import { stagesOf } from "./stages.ts";
import type { ControlState } from "./state.ts";

/** No new start before the partner was asked once, but no longer than this (DESIGN 5.7). */
const FIRST_FETCH_PATIENCE = seconds(10);
/** How long a clock that is behind our own last row is doubted, unless the partner's clock agrees with it. */
const BEHIND_PATIENCE = minutes(5);

export interface PartnerPorts extends PollingPorts {
  /** Events that only a fetch by id can settle. */
  readonly ask: (ids: readonly EventId[]) => void;
  /** What was fetched has been taken in, or could not be stored. */
  readonly settled: (delivery: Delivery, answer: IngestAnswer) => void;
}

/** The partner as control sees it: every answer to our requests, and the deliveries among them. */
export function partnerSources(
  depot: ControlState,
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
  depot: ControlState,
  ports: PartnerPorts,
  ids: ReadonlySet<EventId> | null,
  at: Instant,
): void {
  const missing = missingAfterList(depot, ids, at);
  if (missing.length > 0) ports.ask(missing);
}

/** Takes in a long list: each part has a commit of its own, and the event loop runs in between. */
async function takeInParts(
  depot: ControlState,
  ports: PartnerPorts,
  delivery: Delivery,
  arrives: (part: Arrival) => void,
): Promise<void> {
  const { parts, last } = partsOf(delivery);
  const arrive = (part: Delivery, isPart: boolean): Promise<IngestAnswer> =>
    new Promise((settle) => arrives({ delivery: part, isPart, settle }));
  let answer: IngestAnswer = { ok: true, ingested: { accepted: 0, repeats: 0, rejected: 0 } };
  for (const part of parts) {
    answer = sumOf(answer, await arrive(part, true));
    if (!answer.ok) break;
  }
  answer = sumOf(answer, await arrive(last, false));
  if (answer.ok && delivery.complete) askForMissing(depot, ports, new Set(idsIn(delivery)), delivery.at);
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
const afterFirstFetch = (fetched$: Observable<unknown>): Observable<unknown> =>
  merge(fetched$, timer(FIRST_FETCH_PATIENCE)).pipe(take(1));

/** The same where our clock is behind our own record: once the partner's clock agrees with it. */
const afterClockAgrees = (agrees$: Observable<unknown>): Observable<unknown> =>
  merge(agrees$, timer(BEHIND_PATIENCE)).pipe(take(1));

const CHECK_EVERY = seconds(1);
/** A shorter gap is a busy machine. */
const SHORTEST = seconds(5);

/**
 * Records that this process stood still: its event loop was blocked, or the process was suspended. Nothing was received
 * or sent meanwhile. Emits how long.
 */
export function standstill({
  now,
  monotonic,
  write,
}: Pick<ControlPorts, "now" | "monotonic" | "write">): Observable<Millis> {
  let before = monotonic();
  return interval(CHECK_EVERY).pipe(
    map(() => {
      const tick = monotonic();
      const stood = millis(tick - before - CHECK_EVERY);
      before = tick;
      return stood;
    }),
    filter((stood) => stood >= SHORTEST),
    tap((stood) => write([row(stood, now())])),
  );
}

const row = (stood: Millis, at: Instant) =>
  auditRow(
    "daemon",
    at,
    `setpointd stood still for ${Math.round(stood / 1000)} s: nothing was received or sent meanwhile`,
    { facts: { outage: "setpointd", since: iso(instant(at - stood)), over: true } },
  );

export interface ControlSources {
  readonly webhook$: Observable<Arrival>;
  readonly polled$: Observable<Arrival>;
  readonly charger$: Observable<ChargerMessage>;
  /** This broker ("": the site's own) is there again: what holds now is sent to its chargers, at most one message each. */
  readonly brokerUp$: Observable<string>;
  /** The partner was asked once, or ten seconds have passed: from now on new starts may happen. */
  readonly startsAllowed$: Observable<unknown>;
  /** Chargers that an operator frees. */
  readonly freed$: Observable<Freeing>;
  /** A charger that commissioning has done with: what it was told before is lost on it. */
  readonly unlocked$: Observable<ChargerId>;
}

/** How many publishes are on their way at once to one broker; a broker that wants fewer is obeyed by its session. */
const WINDOW = 20;

/**
 * The whole of control: what arrives is taken in and committed, in order; what is touched by it, by time, or by a
 * charger's return is looked at, and the difference between what should hold and what was told last goes out.
 */
export function control(
  depot: ControlState,
  sources: ControlSources,
  ports: ControlPorts,
): Observable<unknown> {
  const stages = stagesOf(depot, ports);
  const looked$ = new Subject<void>();
  const behind$ = new Subject<void>();

  const touched$ = merge(sources.webhook$, sources.polled$).pipe(
    batchPerTick(),
    map((arrivals) => stages.take(arrivals)), // intake + expand; the commit is shared with the look that follows
  );
  const boundary$ = alarm(looked$, () => depot.next(), ports.now).pipe(map(() => () => stages.advance()));
  const heard$ = sources.charger$.pipe(map((message) => () => stages.hear(message)));
  const everyone$ = merge(
    of(() => stages.everyone()), // the first look
    sources.brokerUp$.pipe(map((broker) => () => stages.brokerReturned(broker))),
    sources.startsAllowed$.pipe(map(() => () => stages.allowStarts())),
    sources.freed$.pipe(map((freeing) => () => stages.free(freeing))),
    sources.unlocked$.pipe(map((charger) => () => stages.handedBack(charger))),
  );
  const elsewhere$ = merge(boundary$, heard$, everyone$).pipe(
    batchPerTick(),
    map((turn) => turn.flatMap((stage) => stage())), // at the end of the turn, so that the look shares their commit
  );

  const evaluated$ = merge(
    merge(touched$, elsewhere$).pipe(map((touches: readonly Reevaluation[]) => stages.look(touches))),
    // A large evaluation goes on in the next turn of the loop: what arrived meanwhile is handled first.
    behind$.pipe(
      exhaustMap(() => tickEnd$),
      map(() => stages.lookOn()),
    ),
  );

  return evaluated$.pipe(
    tap(() => {
      looked$.next();
      ports.evaluated();
    }),
    concatMap((pending) => stages.committed(pending)), // nothing is published before the commit that says why
    tap(() => {
      looked$.next(); // a commit that failed asks for another look soon
      if (stages.isBehind()) behind$.next();
    }),
    mergeMap((waiting) => waiting),
    groupBy(({ broker }) => broker), // a slow broker delays nobody on another
    mergeMap((line$) =>
      line$.pipe(
        mergeMap(({ count }) => range(0, Math.min(count, WINDOW))),
        mergeMap(() => stages.sendWaiting(line$.key), WINDOW), // one in flight per charger; what waits is replaced
      ),
    ),
    tap(() => looked$.next()), // a publish asks for its refresh, or for another try
  );
}
