import { concat, defer, exhaustMap, ignoreElements, type Observable, repeat, takeWhile, timer } from "rxjs";

import type { ControlState } from "../control/state.ts";
import { auditRow } from "../domain/audit.ts";
import type { Change, Stored } from "../domain/changes.ts";
import type { Store } from "../domain/store.ts";
import { type Instant, between, instant, minutes, seconds } from "../domain/units.ts";
import { daily, every, fanIn } from "../platform/scheduling.ts";
import {
  type RetentionAlarms,
  capsOf,
  type Retained,
  type Retention,
  eventsUsed,
  forgettable,
  leavesEarly,
  pruned,
} from "./rules.ts";

/** Delay after a start, which has more urgent work. */
const FIRST = minutes(1);
/** Deletions per commit. Such a commit takes milliseconds and delays no other. */
const STEP_ROWS = 500;
const STEP_EVENTS = 100;
const STEP_REPORTS = 100;
/** Pause between two steps. Pruning of years takes an hour, and does not block the loop or wear the flash. */
const PAUSE = seconds(1);

/** Interval of measurements. */
const MEASURE_EVERY = minutes(10);

/** Prunes once a day. Measures more often, so that the alarm comes before a cap causes pruning. */
export const retention = (state: ControlState, keep: Retention, ports: RetentionPorts): Observable<void> =>
  fanIn((join) => {
    join(pruning(state, keep, ports));
    join(every(MEASURE_EVERY, () => measure(state, keep, ports), FIRST));
  });

async function measure(state: ControlState, keep: Retention, ports: RetentionPorts): Promise<void> {
  const caps = capsOf(keep);
  noteUse(ports, "record", (await ports.recordRows()) / caps.record);
  noteUse(ports, "events", eventsUsed(state.known.values(), { ...keep, maxBytes: caps.events }));
}

/** Records a new alarm. `used`: part of the cap. */
export function noteUse(
  { alarms, now, write }: Pick<RetentionPorts, "alarms" | "now" | "write">,
  kind: Retained,
  used: number,
  leavesBeforeAge = false,
): void {
  const alarm = alarms.measured(kind, used, leavesBeforeAge, now());
  if (alarm === null) return;
  const { message, leftEarly } = alarm;
  const facts = { warning: "retention", of: kind, percent: Math.round(used * 100), leftEarly };
  write([auditRow("daemon", now(), message, { facts })]);
}

/** Prunes old data once a day, in steps of one commit each. */
const pruning = (state: ControlState, keep: Retention, ports: RetentionPorts): Observable<unknown> => {
  const steps$ = defer(() => step(state, keep, ports)).pipe(
    repeat({ delay: () => timer(PAUSE) }),
    takeWhile(Boolean),
  );
  return daily(ports.now).pipe(exhaustMap(() => concat(timer(FIRST).pipe(ignoreElements()), steps$)));
};

/** Runs one step. False: nothing is left to prune today, or the commit failed. */
async function step(state: ControlState, keep: Retention, ports: RetentionPorts): Promise<boolean> {
  const now = ports.now();
  const caps = capsOf(keep);
  // With a clock that is wrong by years everything looks old. Ages count only while the partner's clock agrees.
  const agesCount = ports.clockAgrees();
  const oldReports = agesCount ? await ports.oldReports(instant(now - keep.reports), STEP_REPORTS) : [];
  const before = agesCount ? instant(now - keep.audit) : null;
  const old = await ports.oldRows({ before, maxRows: caps.record, most: STEP_ROWS });
  // Chosen after the reads: an event may have changed meanwhile, and an operator may have sent a report again.
  const reports = oldReports.filter((name) => !ports.isOpenReport(name));
  const reportedOn = ports.reportedOn();
  const events = forgettable(
    state.known.values(),
    { ...keep, maxBytes: caps.events },
    {
      now,
      agesCount,
      isNeeded: (id) => state.absences.mayBeListed(id) || reportedOn.has(id),
      most: STEP_EVENTS,
    },
  );
  const changes: readonly Change[] = [
    ...events.map(({ id }) => ({ kind: "eventForgotten", id }) as const),
    ...reports.map((name) => ({ kind: "reportForgotten", name }) as const),
    ...(old === null ? [] : pruned(old, now)),
  ];
  if (changes.length === 0) return false;
  ports.write(changes);
  if (old !== null && between(old.at, now) <= keep.audit) noteUse(ports, "record", 1, true);
  if (events.some((event) => leavesEarly(event, keep, now))) noteUse(ports, "events", 1, true);
  const { ok } = await ports.committed();
  for (const event of ok ? events : []) {
    // A revision that arrived meanwhile stays.
    if (state.known.get(event.id) === event) state.schedule.forget(event.id, now);
  }
  return ok;
}

export interface RetentionPorts {
  readonly now: () => Instant;
  /** True while the partner's clock agrees with ours. */
  readonly clockAgrees: () => boolean;
  /** Number of stored rows of the record. */
  readonly recordRows: () => Promise<number>;
  readonly alarms: RetentionAlarms;
  /** Null: no row of the record may be pruned. */
  readonly oldRows: Store["oldRows"];
  readonly oldReports: Store["oldReports"];
  /** True: the report still waits for the partner. */
  readonly isOpenReport: (name: string) => boolean;
  /** Ids of events with a pending report. */
  readonly reportedOn: () => ReadonlySet<string>;
  readonly write: (changes: readonly Change[]) => void;
  readonly committed: () => Promise<Stored>;
}
