import {
  BehaviorSubject,
  concatMap,
  defer,
  filter,
  from,
  ignoreElements,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  race,
  repeat,
  Subject,
  switchMap,
  tap,
  timer,
} from "rxjs";

import { backoff } from "../../platform/backoff.ts";
import { type EventId, type Millis, millis, minutes, seconds } from "../../domain/units.ts";
import type { PollRequest } from "./pollRequest.ts";
import type { Fetched, PollingPorts } from "../ports.ts";

/** Someone says that there is news: look at the list, or at these events. Or an operator asks for the list now. */
export type Hint = "list" | readonly EventId[] | PollRequest;

const isRequest = (hint: Hint): hint is PollRequest => typeof hint === "object" && "onList" in hint;

const FIRST_RETRY = seconds(1);
const LONGEST_RETRY = minutes(5);
/** Hints may come as fast as anyone likes; the list is asked for at most this often because of them (DESIGN 6.1). */
const HINTS_EVERY = seconds(10);
/** Of more events that cannot be had by id, none hurries the list. */
const MOST_FAILED = 1_000;

/** Asks the partner: the list for ever, one request at a time, and single events when someone needs them. */
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
    // A hint that comes while a list is on its way counts for the next one: that list may be older.
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
          // An operator's tries make our own no rarer.
          const counted = isRequested ? Math.max(failures, 1) : failures + 1;
          failures = fetched.kind === "failed" ? counted : 0;
          pause = pauseAfter(fetched, failures, every, ports.random());
          for (const { onList } of requests) onList(fetched);
        }),
      );
    }).pipe(
      repeat({
        delay: () => {
          // While the partner is failing, or asked us to wait, a hint does not hurry us.
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

/** `unsettled`: one could not be had, for the first time; who delivered it has our answer, and will not send it again. */
function singles(ports: PollingPorts, hint$: Observable<Hint>, unsettled: () => void): Observable<Fetched> {
  return defer(() => {
    const waiting = new Set<EventId>();
    const failed = new Set<EventId>();
    return hint$.pipe(
      mergeMap((hint) => (hint === "list" || isRequest(hint) ? [] : from(hint))),
      filter((id) => !waiting.has(id)),
      tap((id) => waiting.add(id)),
      // One at a time, in order; what fails is left to the next list.
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
  if (fetched.kind !== "failed") return millis(every * (0.9 + 0.2 * fraction));
  return millis(Math.max(fetched.retryAfter ?? 0, backoff(failures, fraction, FIRST_RETRY, LONGEST_RETRY)));
}
