import { randomBytes } from "node:crypto";
import { join } from "node:path";

import type { Logger } from "pino";
import { merge, Subject, tap } from "rxjs";

import { addressOf, credentialsOf } from "./chargers/address.ts";
import { EmbeddedBroker } from "./chargers/embeddedBroker.ts";
import { Fleet, type FleetBroker } from "./chargers/fleet.ts";
import type { Config } from "./config/schema.ts";
import type { Json } from "./core/audit.ts";
import type { Delivery } from "./core/delivery.ts";
import { inWords } from "./core/control/setpoint.ts";
import { Depot } from "./core/depot.ts";
import { attempted, freshHealth } from "./core/partnerHealth.ts";
import type { ChargerMessage } from "./core/site/telemetry.ts";
import { type ChargerId, chargerId, type Instant, instant, iso, millis } from "./core/units.ts";
import { control, states } from "./flow/control.ts";
import type { Hint } from "./flow/polling.ts";
import type { Arrival, ControlPorts, Fetched, TakeAnswer } from "./flow/ports.ts";
import { afterClockAgrees, afterFirstFetch, partnerSources } from "./flow/sources.ts";
import { limited, standDown } from "./flow/stop.ts";
import { ControlSocket } from "./operator/controlSocket.ts";
import { fitness, type Health } from "./operator/fitness.ts";
import { Metrics } from "./operator/metrics.ts";
import { OperatorListener } from "./operator/server.ts";
import { chargersView, depotGauges, eventsView, statusView, vehiclesView } from "./operator/views.ts";
import { openState } from "./store/open.ts";
import { VtnClient } from "./vtn/client.ts";
import type { Fetched as Asked } from "./vtn/fetched.ts";
import { TokenSource } from "./vtn/token.ts";
import { WebhookListener } from "./vtn/webhook.ts";
import { logRow } from "./actionLog.ts";
import { wallClock } from "./wallClock.ts";

/** Where time and chance come from. */
export interface Surroundings {
  readonly now: () => Instant;
  /** Milliseconds that never jump. */
  readonly monotonic: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  readonly randomBytes: (count: number) => Buffer;
  readonly log: Logger;
}

export type Started =
  | { readonly ok: true; readonly app: App }
  | { readonly ok: false; readonly reason: string };

/** A running daemon. Disposing it stops it as `control.onStop` says. */
interface App extends AsyncDisposable {
  /** Null: no webhook is configured. */
  readonly webhookPort: number | null;
  readonly operatorPort: number;
  /** Null: the broker is elsewhere. */
  readonly brokerPort: number | null;
  /** Tries whether it is alive: a commit, a fresh look. For the watchdog. */
  readonly health: () => Health;
}

/** The machine's own clock and chance. */
export const surroundings = (log: Logger): Surroundings => ({
  now: () => instant(Date.now()),
  monotonic: () => performance.now(),
  random: Math.random,
  randomBytes,
  log,
});

/** The whole daemon, wired in a straight line; what was started last stops first. */
export async function startApp(config: Config, world: Surroundings): Promise<Started> {
  const { now, monotonic, random, log } = world;
  await using stack = new AsyncDisposableStack();

  const opened = openState(config.state, { now, random: world.randomBytes, log });
  if (!opened.ok) return opened;
  const { store, remembered, epoch, siteKey, setAside } = opened;
  stack.use(store);
  const note = (words: string, facts: Json = null): void => store.write([daemonRow(now(), words, facts)]);

  const clock = wallClock(config.site.timezone, now);
  const depot = new Depot({
    chargers: config.chargers,
    vehicles: config.vehicles,
    settings: config.control,
    siteKey,
    epoch,
    wallClock: clock,
    unsure: setAside !== null,
  });
  const metrics = new Metrics({
    ...depotGauges(depot),
    brokerUp: () => fleet.connected,
    partnerUp: () => partner.everAnswered && partner.failures === 0,
    partnerSilence: () => (now() - partner.answeredAt) / 1000,
    tokenAge: () => {
      const age = tokens.age();
      return age === null ? null : age / 1000;
    },
    stateBytes: () => store.stats().bytes,
  });
  store.onCommitted = (rows) => {
    metrics.committed(store.stats().lastCommitMs / 1000, rows);
    for (const row of rows) logRow(log, row);
  };
  depot.restore(remembered, now());
  note(`setpointd started for site ${config.site.id}, mode ${config.control.mode}, epoch ${epoch}`, {
    epoch,
  });
  // Started without a battery-backed clock, say: what the plan means at such a time is anyone's guess.
  const clockIsBehind = remembered.lookedAt !== null && now() < remembered.lookedAt;
  if (clockIsBehind) {
    const words =
      "the clock of this machine is behind our last record: no new start until the partner's clock agrees, or for 5 min";
    log.error(words);
    note(words);
  }
  for (const { command } of remembered.commands) {
    if (!depot.chargers.has(command.charger) && command.desired.kind !== "release") {
      log.warn(
        { charger: command.charger },
        "a charger left the configuration while it was limited: free it by hand",
      );
    }
  }

  const brokers = new Map<string, FleetBroker>();
  let brokerPort: number | null = null;
  for (const [name, broker] of [["", config.mqtt] as const, ...config.brokers]) {
    const { reach, prefix } = broker;
    const embedded =
      reach.kind === "embedded"
        ? stack.use(await EmbeddedBroker.listen({ ...reach.listen, credentials: credentialsOf(broker), log }))
        : null;
    if (name === "") brokerPort = embedded?.port ?? null;
    brokers.set(name, { prefix, address: addressOf(broker, embedded?.port ?? null) });
  }
  const charger$ = new Subject<ChargerMessage>();
  const brokerUp$ = new Subject<string>();
  const fleet = stack.use(
    new Fleet({
      site: config.site.id,
      chargers: config.chargers,
      brokers,
      now,
      random,
      log,
      onMessage: (message) => charger$.next(message),
      onBroker: (name, up) => (up ? brokerUp$.next(name) : undefined),
    }),
  );

  const { vtn } = config;
  const tokens = stack.use(new TokenSource({ ...vtn, now, monotonic, log }));
  const client = stack.use(new VtnClient({ ...vtn, tokens, now, monotonic, log }));
  let partner = freshHealth(now());
  const clockAgrees$ = new Subject<void>();
  const heard = (answer: Asked): Fetched => {
    const attempt =
      answer.kind === "failed"
        ? ({ ok: false, reason: answer.reason } as const)
        : ({ ok: true, skew: answer.skew } as const);
    const { health, say } = attempted(partner, attempt, now(), {
      staleAfter: vtn.staleAfter,
      maxSkew: config.clock.maxSkew,
    });
    partner = health;
    for (const { level, words } of say) log[level](words);
    if (attempt.ok && attempt.skew !== null && Math.abs(attempt.skew) <= config.clock.maxSkew)
      clockAgrees$.next();
    return answer.kind === "gone" ? { ...answer, kind: "read" } : answer;
  };

  const settled = (delivery: Delivery, answer: TakeAnswer): void => {
    if (!answer.ok) return;
    client.settled(delivery);
    metrics.delivered(delivery.source, answer.taken);
  };

  const hint$ = new Subject<Hint>();
  const { fetched$, polled$ } = partnerSources(
    depot,
    {
      now,
      random,
      list: async () => heard(await client.list()),
      event: async (id) => heard(await client.event(id)),
      ask: (ids) => hint$.next(ids),
      settled,
    },
    hint$,
    vtn.pollEvery,
  );
  const webhook$ = new Subject<Arrival>();
  const freed$ = new Subject<readonly ChargerId[]>();

  let lookedAt: Instant | null = null;
  let lookedTick: number | null = null;
  const ports: ControlPorts = {
    now,
    monotonic: () => millis(monotonic()),
    random,
    write: (changes) => store.write(changes),
    durable: () => store.durable(),
    remembered: () => store.remembered(),
    send: async (command, lease) => {
      const began = monotonic();
      const sent = await fleet.send(command, lease);
      metrics.published(sent, (monotonic() - began) / 1000);
      return sent;
    },
    publishState: (charger, payload) => fleet.publishState(charger, payload),
    ask: (ids) => hint$.next(ids),
    started: (lateBy) => metrics.startedLate(lateBy / 1000),
    looked: () => {
      lookedAt = now();
      lookedTick = monotonic();
    },
    warn: (words) => log.warn(words),
  };

  stack.defer(() => standDown(depot, ports, config.control.onStop, log));
  const flow = merge(
    control(
      depot,
      {
        webhook$,
        polled$,
        charger$,
        brokerUp$,
        startsAllowed$: clockIsBehind
          ? afterClockAgrees(clockAgrees$).pipe(
              tap(() => note("the clock of this machine is believed again: new starts may happen")),
            )
          : afterFirstFetch(fetched$),
        freed$,
      },
      ports,
    ),
    states(depot, ports),
  ).subscribe({ error: fatal });
  stack.defer(() => flow.unsubscribe());

  let webhook: WebhookListener | null = null;
  if (config.webhook !== null) {
    const { listen, path, trustProxy, tls, auth } = config.webhook;
    webhook = stack.use(
      await WebhookListener.start({
        ...listen,
        path,
        trustProxy,
        tls: tls === null ? null : { cert: tls.cert(), key: tls.key() },
        scheme: auth,
        now,
        monotonic,
        log,
        hint: (ask) => hint$.next(ask),
        take: (delivery) => {
          const { promise, resolve } = Promise.withResolvers<TakeAnswer>();
          webhook$.next({
            delivery,
            settle: (answer) => {
              settled(delivery, answer);
              resolve(answer);
            },
          });
          return promise;
        },
      }),
    );
  }

  let listening = false;
  const operator = stack.use(
    await OperatorListener.start(config.operator.listen, {
      ready: () => listening && lookedAt !== null,
      status: () =>
        statusView(depot, now(), {
          site: config.site.id,
          epoch,
          ready: lookedAt !== null,
          lookedAt,
          partner,
          broker: fleet.connected,
          store: { ...store.stats() },
          quarantine: store.quarantine(20).map((row) => ({ ...row, at: iso(row.at) })),
        }),
      events: () => eventsView(depot, now()),
      chargers: () => chargersView(depot, now()),
      vehicles: () => vehiclesView(depot, now()),
      audit: (query) => store.audit(query).map((row) => ({ ...row, at: iso(row.at) })),
      metrics,
    }),
  );
  listening = true;

  const socket = await ControlSocket.start(join(config.state, "control.sock"), {
    audit: (query) => store.audit(query).map((row) => ({ ...row, at: iso(row.at) })),
    verify: () => ({ ...store.verify() }),
    limited: () =>
      limited(depot).map(({ command }) => ({ charger: command.charger, told: inWords(command.desired) })),
    release: async (id) => {
      if (id !== null && !depot.chargers.has(chargerId(id)))
        return { ok: false, words: `there is no charger ${id}` };
      const chargers = id === null ? [...depot.chargers.keys()] : [chargerId(id)];
      if (config.control.mode === "observe")
        return { ok: true, words: "observing: no command is published, a release neither" };
      const held = limited(depot).filter(({ command }) => chargers.includes(command.charger));
      freed$.next(chargers);
      const freed = held.map(({ command: { charger } }) =>
        depot.presenceOf(charger).online === false ? `${charger} (offline: when it is back)` : charger,
      );
      return {
        ok: true,
        words: freed.length === 0 ? "nothing was limited" : `freed ${freed.join(", ")}`,
      };
    },
  });
  if (typeof socket === "string")
    log.warn({ reason: socket }, "no control socket: release and audit need the daemon stopped");
  else stack.use(socket);

  log.info(
    { operator: operator.port, webhook: webhook?.port ?? null, broker: brokerPort },
    "setpointd is up",
  );
  const running = stack.move();
  return {
    ok: true,
    app: {
      webhookPort: webhook?.port ?? null,
      operatorPort: operator.port,
      brokerPort,
      health: () =>
        fitness({
          committed: store.beat(now()),
          readBack: () => store.audit({ limit: 1 }),
          sinceLook: lookedTick === null ? null : millis(monotonic() - lookedTick),
        }),
      [Symbol.asyncDispose]: () => running.disposeAsync(),
    },
  };
}

/** An error in the flow is a bug: the process ends, and a restart is safe by design. */
function fatal(cause: unknown): never {
  throw new Error("the control flow failed", { cause });
}

const daemonRow = (at: Instant, words: string, facts: Json) =>
  ({
    kind: "audit",
    entry: { at, kind: "daemon", charger: null, vehicle: null, event: null, command: null, words, facts },
  }) as const;
