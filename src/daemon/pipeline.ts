import { concatMap, type Observable, startWith, Subject, tap } from "rxjs";

import type { HoldMessage } from "../chargers/broker/address.ts";
import { type Hint, partnerSources } from "../control/ingest/pipeline.ts";
import { type PollResult, RequestedPolls } from "../control/ingest/pollRequest.ts";
import { control, type ControlSources, standstill, startsAllowed } from "../control/pipeline.ts";
import type { ChargerSender, Arrival, ControlPorts, Freeing } from "../control/ports.ts";
import { states } from "../control/send/pipeline.ts";
import type { Command, Sent } from "../domain/command.ts";
import type { IngestAnswer, Delivery, Fetched } from "../domain/delivery.ts";
import type { ReportRecord } from "../domain/report.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { type ChargerId, type Instant, iso, type Millis, millis } from "../domain/units.ts";
import { batchPerTick, daily, fanIn } from "../platform/scheduling.ts";
import { answerHoldMessage } from "../operator/holdRequest.ts";
import type { OperatorHolds } from "../operator/holds.ts";
import type { ReportPorts } from "../reporting/ports.ts";
import { reportedOn } from "../reporting/reportSchedule.ts";
import { capsOf } from "../retention/rules.ts";
import { noteUse, retention } from "../retention/pipeline.ts";
import type { EventService, ReportService } from "./edges.ts";
import { partnerReports } from "./reportsAndPrices.ts";
import { PartnerWatch } from "./partnerWatch.ts";
import type { Site } from "./site.ts";
import type { ChangeRequest } from "../control/stage.ts";

/** Everything that arrives at a site, before anyone reads it. */
export function siteInputs() {
  return {
    webhook$: new Subject<Arrival>(),
    hint$: new Subject<Hint>(),
    charger$: new Subject<ChargerMessage>(),
    /** Name of a broker that is connected again; "" is the site's own. */
    brokerUp$: new Subject<string>(),
    freed$: new Subject<Freeing>(),
    change$: new Subject<ChangeRequest>(),
    /** Requests for holds from MQTT. */
    holdMessage$: new Subject<HoldMessage>(),
    homeAssistantUp$: new Subject<void>(),
    unlocked$: new Subject<ChargerId>(),
    resend$: new Subject<ReportRecord>(),
    clockDoubted$: new Subject<void>(),
  };
}

export type SiteInputs = ReturnType<typeof siteInputs>;

/** Counters of deliveries, publishes, starts and reports. */
export interface LoopCounters {
  readonly delivered: (delivery: Delivery, answer: IngestAnswer & { readonly ok: true }) => void;
  readonly published: (charger: ChargerId, sent: Sent, tookMs: Millis) => void;
  readonly startedLate: (lateBy: Millis) => void;
  readonly reported: ReportPorts["counted"];
}

/** The partner's events: requests, deliveries, and the health and the clock of the partner by its answers. */
export function partnerEvents(
  site: Site,
  inputs: SiteInputs,
  partner: EventService,
  counters: Pick<LoopCounters, "delivered">,
  isStopping: () => boolean,
) {
  const { state, config, clock, now, monotonic, random, outages: away, wallClock, log } = site;
  const clockAgrees$ = new Subject<void>();
  const answered$ = new Subject<{ readonly delivery: Delivery; readonly answer: IngestAnswer }>();
  const watch = new PartnerWatch({
    now,
    wall: site.machineTime,
    monotonic,
    isClockDoubted: () => clock.isDoubted,
    staleAfter: config.vtn.staleAfter,
    maxSkew: config.clock.maxSkew,
    wallClock,
    away,
    log,
    onClockAgrees: () => clockAgrees$.next(),
  });
  // Our own stop cuts requests off, which is no failure of the partner.
  const received = (answer: Fetched): Fetched => (isStopping() ? answer : watch.onAnswer(answer));
  const polls = new RequestedPolls((request) => inputs.hint$.next(request));
  const settled = (delivery: Delivery, answer: IngestAnswer): void => answered$.next({ delivery, answer });
  const stored$ = new Subject<void>();
  const settled$ = answered$.pipe(
    batchPerTick(),
    tap((batch) => {
      for (const { delivery, answer } of batch) {
        polls.settled(delivery, answer);
        if (!answer.ok) continue;
        // A list is remembered by its identity. After a copy the next list is read whole: what was set aside may fit.
        partner.settled(state.schedule.isFull ? { ...delivery } : delivery);
        counters.delivered(delivery, answer);
      }
      if (batch.some(({ answer }) => answer.ok)) stored$.next();
    }),
  );
  const { fetched$, polled$ } = partnerSources(
    state,
    {
      monotonic,
      random,
      list: async (isRequested) => {
        if (isRequested) partner.endBackoff();
        return received(await partner.list());
      },
      event: async (id) => received(await partner.event(id)),
      wantList: () => partner.wantList?.(),
      fetchById: (ids) => inputs.hint$.next(ids),
      settled,
    },
    inputs.hint$,
    config.vtn.pollEvery,
  );
  return {
    fetched$,
    polled$,
    /** Settles deliveries at the end of the tick of their commit: commands go out before anything counts them. */
    settled$,
    /** Emits after `settled$` has settled deliveries that are stored. */
    stored$,
    clockAgrees$,
    watch,
    /** Requests the list now. */
    poll: async (): Promise<PollResult> =>
      partner.mayAskMore()
        ? polls.request()
        : {
            kind: "failed",
            asked: false,
            reason: "our own limit of requests in an hour is spent",
            retryAfter: null,
          },
    /** Hands a delivery to control. Resolves after its commit. */
    ingest: (delivery: Delivery): Promise<IngestAnswer> => {
      const { promise, resolve } = Promise.withResolvers<IngestAnswer>();
      watch.onDelivery(delivery);
      inputs.webhook$.next({
        delivery,
        settle: (answer) => {
          settled(delivery, answer);
          resolve(answer);
        },
      });
      return promise;
    },
  };
}

export type PartnerEvents = ReturnType<typeof partnerEvents>;

/** Edges that control and reports need. */
export interface LoopEdges {
  readonly chargers: ChargerSender;
  readonly reports: ReportService;
  readonly counters: LoopCounters;
  /** True: the partner's clock confirms ours. */
  readonly clockAgrees: () => boolean;
  /** Lead of our clock over the partner's. Zero: within tolerance, or unknown. */
  readonly ahead: () => Millis;
}

/** Ports and sources of control: what it may do, and what it reacts to. */
export function controlLoop(
  site: Site,
  inputs: SiteInputs,
  partner: Pick<PartnerEvents, "fetched$" | "polled$" | "clockAgrees$">,
  { chargers, counters }: Pick<LoopEdges, "chargers" | "counters">,
) {
  const { state, store, clock, now, monotonic, random, log } = site;
  const sent$ = new Subject<Command>();
  let evaluated: { readonly at: Instant; readonly tick: Millis } | null = null;
  let clockDoubtedSince: Instant | null = null;
  const ports: ControlPorts = {
    now,
    monotonic,
    random,
    write: (changes) => store.write(changes),
    writeUntilStored: (changes) => store.writeUntilStored(changes),
    durable: (when) => store.durable(when),
    send: async (command, lease, before, isDoubted) => {
      const began = monotonic();
      const sent = await chargers.send(command, lease, before, isDoubted);
      counters.published(command.charger, sent, millis(monotonic() - began));
      if (sent.ok) sent$.next(command);
      return sent;
    },
    publishState: (charger, payload) => chargers.publishState(charger, payload),
    isLinked: (charger) => chargers.isLinked(charger),
    windowOf: (broker) => chargers.windowOf(broker),
    firstAttempt: (broker) => chargers.firstAttempt?.(broker),
    observe: (isObserving) => chargers.observe(isObserving),
    fetchById: (ids) => inputs.hint$.next(ids),
    started: (lateBy) => counters.startedLate(lateBy),
    evaluated: () => void (evaluated = { at: now(), tick: monotonic() }),
    warn: (message) => log.warn(message),
  };
  const onDoubt = (): void => {
    state.blockStarts("clock doubted");
    clockDoubtedSince = now();
    const message =
      "the clock of this machine is behind our last record: no new start until the partner's clock agrees, or for 5 min";
    log.error({ clock: iso(site.machineTime()), record: iso(now()) }, message);
    site.note(message, { outage: "clock", since: iso(now()) });
    inputs.hint$.next("list");
  };
  // Doubted at the start: this machine has no battery-backed clock, for example.
  const doubted$ = clock.isDoubted ? inputs.clockDoubted$.pipe(startWith(undefined)) : inputs.clockDoubted$;
  const sources: ControlSources = {
    ...inputs,
    polled$: partner.polled$,
    startsAllowed$: startsAllowed(partner.fetched$, {
      isDoubted: () => clock.isDoubted,
      doubted$: doubted$.pipe(tap(onDoubt)),
      agrees$: partner.clockAgrees$,
      believe: () => {
        clock.believe();
        clockDoubtedSince = null;
        site.note("the clock of this machine is believed again: new starts may happen", {
          outage: "clock",
          over: true,
        });
      },
    }),
  };
  return {
    ports,
    sources,
    sent$,
    /** The last evaluation. Null: none yet. */
    evaluated: () => evaluated,
    /** Null: the clock is believed. */
    clockDoubtedSince: () => clockDoubtedSince,
  };
}

export type ControlLoop = ReturnType<typeof controlLoop>;

/** The way from the partner's events to the chargers, and from their readings back. Nothing runs before a subscription. */
export function sitePipelines(
  site: Site,
  inputs: SiteInputs,
  { settled$, stored$ }: Pick<PartnerEvents, "settled$" | "stored$">,
  { ports, sources, sent$ }: Pick<ControlLoop, "ports" | "sources" | "sent$">,
  { reports: partner, counters, clockAgrees, ahead }: Omit<LoopEdges, "chargers">,
) {
  const { state, store, config, schedule, patiently, retentionAlarms: alarms } = site;
  const reports = partnerReports(
    site,
    { ...inputs, command$: sent$, changed$: stored$ },
    {
      ...ports,
      partner,
      counted: (outcome) => counters.reported(outcome),
      clockAgrees,
      ahead,
      onKept: ({ rows, leftEarly }) =>
        noteUse({ ...ports, alarms }, "readings", rows / capsOf(config.retention).readings, leftEarly),
    },
  );
  return {
    reports,
    control$: control(state, sources, ports),
    settled$,
    states$: states(state, ports),
    retention$: retention(state, config.retention, {
      ...ports,
      alarms,
      committed: () => store.committed(),
      clockAgrees,
      recordRows: async () =>
        store.head().seq - ((await patiently(() => store.audit({ limit: 1 })))[0]?.seq ?? 0) + 1,
      oldRows: (query) => patiently(() => store.oldRows(query)),
      oldReports: (before, most) => patiently(() => store.oldReports(before, most)),
      isOpenReport: (name) => schedule.outbox.has(name),
      reportedOn: () => reportedOn(schedule, state.known),
    }),
  };
}

/** All that ends the process if it fails: control, and what goes with it each second, day and commit. `onDay`: daily. */
export const essential = (
  { control$, settled$, states$, retention$ }: Omit<ReturnType<typeof sitePipelines>, "reports">,
  { now, monotonic, write }: ControlPorts,
  onDay: () => void,
): Observable<unknown> =>
  fanIn((join) => {
    join(control$);
    join(settled$);
    join(states$);
    join(standstill({ now, monotonic, write }));
    join(daily(now), onDay);
    join(retention$);
  });

/** The answers to requests for holds from MQTT, one after another. */
export const holdResults = (
  message$: SiteInputs["holdMessage$"],
  holds: Pick<OperatorHolds, "open" | "endOver">,
) => message$.pipe(concatMap((message) => answerHoldMessage(holds, message)));
