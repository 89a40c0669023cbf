import { exhaustMap, type Observable, of, Subject } from "rxjs";

import type { ControlState } from "../control/state.ts";
import type { Command } from "../domain/command.ts";
import type { ReportRecord } from "../domain/report.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { inSteps, runCooperatively } from "../platform/cooperative.ts";
import { batchPerTick, every, fanIn, wakeUps } from "../platform/scheduling.ts";
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

  // An overlap is skipped: the pass under way, or the wake-up after it, finds the report.
  const composing$ = fanIn<unknown>((join) => {
    join(of("the start"), trigger);
    join(sources.changed$, trigger);
    join(
      wakeUps(composed$, () => composer.next(), ports.now),
      trigger,
    );
  }).pipe(exhaustMap(() => composer.compose().then(() => composed$.next()))); // windows due -> fill -> commit
  const sending$ = fanIn<unknown>((join) => {
    join(composed$, trigger);
    join(sources.resend$, (record) => sender.resend(record));
    join(
      wakeUps(sent$, () => sender.next(), ports.now),
      trigger,
    );
  }).pipe(exhaustMap(() => sender.send().then(() => sent$.next()))); // one at a time -> outcome

  // A pass over 20,000 chargers takes several turns of the event loop.
  const carryForward = (): Promise<void> =>
    runCooperatively(inSteps(collector.carryForward(ports.now()), ports.keep), monotonic);

  return fanIn<void>((join) => {
    join(sources.brokerUp$, (broker) => collector.brokerReturned(broker));
    join(sources.charger$.pipe(batchPerTick()), (messages) =>
      ports.keep(messages.flatMap((message) => collector.handleMessage(message, ports.now()))),
    );
    join(sources.command$, (command) => ports.keep(collector.handleCommand(command, ports.now())));
    join(every(CARRY_FORWARD_EVERY, carryForward));
    join(sending$);
    join(composing$);
    // A clock that is ahead would make all readings old. Prune only while the partner's clock agrees.
    join(every(PRUNE_EVERY, () => ports.prune(ports.clockAgrees() ? rules.keepReadings : null)));
  });
}

/** Mapper for sources whose values all have the same effect. */
const trigger = (): void => {};
