import pino from "pino";
import { filter, map, merge, Subject } from "rxjs";

import type { ControlConfig } from "../../src/config/control.ts";
import { Depot } from "../../src/core/depot.ts";
import type { Charger } from "../../src/core/site/charger.ts";
import type { ChargerMessage } from "../../src/core/site/telemetry.ts";
import type { Vehicle } from "../../src/core/site/vehicle.ts";
import { type ChargerId, type Millis, millis } from "../../src/core/units.ts";
import { control, states } from "../../src/flow/control.ts";
import type { Hint } from "../../src/flow/polling.ts";
import type { Arrival, ControlPorts, Fetched } from "../../src/flow/ports.ts";
import { afterFirstFetch, partnerSources } from "../../src/flow/sources.ts";
import { openState } from "../../src/store/open.ts";
import type { Fetched as Asked } from "../../src/vtn/fetched.ts";
import { receive } from "../../src/vtn/reception.ts";
import { wallClock } from "../../src/wallClock.ts";
import type { ScriptedFloor } from "./scriptedFloor.ts";
import type { ScriptedPartner } from "./scriptedPartner.ts";
import { virtualNow } from "./virtualTime.ts";

export interface DepotSetup {
  readonly directory: string;
  readonly chargers: readonly Charger[];
  readonly vehicles: readonly Vehicle[];
  readonly control: ControlConfig;
  readonly pollEvery: Millis;
  readonly random: () => number;
  readonly partner: ScriptedPartner;
  readonly publishesStates: boolean;
  /** While full, every commit fails. */
  readonly disk: { full: boolean };
}

/** What a run of the daemon tells the test. */
interface World {
  readonly floor: ScriptedFloor;
  readonly looked: () => void;
  readonly warn: (words: string) => void;
  /** A row about this command is committed. */
  readonly recorded: (command: string) => void;
}

/** Start offsets are derived from it. */
export const SITE_KEY = Buffer.alloc(32, 7);
const log = pino({ level: "silent" });

const asRead = (answer: Asked): Fetched => (answer.kind === "gone" ? { ...answer, kind: "read" } : answer);

/** As in app.ts, but for the parties that are scripted. */
export function wired(setup: DepotSetup, world: World) {
  const {
    directory,
    chargers,
    vehicles,
    control: settings,
    pollEvery,
    random,
    publishesStates,
    partner,
  } = setup;
  const { floor } = world;
  const now = virtualNow;
  const opened = openState(directory, { now, random: () => SITE_KEY, log });
  if (!opened.ok) throw new Error(opened.reason);
  const { store, remembered, epoch, siteKey, setAside } = opened;
  store.onCommitted = (rows) => {
    for (const { command } of rows) if (command !== null) world.recorded(command);
  };

  const depot = new Depot({
    chargers,
    vehicles,
    settings,
    siteKey,
    epoch,
    wallClock: wallClock("UTC", now),
    unsure: setAside !== null,
  });
  depot.restore(remembered, now());
  const words = "setpointd started";
  const nobody = { charger: null, vehicle: null, event: null, command: null };
  store.write([{ kind: "audit", entry: { at: now(), kind: "daemon", ...nobody, words, facts: null } }]);

  const charger$ = new Subject<ChargerMessage>();
  const broker$ = new Subject<boolean>();
  const hint$ = new Subject<Hint>();
  const webhook$ = new Subject<Arrival>();
  const freed$ = new Subject<readonly ChargerId[]>();
  const { fetched$, polled$ } = partnerSources(
    depot,
    {
      now,
      random,
      list: async () => asRead(await partner.list()),
      event: async (id) => asRead(await partner.event(id)),
      ask: (ids) => hint$.next(ids),
      settled: (delivery, { ok }) => (ok ? partner.settled(delivery) : undefined),
    },
    hint$,
    pollEvery,
  );
  const ports: ControlPorts = {
    now,
    random,
    write: (changes) => store.write(changes),
    durable: () => store.durable(),
    remembered: () => store.remembered(),
    send: (command, lease) => floor.send(command, lease),
    publishState: (charger, payload) => floor.publishState(charger, payload),
    ask: (ids) => hint$.next(ids),
    monotonic: () => millis(performance.now()),
    started: () => {},
    looked: world.looked,
    warn: world.warn,
  };
  const startsAllowed$ = afterFirstFetch(fetched$);
  const brokerUp$ = broker$.pipe(
    filter(Boolean),
    map(() => ""),
  );
  const controlled$ = control(
    depot,
    { webhook$, polled$, charger$, brokerUp$, startsAllowed$, freed$ },
    ports,
  );
  const flow = merge(controlled$, publishesStates ? states(depot, ports) : []).subscribe();
  const receiveBody = receive({
    scheme: { kind: "bearer", secrets: () => ["s"] },
    now,
    monotonic: now,
    hint: (ask) => hint$.next(ask),
    take: (delivery) => {
      const { promise, resolve } = Promise.withResolvers<Parameters<Arrival["settle"]>[0]>();
      webhook$.next({
        delivery,
        settle: (answer) => {
          if (answer.ok) partner.settled(delivery);
          resolve(answer);
        },
      });
      return promise;
    },
  });
  return { store, depot, ports, flow, charger$, broker$, freed$, hint$, receive: receiveBody };
}
