import pino from "pino";
import { merge } from "rxjs";

import type { Config } from "../../src/config/schema.ts";
import type { ControlConfig } from "../../src/config/sections/control.ts";
import type { ReportConfig } from "../../src/config/sections/report.ts";
import type { ControlSources } from "../../src/control/pipeline.ts";
import type { ControlPorts } from "../../src/control/ports.ts";
import {
  controlLoop,
  type LoopCounters,
  partnerEvents,
  siteInputs,
  sitePipelines,
} from "../../src/daemon/pipeline.ts";
import { requestChange } from "../../src/daemon/leading.ts";
import { siteDepartures } from "../../src/daemon/operatorSide.ts";
import { openingSite } from "../../src/daemon/site.ts";
import type { AuditEntry } from "../../src/domain/audit.ts";
import type { Charger } from "../../src/domain/charger.ts";
import type { Command, Sent } from "../../src/domain/command.ts";
import type { Delivery, Fetched as Asked } from "../../src/domain/delivery.ts";
import type { PostAnswer } from "../../src/domain/report.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { OpenedState } from "../../src/domain/store.ts";
import type { ChargerId, EventId, Instant, Millis } from "../../src/domain/units.ts";
import type { Vehicle } from "../../src/domain/vehicle.ts";
import { holdCosts } from "../../src/operator/holdCosts.ts";
import { OperatorHolds } from "../../src/operator/holds.ts";
import { OperatorBindings } from "../../src/operator/bindings.ts";
import { rebootApi, resendApi } from "../../src/operator/chargerActions.ts";
import { modeApi } from "../../src/operator/mode.ts";
import { reportsView } from "../../src/operator/listViews.ts";
import { BelievedClock } from "../../src/platform/clock.ts";
import { runToEnd, SharedRoom } from "../../src/platform/cooperative.ts";
import { reportedOn } from "../../src/reporting/reportSchedule.ts";
import type { Retention } from "../../src/retention/rules.ts";
import { openState } from "../../src/store/sqlite/open.ts";
import { receive } from "../../src/vtn/reception.ts";
import { configured } from "./aConfiguration.ts";
import { aDialect } from "./aDialect.ts";

/** The partner's event service, as the daemon reaches it. */
export interface PartnerSide {
  readonly list: () => Promise<Asked>;
  readonly event: (id: EventId) => Promise<Asked>;
  readonly settled: (delivery: Delivery) => void;
  /** Absent: requests wait for no token. */
  readonly endBackoff?: () => void;
  /** Absent: it takes every report. */
  readonly post?: (body: string) => Promise<PostAnswer>;
}

/** The broker with its chargers, as the daemon reaches them. */
interface FloorSide {
  readonly send: (
    command: Command,
    lease: Millis,
    before: Desired | null,
    isDoubted?: boolean,
  ) => Promise<Sent>;
  readonly publishState: (charger: ChargerId, payload: string) => Promise<Sent>;
  /** Absent: always. */
  readonly isUp?: boolean;
  /** Absent: no charger can be restarted. */
  readonly reboot?: (charger: ChargerId, id: string) => Promise<Sent>;
  readonly cannotReboot?: string | null;
}

export interface DepotSetup {
  readonly directory: string;
  readonly chargers: readonly Charger[];
  readonly vehicles: readonly Vehicle[];
  readonly control: ControlConfig;
  readonly pollEvery: Millis;
  readonly random: () => number;
  readonly publishesStates: boolean;
  /** The site's; absent: UTC. */
  readonly zone?: string;
  /** Absent: nothing is reported. */
  readonly report?: ReportConfig;
  /** Absent: no vehicle has a departure, and none can be set. */
  readonly departures?: Pick<Config, "departures" | "departureGuard">;
  /** Absent: everything is kept. */
  readonly retention?: Retention;
}

/** What surrounds one run of the daemon, and what it tells the test. */
export interface World {
  readonly now: () => Instant;
  readonly monotonic: () => Millis;
  /** By the time that the daemon goes by. */
  readonly partner: (now: () => Instant) => PartnerSide;
  readonly floor: FloorSide;
  readonly looked: () => void;
  /** Keepalives of chargers are paused, or resumed. */
  readonly observe?: (isObserving: boolean) => void;
  readonly warn: (words: string) => void;
  /** These rows are committed. */
  readonly recorded: (rows: readonly AuditEntry[]) => void;
  /** Between the run and what it reaches, where something is to go wrong. */
  readonly meddle?: Meddling;
  /** Whether the partner's clock agrees. Absent: as the partner's answers show. */
  readonly clockAgrees?: () => boolean;
  /** How far our clock is known to be ahead of the partner's. Absent: as the partner's answers show. */
  readonly ahead?: () => Millis;
  /** The wall clock is held against the record and the partner's, which may differ by so much; absent: it is believed. */
  readonly maxSkew?: Millis;
}

export interface Meddling {
  readonly opened?: (state: OpenedState) => OpenedState;
  readonly ports?: (ports: ControlPorts) => ControlPorts;
  readonly sources?: (sources: ControlSources) => ControlSources;
}

/** Start offsets are derived from it. */
export const SITE_KEY = Buffer.alloc(32, 7);
const log = pino({ level: "silent" });

const TAKEN: PostAnswer = { kind: "answered", status: 201, text: "", retryAfter: null };

const DEFAULTS = configured({});

const COUNTERS: LoopCounters = {
  delivered: () => {},
  published: () => {},
  startedLate: () => {},
  reported: () => {},
};

/** The wiring of src/daemon, with scripted edges. */
export function wired(setup: DepotSetup, world: World) {
  const { directory, chargers, vehicles, control, pollEvery, random, publishesStates } = setup;
  const { floor, monotonic, meddle = {}, maxSkew } = world;
  const opened = openState(directory, {
    now: world.now,
    monotonic,
    random: () => SITE_KEY,
    keys: { site: null, proof: null },
    log,
  });
  if (!opened.ok) throw new Error(opened.reason);
  const config = {
    site: { ...DEFAULTS.site, timezone: setup.zone ?? "UTC" },
    clock: maxSkew === undefined ? DEFAULTS.clock : { ...DEFAULTS.clock, maxSkew },
    control,
    chargers,
    vehicles,
    report: setup.report ?? { ...DEFAULTS.report, enabled: false },
    retention: setup.retention ?? DEFAULTS.retention,
    vtn: { pollEvery, staleAfter: DEFAULTS.vtn.staleAfter },
  };
  const inputs = siteInputs();
  const steps = openingSite(
    config,
    meddle.opened?.(opened) ?? opened,
    {
      now: world.now,
      monotonic,
      random,
      log,
      clock: (recorded, onDoubt) =>
        maxSkew === undefined
          ? { now: world.now, isDoubted: false, believe: () => {} }
          : new BelievedClock(() => ({ wall: world.now(), monotonic: monotonic() }), recorded, onDoubt),
    },
    {
      onCommitted: world.recorded,
      onClockDoubted: () => inputs.clockDoubted$.next(),
      room: new SharedRoom(Infinity).part(),
    },
  );
  const site = runToEnd(steps);
  const { state, schedule, now } = site;
  const { store } = opened;
  const partner = world.partner(now);
  const stopping = new AbortController();
  const events = partnerEvents(
    site,
    inputs,
    {
      list: () => partner.list(),
      event: (id) => partner.event(id),
      settled: (delivery) => partner.settled(delivery),
      mayAskMore: () => true,
      endBackoff: () => partner.endBackoff?.(),
    },
    COUNTERS,
    () => stopping.signal.aborted,
  );
  const honest = controlLoop(site, inputs, events, {
    counters: COUNTERS,
    chargers: {
      send: (command, lease, before, isDoubted) => floor.send(command, lease, before, isDoubted),
      publishState: (charger, payload) => floor.publishState(charger, payload),
      isLinked: () => floor.isUp ?? true,
      windowOf: () => 20,
      observe: (isObserving) => world.observe?.(isObserving),
    },
  });
  const watched: ControlPorts = {
    ...honest.ports,
    evaluated: () => {
      honest.ports.evaluated();
      world.looked();
    },
    warn: world.warn,
  };
  const loop = {
    ...honest,
    ports: meddle.ports?.(watched) ?? watched,
    sources: meddle.sources?.(honest.sources) ?? honest.sources,
  };
  const pipelines = sitePipelines(site, inputs, events, loop, {
    counters: COUNTERS,
    reports: {
      write: aDialect({ report: config.report }).writeReport,
      post: async (body) => (await partner.post?.(body)) ?? TAKEN,
    },
    clockAgrees: world.clockAgrees ?? (() => events.watch.clockAgrees),
    ahead: world.ahead ?? (() => events.watch.ahead()),
  });
  const departures =
    setup.departures === undefined
      ? null
      : siteDepartures(
          site,
          setup.departures,
          { ...store.reads.departures(), alarms: store.reads.alarms() },
          (change) => requestChange(inputs, change),
        );
  const flow = merge(
    departures === null ? [] : departures.forecast$,
    pipelines.control$,
    pipelines.settled$,
    publishesStates ? pipelines.states$ : [],
    setup.retention === undefined ? [] : pipelines.retention$,
    setup.report === undefined ? [] : pipelines.reports.report$,
  ).subscribe();
  flow.add(() => stopping.abort());
  return {
    now,
    store,
    depot: state,
    ports: loop.ports,
    flow,
    reports:
      setup.report === undefined
        ? null
        : {
            resend: (name: string): void => {
              const found = store.reads.report(name);
              if (found !== null) inputs.resend$.next(found.record);
            },
            reportedOn: () => reportedOn(schedule, state.known),
            view: () => reportsView(schedule, store.reads.reports({})),
          },
    departures,
    charger$: inputs.charger$,
    freed$: inputs.freed$,
    holds: new OperatorHolds({
      state,
      request: (change) => requestChange(inputs, change),
      now,
      isReady: () => true,
      monotonic: () => performance.now(),
      departureUnder: departures?.departureUnder ?? (() => null),
    }),
    costs: holdCosts({
      state,
      store,
      context: { settings: config.report, chargers: state.chargers },
      request: (change) => requestChange(inputs, change),
      now,
      monotonic: () => performance.now(),
    }),
    bindings: new OperatorBindings({
      state,
      request: (change) => requestChange(inputs, change),
      now,
      isReady: () => true,
    }),
    resend: resendApi({
      state,
      request: (change) => requestChange(inputs, change),
      isReady: () => true,
      isLinked: () => floor.isUp ?? true,
    }),
    reboots: rebootApi({
      state,
      request: (change) => requestChange(inputs, change),
      isReady: () => true,
      now,
      isLinked: () => floor.isUp ?? true,
      chargers: {
        cannotReboot: () => floor.cannotReboot ?? null,
        reboot: async (charger, id) =>
          (await floor.reboot?.(charger, id)) ?? { ok: false, retry: false, reason: "" },
      },
    }),
    mode: modeApi({ state, request: (change) => requestChange(inputs, change), now, isReady: () => true }),
    handedBack$: inputs.unlocked$,
    hint$: inputs.hint$,
    brokerUp: (): void => inputs.brokerUp$.next(""),
    receive: receive({
      dialect: aDialect(),
      scheme: { kind: "bearer", secrets: () => ["s"] },
      now,
      monotonic,
      hint: (ask) => inputs.hint$.next(ask),
      ingest: events.ingest,
    }),
  };
}
