import { exhaustMap, interval, merge, type Observable, of, Subject, tap } from "rxjs";

import type { ControlState } from "../control/state.ts";
import type { Command } from "../domain/command.ts";
import type { ReportRecord } from "../domain/report.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { alarm, batchPerTick } from "../platform/scheduling.ts";
import { collector } from "./collect.ts";
import type { ReportSchedule } from "./obligations.ts";
import type { ReportPorts, ReportRules } from "./ports.ts";
import { reportStages } from "./stages.ts";

export interface ReportSources {
  /** After control has taken them in: who is on a charger is settled by then. */
  readonly charger$: Observable<ChargerMessage>;
  /** Commands that went out, refreshes included. */
  readonly command$: Observable<Command>;
  /** Something was committed that may have changed an event. */
  readonly changed$: Observable<unknown>;
  /** This broker is there again. */
  readonly brokerUp$: Observable<string>;
  /** Reports that a person wants sent again. */
  readonly resend$: Observable<ReportRecord>;
}

/** Readings that are too old go in small steps. */
const PRUNE_EVERY = 60_000;
/** What chargers do not say because it has not changed is kept all the same, well before it would look like a gap. */
const UPHOLD_EVERY = 30_000;

/**
 * The whole of reporting: what chargers say is kept; a report whose time has come is composed from it and committed,
 * then sent until the partner has it. Apart from control, which it cannot hold up.
 */
export function reporting(
  desk: ReportSchedule,
  depot: ControlState,
  sources: ReportSources,
  rules: ReportRules,
  ports: ReportPorts,
): Observable<unknown> {
  const stages = reportStages(desk, depot, rules, ports);
  const { maxGap } = rules.settings;
  const { isLinked, monotonic } = ports;
  const collect = collector(depot, { edges: stages.edges, maxGap, isLinked, monotonic });
  const composed$ = new Subject<void>();
  const sent$ = new Subject<void>();

  const heard$ = sources.charger$.pipe(
    batchPerTick(),
    tap((messages) => ports.keep(messages.flatMap((message) => collect.heard(message, ports.now())))),
  );
  const told$ = sources.command$.pipe(tap((command) => ports.keep(collect.told(command, ports.now()))));
  const upheld$ = interval(UPHOLD_EVERY).pipe(tap(() => ports.keep(collect.upheld(ports.now()))));
  const returned$ = sources.brokerUp$.pipe(tap((broker) => collect.brokerReturned(broker)));
  const resend$ = sources.resend$.pipe(tap((record) => stages.resend(record)));

  // What an overlap skips, the look that is under way finds, or the alarm that follows it.
  const composing$ = merge(
    of("the start"),
    sources.changed$,
    alarm(composed$, stages.nextReport, ports.now),
  ).pipe(
    exhaustMap(() => stages.compose()), // windows due -> fill -> commit
    tap(() => composed$.next()),
  );
  const sending$ = merge(composed$, resend$, alarm(sent$, stages.nextTry, ports.now)).pipe(
    exhaustMap(() => stages.send()), // one at a time -> outcome
    tap(() => sent$.next()),
  );
  // A clock that is ahead would make everything old, as it would for the record: ages count only while the partner's agrees.
  const pruning$ = interval(PRUNE_EVERY).pipe(
    tap(() => ports.prune(ports.clockAgrees() ? rules.keepReadings : null)),
  );

  return merge(returned$, heard$, told$, upheld$, sending$, composing$, pruning$);
}
