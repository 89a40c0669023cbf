import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";
import { merge, startWith, Subject, tap } from "rxjs";

import { addressOf, credentialsOf, mqttClientId, type NamedBroker } from "../chargers/broker/address.ts";
import { connectionsFor, daemonAt, EmbeddedBroker } from "../chargers/broker/embedded.ts";
import { ChargerConnections } from "../chargers/connections.ts";
import { siteRoot } from "../chargers/native/messages.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import type { Config } from "../config/schema.ts";
import { recallWrites } from "../control/decide/holdBack.ts";
import type { Hint } from "../control/ingest/pipeline.ts";
import { RequestedPolls } from "../control/ingest/pollRequest.ts";
import { endedByStart } from "../control/observe/recordSilence.ts";
import { control, partnerSources, startsAllowed, standstill } from "../control/pipeline.ts";
import type { Arrival, ControlPorts, Fetched, Freeing, IngestAnswer } from "../control/ports.ts";
import { restoreState } from "../control/recovery.ts";
import { states } from "../control/send/pipeline.ts";
import { ControlState } from "../control/state.ts";
import { standDown } from "../control/stop.ts";
import type { Json } from "../domain/audit.ts";
import type { Committed } from "../domain/changes.ts";
import { type Command, isToBeFreed } from "../domain/command.ts";
import type { Delivery } from "../domain/delivery.ts";
import type { ReportRecord } from "../domain/report.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { type ChargerId, type Instant, instant, iso, millis } from "../domain/units.ts";
import { ControlSocket, StatusSocket } from "../operator/controlSocket.ts";
import { OperatorListener } from "../operator/http/server.ts";
import { priceHorizons, pricesView } from "../operator/listViews.ts";
import { Metrics } from "../operator/metrics.ts";
import { countProblems, MANY_DROPS, problems, type ProblemSources } from "../operator/problems.ts";
import { chargersView, depotGauges, eventsView, statusView, vehiclesView } from "../operator/views.ts";
import { BelievedClock } from "../platform/clock.ts";
import { wallClock } from "../platform/localTime.ts";
import { daily } from "../platform/scheduling.ts";
import { fitness, type Health } from "../platform/systemd.ts";
import { reportedOn } from "../reporting/reportSchedule.ts";
import { RetentionAlarms, capsOf } from "../retention/caps.ts";
import { noteUse, retention } from "../retention/pipeline.ts";
import { openState } from "../store/sqlite/open.ts";
import { VtnClient, type Fetched as Asked } from "../vtn/client.ts";
import { TokenSource } from "../vtn/token.ts";
import { WebhookListener } from "../vtn/webhook.ts";
import { ActionLog } from "./actionLog.ts";
import { certificatesInUse } from "./certificates.ts";
import { DaemonCommissions } from "./commissions.ts";
import { controlApi } from "./controlApi.ts";
import { partnerReports, shownReports, storedSchedule } from "./partnerReports.ts";
import { asFetched, dialectOf, outages, PartnerWatch } from "./partnerWatch.ts";
import { configuredPrices, spotPrices } from "./spotPrices.ts";

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
  /** Reads certificates again. */
  readonly reload: () => void;
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
export async function startApp(
  config: Config,
  world: Surroundings,
  profiles: ReadonlyMap<string, Profile> = new Map(),
): Promise<Started> {
  const { monotonic, random, log } = world;
  await using stack = new AsyncDisposableStack();

  const opened = openState(config.state, {
    now: world.now,
    monotonic,
    random: world.randomBytes,
    keys: config.keys,
    log,
  });
  if (!opened.ok) return opened;
  const { store, storedState: remembered, epoch, siteKey, assertAll: unsure, isRestored } = opened;
  const actions = stack.use(new ActionLog(log));
  stack.use(store);
  const hint$ = new Subject<Hint>();
  const doubted$ = new Subject<void>();
  const time = new BelievedClock(
    () => ({ wall: world.now(), monotonic: millis(monotonic()) }),
    remembered.recordedAt,
    () => doubted$.next(),
  );
  const now = (): Instant => time.now();
  const note = (words: string, facts: Json = null): void => store.write([daemonRow(now(), words, facts)]);

  const clock = wallClock(config.site.timezone, now);
  const depot = new ControlState({
    chargers: config.chargers,
    vehicles: config.vehicles,
    settings: config.control,
    siteKey,
    epoch,
    archive: store.events,
    wallClock: clock,
    assertAll: unsure,
  });
  const board = configuredPrices(config, store);
  const desk = storedSchedule(config, remembered);
  const certificates = certificatesInUse(config, {
    now,
    renew: (pair) => webhook?.renew(pair) ?? null,
    note: (words, facts) => note(words, facts),
    log,
  });
  const metrics = new Metrics({
    ...depotGauges(depot),
    brokerUp: () => fleet.connected,
    partnerUp: () => partner.isUp,
    partnerSilence: () => (now() - partner.health.answeredAt) / 1000,
    tokenAge: () => {
      const age = tokens.age();
      return age === null ? null : age / 1000;
    },
    stateBytes: () => store.stats().bytes,
    certificateEnds: certificates.ends,
    priceHorizons: () => priceHorizons(board, now()),
    reportsWaiting: () => desk.outbox.size,
    problems: () => countProblems(problems(depot, problemSources(), now())),
  });
  store.onCommitted = (rows, tookMs) => {
    metrics.committed(tookMs / 1000, rows);
    actions.add(rows);
  };
  store.write(restoreState(depot, remembered, now()));
  recallWrites(depot, (charger, since) => store.writes(charger, since), now());
  // Before the row of the start: what is over by then is not ended by it once more.
  store.write(endedByStart(depot, store.openOutages(), millis(monotonic()), now()));
  const { aliveAt } = remembered;
  note(`setpointd started for site ${config.site.id}, mode ${config.control.mode}, epoch ${epoch}`, {
    epoch,
    ...(aliveAt === null ? {} : { outage: "setpointd", since: iso(aliveAt), over: true }),
  });
  if (isRestored)
    note(
      "this state was put back from a copy: what chargers were told since is not known, so each is told once what holds",
    );
  // The last row of a run that ends in order: without it the next start tells since when nothing ran to the minute.
  stack.defer(() => note("setpointd stopped"));
  const away = outages((changes) => store.write(changes), now, clock);
  const startedAt = now();
  const alarms = new RetentionAlarms();
  let clockDoubtedSince: Instant | null = null;
  const problemSources = (): ProblemSources => {
    const { failing } = store.stats();
    return {
      startedAt,
      partner: partner.health,
      maxSkew: config.clock.maxSkew,
      brokersAway: ["", ...config.brokers.keys()].flatMap((name) => {
        const since = away.awaySince(name === "" ? "broker" : `broker ${name}`);
        return since === null ? [] : [{ name, since, reason: fleet.troubleOf(name) }];
      }),
      brokersUnstable: ["", ...config.brokers.keys()].flatMap((name) => {
        const drops = fleet.recentDropsOf(name);
        return drops < MANY_DROPS ? [] : [{ name, drops }];
      }),
      isLinked: (charger) => fleet.isLinked(charger),
      failingCommits:
        failing === null ? null : { since: instant(now() - failing.forMs), reason: failing.reason },
      clockDoubtedSince,
      reportRequests: reports.client.nearlySpent,
      retention: alarms.open,
      refusedWebhooks: webhook?.refusedDeliveries() ?? null,
    };
  };
  for (const record of remembered.commands) {
    const { charger } = record.command;
    if (!depot.chargers.has(charger) && isToBeFreed(record)) {
      log.warn({ charger }, "a charger left the configuration while it was limited: free it by hand");
    }
  }

  const { vtn } = config;
  const dialect = dialectOf(config);
  const tokens = stack.use(new TokenSource({ ...vtn, scope: dialect.scope, now, monotonic, random, log }));
  const client = stack.use(new VtnClient({ ...vtn, dialect, tokens, now, monotonic, log }));
  const clockAgrees$ = new Subject<void>();
  const partner = new PartnerWatch({
    now,
    wall: world.now,
    monotonic,
    isClockDoubted: () => time.isDoubted,
    staleAfter: vtn.staleAfter,
    maxSkew: config.clock.maxSkew,
    wallClock: clock,
    away,
    log,
    onClockAgrees: () => clockAgrees$.next(),
  });
  // What our own stop has cut off tells nothing of the partner.
  const heard = (answer: Asked): Fetched => (flow.closed ? asFetched(answer) : partner.heard(answer));

  const polls = new RequestedPolls((request) => hint$.next(request));
  const settled = (delivery: Delivery, answer: IngestAnswer): void => {
    polls.settled(delivery, answer);
    if (!answer.ok) return;
    client.settled(delivery);
    changed$.next();
    metrics.delivered(delivery.source, answer.ingested);
  };

  const changed$ = new Subject<void>();
  const told$ = new Subject<Command>();
  const resend$ = new Subject<ReportRecord>();
  const { fetched$, polled$ } = partnerSources(
    depot,
    {
      monotonic: () => millis(monotonic()),
      random,
      list: async (isRequested) => {
        if (isRequested) tokens.endBackoff();
        return heard(await client.list());
      },
      event: async (id) => heard(await client.event(id)),
      ask: (ids) => hint$.next(ids),
      settled,
    },
    hint$,
    vtn.pollEvery,
  );
  const charger$ = new Subject<ChargerMessage>();
  const brokerUp$ = new Subject<string>();
  const webhook$ = new Subject<Arrival>();
  const freed$ = new Subject<Freeing>();
  const handedBack$ = new Subject<ChargerId>();

  let lookedAt: Instant | null = null;
  let lookedTick: number | null = null;
  const ports: ControlPorts = {
    now,
    monotonic: () => millis(monotonic()),
    random,
    write: (changes) => store.write(changes),
    writeUntilStored: (changes) => store.writeUntilStored(changes),
    durable: () => store.durable(),
    stored: (scope) => store.stored(scope),
    send: async (command, lease, before, isDoubted) => {
      const began = monotonic();
      const sent = await fleet.send(command, lease, before, isDoubted);
      metrics.published(command.charger, sent, (monotonic() - began) / 1000);
      if (sent.ok) told$.next(command);
      return sent;
    },
    publishState: (charger, payload) => fleet.publishState(charger, payload),
    isLinked: (charger) => fleet.isLinked(charger),
    ask: (ids) => hint$.next(ids),
    started: (lateBy) => metrics.startedLate(lateBy / 1000),
    evaluated: () => {
      lookedAt = now();
      lookedTick = monotonic();
    },
    warn: (words) => log.warn(words),
  };

  const health = (committed: Committed): Health =>
    fitness({
      committed,
      readBack: () => store.audit({ limit: 1 }),
      sinceEvaluation: lookedTick === null ? null : millis(monotonic() - lookedTick),
    });

  // A start that cannot have its addresses decides nothing and tells nobody anything: they are taken before anyone acts.
  await using listeners = new AsyncDisposableStack();
  const wired = Promise.withResolvers<void>();
  let webhook: WebhookListener | null = null;
  if (config.webhook !== null) {
    const { listen, path, trustProxy, auth } = config.webhook;
    webhook = listeners.use(
      await WebhookListener.start({
        ...listen,
        up: wired.promise,
        path,
        trustProxy,
        tls: certificates.served,
        onRefused: (reason) => metrics.webhookRefused(reason),
        scheme: auth,
        dialect,
        now,
        monotonic,
        log,
        hint: (ask) => hint$.next(ask),
        ingest: (delivery) => {
          const { promise, resolve } = Promise.withResolvers<IngestAnswer>();
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

  const status = (): Json =>
    statusView(depot, now(), {
      ...problemSources(),
      site: config.site.id,
      timezone: config.site.timezone,
      epoch,
      ready: lookedAt !== null,
      lookedAt,
      broker: fleet.connected,
      certificates: certificates.view(),
      webhookRefused: webhook === null ? null : { ...webhook.refused() },
      store: { ...store.stats() },
      quarantine: store.quarantine(20).map((row) => ({ ...row, at: iso(row.at) })),
    });

  const operatorAt = { ...config.operator.listen, hosts: [...config.operator.hosts, hostname()] };
  const operator = listeners.use(
    await OperatorListener.start(operatorAt, {
      up: wired.promise,
      ready: () => lookedAt !== null,
      health: () =>
        lookedTick === null
          ? { fit: true, words: "starting" }
          : // A commit is tried only where the last one failed: a monitor that asks each second must not wear the flash.
            health(store.stats().failing === null ? { ok: true } : store.beat(now())),
      status,
      events: () => eventsView(depot, now()),
      chargers: () => chargersView(depot, now()),
      vehicles: () => vehiclesView(depot, now()),
      audit: (query) => store.audit(query).map((row) => ({ ...row, at: iso(row.at) })),
      prices: () => pricesView(board),
      reports: () => shownReports(desk, store),
      metrics,
    }),
  );

  const clientId = mqttClientId(config.site.id, siteKey);
  const daemon = daemonAt(clientId, world.randomBytes);
  const brokers = new Map<string, NamedBroker>();
  let brokerPort: number | null = null;
  for (const [name, broker] of [["", config.mqtt] as const, ...config.brokers]) {
    const { reach, prefix } = broker;
    const embedded =
      reach.kind === "embedded"
        ? stack.use(
            await EmbeddedBroker.listen({
              ...reach.listen,
              credentials: credentialsOf(broker),
              daemon,
              root: siteRoot(prefix, config.site.id),
              mostConnections: connectionsFor(config.chargers.length),
              monotonic,
              log,
            }),
          )
        : null;
    if (name === "") brokerPort = embedded?.port ?? null;
    const inside = embedded === null ? null : { ...daemon, port: embedded.port };
    brokers.set(name, { prefix, address: addressOf(broker, inside) });
  }
  const fleet = stack.use(
    new ChargerConnections({
      site: config.site.id,
      clientId,
      chargers: config.chargers,
      profiles,
      brokers,
      observes: config.control.mode === "observe",
      now,
      random,
      log,
      onMessage: (message) => {
        charger$.next(message);
        commissions.hear(message);
      },
      onDiscard: (charger, why) => metrics.discarded(charger, why),
      onBroker: (name, up) => {
        const who = name === "" ? "broker" : (`broker ${name}` as const);
        if (up) {
          away.back(who);
          brokerUp$.next(name);
        } else away.gone(who, now());
      },
    }),
  );

  stack.defer(() => standDown(depot, ports, config.control.onStop, log));
  const flow = merge(
    control(
      depot,
      {
        webhook$,
        polled$,
        charger$,
        brokerUp$,
        startsAllowed$: startsAllowed(fetched$, {
          isDoubted: () => time.isDoubted,
          // Started without a battery-backed clock, say.
          doubted$: (time.isDoubted ? doubted$.pipe(startWith(undefined)) : doubted$).pipe(
            tap(() => {
              depot.blockStarts("clock doubted");
              clockDoubtedSince = now();
              const words =
                "the clock of this machine is behind our last record: no new start until the partner's clock agrees, or for 5 min";
              log.error({ clock: iso(world.now()), record: iso(now()) }, words);
              note(words, { outage: "clock", since: iso(now()) });
              hint$.next("list");
            }),
          ),
          agrees$: clockAgrees$,
          believe: () => {
            time.believe();
            clockDoubtedSince = null;
            note("the clock of this machine is believed again: new starts may happen", {
              outage: "clock",
              over: true,
            });
          },
        }),
        freed$,
        unlocked$: handedBack$,
      },
      ports,
    ),
    states(depot, ports),
    standstill(ports),
    daily(now).pipe(
      tap(() => {
        certificates.check();
        log.info(store.head(), "the record ends here today: with this line elsewhere, a cut shows");
      }),
    ),
    retention(depot, config.retention, {
      ...ports,
      alarms,
      clockAgrees: () => partner.clockAgrees,
      recordRows: () => store.head().seq - (store.audit({ limit: 1 })[0]?.seq ?? 0) + 1,
      oldRows: (query) => store.oldRows(query),
      oldReports: (before, most) => store.oldReports(before, most),
      reportedOn: () => reportedOn(desk, depot.known),
    }),
  ).subscribe({ error: fatal });
  stack.defer(() => flow.unsubscribe());
  if (remembered.edited.length > 0) hint$.next(remembered.edited.map(({ id }) => id));

  const prices = spotPrices(board, config, brokerUp$, {
    ...world,
    now,
    dialect,
    tokens,
    client,
    fleet,
    store,
    metrics,
    clock,
  });
  stack.use(prices.client);
  // Apart from control, which must not end with them.
  const showing = prices.price$.subscribe({
    error: (error) => log.error({ err: error }, "prices are not fetched any more"),
  });
  stack.defer(() => showing.unsubscribe());

  const reports = partnerReports(
    desk,
    depot,
    config,
    { charger$, command$: told$, changed$, brokerUp$, resend$ },
    {
      ...world,
      now,
      dialect,
      tokens,
      client,
      store,
      metrics,
      fleet,
      clockAgrees: () => partner.clockAgrees,
      ahead: () => partner.ahead(),
      clock,
      onKept: ({ rows, leftEarly }) =>
        noteUse({ ...ports, alarms }, "readings", rows / capsOf(config.retention).readings, leftEarly),
      onNearlySpent: ({ made, most }) =>
        note(`reports made ${made} of at most ${most} requests within the last hour: beyond that they wait`, {
          warning: "reports",
        }),
    },
  );
  stack.use(reports.client);
  // After control, which settles who is on a charger.
  const reporting = reports.report$.subscribe({
    error: (error) => log.error({ err: error }, "reports are not made any more"),
  });
  stack.defer(() => reporting.unsubscribe());

  const commissions = new DaemonCommissions({
    ...ports,
    depot,
    profiles,
    settings: config.control.verdict,
    fleet,
    handBack: (charger) => handedBack$.next(charger),
  });

  // They stop before the flow does, which would leave what they take in unanswered.
  stack.use(listeners.move());
  wired.resolve();

  const door = controlApi({
    config,
    store,
    siteKey,
    state: depot,
    board,
    reportSchedule: desk,
    reports,
    commissions,
    ports,
    monotonic,
    isReady: () => lookedAt !== null,
    tryBrokers: () => fleet.tryBrokers(),
    free: (freeing) => freed$.next(freeing),
    poll: async () =>
      client.mayAskMore()
        ? polls.request()
        : {
            kind: "failed",
            asked: false,
            reason: "our own limit of requests in an hour is spent",
            retryAfter: null,
          },
    resend: (record) => resend$.next(record),
  });
  const socket = await ControlSocket.start(join(config.state, "control.sock"), door);
  if (typeof socket === "string")
    log.warn({ reason: socket }, "no control socket: release and audit need the daemon stopped");
  else stack.use(socket);
  const statusSocket = await StatusSocket.start(config.statusSocket, status);
  if (typeof statusSocket === "string")
    log.warn({ reason: statusSocket }, "no status socket: setpointd status has no answer");
  else stack.use(statusSocket);
  // First of all that stops: a charger under trial is left as it was, and whoever tries it hears of it.
  stack.use(commissions);

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
      reload: () => certificates.reload(),
      health: () => health(store.beat(now())),
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
