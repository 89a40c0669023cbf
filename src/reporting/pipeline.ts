import { exhaustMap, interval, merge, type Observable, of, Subject, tap } from "rxjs";

import type { ControlState } from "../control/state.ts";
import type { Command } from "../domain/command.ts";
import type { ReportRecord } from "../domain/report.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { inSteps, runCooperatively } from "../platform/cooperative.ts";
import { alarm, batchPerTick } from "../platform/scheduling.ts";
import { ReadingCollector } from "./collect.ts";
import { ReportComposer } from "./composer.ts";
import type { ReportSchedule } from "./obligations.ts";
import { Outbox } from "./outbox.ts";
import type { ReportPorts, ReportRules } from "./ports.ts";
import { ReportSender } from "./sender.ts";

export interface ReportSources {
  /** Charger messages, after control has processed them: the occupancy is up to date. */
  readonly charger$: Observable<ChargerMessage>;
  /** Commands that were sent, refreshes included. */
  readonly command$: Observable<Command>;
  /** A commit that may have changed an event. */
  readonly changed$: Observable<unknown>;
  /** A broker that is connected again. */
  readonly brokerUp$: Observable<string>;
  /** Reports that an operator sends again. */
  readonly resend$: Observable<ReportRecord>;
}

/** Old readings are pruned in small steps. */
const PRUNE_EVERY = 60_000;
/** Unchanged values are stored again long before they would count as a gap. */
const CARRY_FORWARD_EVERY = 30_000;

/**
 * The order of reporting: store readings, compose and commit the reports that are due, send them. It runs apart from
 * control and cannot delay it.
 */
export function reporting(
  schedule: ReportSchedule,
  state: ControlState,
  sources: ReportSources,
  rules: ReportRules,
  ports: ReportPorts,
): Observable<unknown> {
  const outbox = new Outbox(schedule.outbox, ports);
  const composer = new ReportComposer({ schedule, state, outbox, rules, ports });
  const sender = new ReportSender({ known: state.known, outbox, rules, ports });
  const { maxGap } = rules.settings;
  const { isLinked, monotonic } = ports;
  const collector = new ReadingCollector(state, {
    edges: () => composer.edges(),
    maxGap,
    isLinked,
    monotonic,
  });
  const composed$ = new Subject<void>();
  const sent$ = new Subject<void>();

  const received$ = sources.charger$.pipe(
    batchPerTick(),
    tap((messages) =>
      ports.keep(messages.flatMap((message) => collector.handleMessage(message, ports.now()))),
    ),
  );
  const commanded$ = sources.command$.pipe(
    tap((command) => ports.keep(collector.handleCommand(command, ports.now()))),
  );
  const carried$ = interval(CARRY_FORWARD_EVERY).pipe(
    // A pass over 20,000 chargers takes several turns of the event loop.
    exhaustMap(() => runCooperatively(inSteps(collector.carryForward(ports.now()), ports.keep), monotonic)),
  );
  const returned$ = sources.brokerUp$.pipe(tap((broker) => collector.brokerReturned(broker)));
  const resend$ = sources.resend$.pipe(tap((record) => sender.resend(record)));

  // An overlap is skipped: the pass under way, or the alarm after it, finds the report.
  const composing$ = merge(
    of("the start"),
    sources.changed$,
    alarm(composed$, () => composer.next(), ports.now),
  ).pipe(
    exhaustMap(() => composer.compose()), // windows due -> fill -> commit
    tap(() => composed$.next()),
  );
  const sending$ = merge(
    composed$,
    resend$,
    alarm(sent$, () => sender.next(), ports.now),
  ).pipe(
    exhaustMap(() => sender.send()), // one at a time -> outcome
    tap(() => sent$.next()),
  );
  // A clock that is ahead would make all readings old. Prune only while the partner's clock agrees.
  const pruning$ = interval(PRUNE_EVERY).pipe(
    exhaustMap(() => ports.prune(ports.clockAgrees() ? rules.keepReadings : null)),
  );

  return merge(returned$, received$, commanded$, carried$, sending$, composing$, pruning$);
}
