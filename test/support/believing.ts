import { type Observable, startWith, Subject, tap } from "rxjs";

import { BelievedClock, type ClockReading } from "../../src/platform/clock.ts";
import { recordAttempt, freshHealth } from "../../src/control/ingest/partnerHealth.ts";
import { between, type Instant, iso, type Millis, millis, minutes } from "../../src/domain/units.ts";
import { startsAllowed } from "../../src/control/pipeline.ts";
import type { Fetched } from "../../src/vtn/client.ts";

/** The partner is not shown as stale here. */
const STALE_AFTER = minutes(10);

interface Surroundings {
  readonly read: () => ClockReading;
  /** The last moment on record. */
  readonly recorded: Instant | null;
  readonly maxSkew: Millis;
  readonly note: (words: string) => void;
}

/** The wall clock held against the record and the partner's, as app.ts does it. */
export function believing({ read, recorded, maxSkew, note }: Surroundings) {
  const doubted$ = new Subject<void>();
  const agrees$ = new Subject<void>();
  const time = new BelievedClock(read, recorded, () => doubted$.next());
  const now = (): Instant => time.now();
  let health = freshHealth(now());
  return {
    now,
    /** What an answer of the partner tells of our clock. */
    heard(answer: Fetched): void {
      const skew =
        answer.kind === "failed" || answer.skew === null ? null : answer.skew - between(read().wall, now());
      const attempt =
        answer.kind === "failed"
          ? ({ ok: false, asked: answer.asked, reason: answer.reason } as const)
          : ({ ok: true, skew: skew === null ? null : millis(skew) } as const);
      ({ health } = recordAttempt(health, attempt, now(), {
        staleAfter: STALE_AFTER,
        maxSkew,
        wallClock: iso,
      }));
      if (attempt.ok && health.skew !== null && Math.abs(health.skew) <= maxSkew) agrees$.next();
    },
    /** `onDoubt`: nothing new starts from now on. */
    startsAllowed: (fetched$: Observable<unknown>, onDoubt: () => void): Observable<unknown> =>
      startsAllowed(fetched$, {
        isDoubted: () => time.isDoubted,
        doubted$: (time.isDoubted ? doubted$.pipe(startWith(undefined)) : doubted$).pipe(
          tap(() => {
            onDoubt();
            note("the clock of this machine is behind our last record");
          }),
        ),
        agrees$,
        believe: () => {
          time.believe();
          note("the clock of this machine is believed again: new starts may happen");
        },
      }),
  };
}
