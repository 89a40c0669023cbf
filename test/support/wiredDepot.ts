import { aDialect } from "./aDialect.ts";
import pino from "pino";
import { filter, map, merge, Subject } from "rxjs";

import type { ControlConfig } from "../../src/config/sections/control.ts";
import type { ReportConfig } from "../../src/config/sections/report.ts";
import { recallWrites } from "../../src/control/decide/holdBack.ts";
import type { Hint } from "../../src/control/ingest/pipeline.ts";
import { endOutagesOfLastRun } from "../../src/control/observe/recordSilence.ts";
import { control, type ControlSources, afterFirstFetch, partnerSources } from "../../src/control/pipeline.ts";
import type { Arrival, ControlPorts, Fetched, Freeing } from "../../src/control/ports.ts";
import { restoreState } from "../../src/control/recovery.ts";
import { states } from "../../src/control/send/pipeline.ts";
import { ControlState } from "../../src/control/state.ts";
import type { Charger } from "../../src/domain/charger.ts";
import type { Command, Sent } from "../../src/domain/command.ts";
import type { Delivery } from "../../src/domain/delivery.ts";
import type { PostAnswer } from "../../src/domain/report.ts";
import type { Retention } from "../../src/domain/retention.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { ChargerMessage } from "../../src/domain/telemetry.ts";
import { type ChargerId, type EventId, type Instant, type Millis, millis } from "../../src/domain/units.ts";
import type { Vehicle } from "../../src/domain/vehicle.ts";
import { wallClock } from "../../src/platform/localTime.ts";
import { RetentionAlarms } from "../../src/retention/caps.ts";
import { retention } from "../../src/retention/pipeline.ts";
import type { AuditRow } from "../../src/store/sqlite/auditRows.ts";
import { type Opened, openState } from "../../src/store/sqlite/open.ts";
import type { Fetched as Asked } from "../../src/vtn/client.ts";
import { receive } from "../../src/vtn/reception.ts";
import { believing } from "./believing.ts";
import { wiredReports } from "./wiredReports.ts";

/** The partner's event service, as the daemon reaches it. */
export interface PartnerSide {
  readonly list: () => Promise<Asked>;
  readonly event: (id: EventId) => Promise<Asked>;
  readonly settled: (delivery: Delivery) => void;
  /** Absent: it takes every report. */
  readonly post?: (body: string) => Promise<PostAnswer>;
}

/** The broker with its chargers, as the daemon reaches them. */
interface FloorSide {
  readonly send: (command: Command, lease: Millis, before: Desired | null) => Promise<Sent>;
  readonly publishState: (charger: ChargerId, payload: string) => Promise<Sent>;
  /** Absent: always. */
  readonly isUp?: boolean;
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
  readonly warn: (words: string) => void;
  /** These rows are committed. */
  readonly recorded: (rows: readonly AuditRow[]) => void;
  /** Between the run and what it reaches, where something is to go wrong. */
  readonly meddle?: Meddling;
  /** Whether the partner's clock agrees; absent: it does. */
  readonly clockAgrees?: () => boolean;
  /** How far our clock is known to be ahead of the partner's; absent: not at all. */
  readonly ahead?: () => Millis;
  /** The wall clock is held against the record and the partner's, which may differ by so much; absent: it is believed. */
  readonly maxSkew?: Millis;
}

export interface Meddling {
  readonly opened?: (state: Opened & { ok: true }) => Opened & { ok: true };
  readonly ports?: (ports: ControlPorts) => ControlPorts;
  readonly sources?: (sources: ControlSources) => ControlSources;
}

/** Start offsets are derived from it. */
export const SITE_KEY = Buffer.alloc(32, 7);
const log = pino({ level: "silent" });

const TAKEN: PostAnswer = { kind: "answered", status: 201, words: "", retryAfter: null };

const asRead = (answer: Asked): Fetched => (answer.kind === "gone" ? { ...answer, kind: "read" } : answer);

/** As in app.ts, but for the parties that are scripted. */
export function wired(setup: DepotSetup, world: World) {
  const { directory, chargers, vehicles, control: settings, pollEvery, random, publishesStates } = setup;
  const { floor, monotonic, meddle = {}, maxSkew } = world;
  const opened = openState(directory, {
    now: world.now,
    monotonic,
    random: () => SITE_KEY,
    keys: { site: null, proof: null },
    log,
  });
  if (!opened.ok) throw new Error(opened.reason);
  const {
    store,
    storedState: remembered,
    epoch,
    siteKey,
    assertAll: unsure,
  } = meddle.opened?.(opened) ?? opened;
  store.onCommitted = world.recorded;
  const nobody = { charger: null, vehicle: null, event: null, command: null };
  const note = (words: string): void =>
    store.write([{ kind: "audit", entry: { at: now(), kind: "daemon", ...nobody, words, facts: null } }]);
  const read = () => ({ wall: world.now(), monotonic: monotonic() });
  const belief =
    maxSkew === undefined ? null : believing({ read, recorded: remembered.recordedAt, maxSkew, note });
  const now = belief?.now ?? world.now;
  const zone = setup.zone ?? "UTC";
  const partner = world.partner(now);

  const depot = new ControlState({
    chargers,
    vehicles,
    settings,
    siteKey,
    epoch,
    archive: store.events,
    wallClock: wallClock(zone, now),
    assertAll: unsure,
  });
  store.write(restoreState(depot, remembered, now()));
  recallWrites(depot, (charger, since) => store.writes(charger, since), now());
  store.write(endOutagesOfLastRun(depot, store.openOutages(), monotonic(), now()));
  note("setpointd started");

  const charger$ = new Subject<ChargerMessage>();
  const broker$ = new Subject<boolean>();
  const hint$ = new Subject<Hint>();
  const webhook$ = new Subject<Arrival>();
  const freed$ = new Subject<Freeing>();
  const handedBack$ = new Subject<ChargerId>();
  const told$ = new Subject<Command>();
  const changed$ = new Subject<void>();
  const settled = (delivery: Delivery): void => {
    partner.settled(delivery);
    changed$.next();
  };
  const heard = (answer: Asked): Fetched => {
    belief?.heard(answer);
    return asRead(answer);
  };
  const { fetched$, polled$ } = partnerSources(
    depot,
    {
      monotonic,
      random,
      list: async () => heard(await partner.list()),
      event: async (id) => heard(await partner.event(id)),
      ask: (ids) => hint$.next(ids),
      settled: (delivery, { ok }) => (ok ? settled(delivery) : undefined),
    },
    hint$,
    pollEvery,
  );
  const honest: ControlPorts = {
    now,
    random,
    write: (changes) => store.write(changes),
    writeUntilStored: (changes) => store.writeUntilStored(changes),
    durable: () => store.durable(),
    stored: (scope) => store.stored(scope),
    send: async (command, lease, before) => {
      const sent = await floor.send(command, lease, before);
      if (sent.ok) told$.next(command);
      return sent;
    },
    publishState: (charger, payload) => floor.publishState(charger, payload),
    isLinked: () => floor.isUp ?? true,
    ask: (ids) => hint$.next(ids),
    monotonic,
    started: () => {},
    evaluated: world.looked,
    warn: world.warn,
  };
  const ports = meddle.ports?.(honest) ?? honest;
  const startsAllowed$ =
    belief?.startsAllowed(fetched$, () => {
      depot.blockStarts("clock doubted");
      hint$.next("list");
    }) ?? afterFirstFetch(fetched$);
  const brokerUp$ = broker$.pipe(
    filter(Boolean),
    map(() => ""),
  );
  const sources: ControlSources = {
    webhook$,
    polled$,
    charger$,
    brokerUp$,
    startsAllowed$,
    freed$,
    unlocked$: handedBack$,
  };
  const clockAgrees = (): boolean => world.clockAgrees?.() ?? true;
  const controlled$ = control(depot, meddle.sources?.(sources) ?? sources, ports);
  const reports =
    setup.report === undefined
      ? null
      : wiredReports(
          setup.report,
          { depot, store, remembered },
          { charger$, command$: told$, changed$, brokerUp$ },
          { ...ports, zone, clockAgrees, ahead: () => world.ahead?.() ?? millis(0) },
          async (body) => (await partner.post?.(body)) ?? TAKEN,
        );
  const alarms = new RetentionAlarms();
  const pruned$ =
    setup.retention === undefined
      ? []
      : retention(depot, setup.retention, {
          ...ports,
          alarms,
          clockAgrees,
          recordRows: () => store.head().seq - (store.audit({ limit: 1 })[0]?.seq ?? 0) + 1,
          oldRows: (query) => store.oldRows(query),
          oldReports: (before, most) => store.oldReports(before, most),
          reportedOn: () => reports?.reportedOn() ?? new Set(),
        });
  const flow = merge(
    controlled$,
    publishesStates ? states(depot, ports) : [],
    pruned$,
    reports?.report$ ?? [],
  ).subscribe();
  const receiveBody = receive({
    dialect: aDialect(),
    scheme: { kind: "bearer", secrets: () => ["s"] },
    now,
    monotonic,
    hint: (ask) => hint$.next(ask),
    ingest: (delivery) => {
      const { promise, resolve } = Promise.withResolvers<Parameters<Arrival["settle"]>[0]>();
      webhook$.next({
        delivery,
        settle: (answer) => {
          if (answer.ok) settled(delivery);
          resolve(answer);
        },
      });
      return promise;
    },
  });
  return {
    now,
    store,
    depot,
    ports,
    flow,
    reports,
    charger$,
    broker$,
    freed$,
    handedBack$,
    hint$,
    receive: receiveBody,
  };
}
