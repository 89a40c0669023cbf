import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";

import { addressOf, credentialsOf, mqttClientId, type NamedBroker } from "../chargers/broker/address.ts";
import { connectionsFor, daemonAt, EmbeddedBroker } from "../chargers/broker/embedded.ts";
import { ChargerConnections } from "../chargers/connections.ts";
import { holdRequestTopic, siteRoot } from "../chargers/native/messages.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { isLoopback, urlHost } from "../config/fields/address.ts";
import type { Config } from "../config/schema.ts";
import type { BrokerConfig } from "../config/sections/mqtt.ts";
import type { Terms } from "../domain/leadership.ts";
import { instant, millis } from "../domain/units.ts";
import { controlSocket } from "../operator/controlSocket.ts";
import { SessionStore } from "../operator/http/access.ts";
import { type PageFiles, readPage } from "../operator/http/page.ts";
import { type ListenerOptions, OperatorListener } from "../operator/http/server.ts";
import type { OperatorViews } from "../operator/http/views.ts";
import { statusSocket } from "../operator/statusSocket.ts";
import { BelievedClock } from "../platform/clock.ts";
import { shipped } from "../platform/packageRoot.ts";
import { faultOf, isAwaited } from "../store/postgres/database.ts";
import { openState } from "../store/sqlite/open.ts";
import { VtnClient } from "../vtn/client.ts";
import { dialectOf } from "../vtn/dialects/choose.ts";
import type { Dialect } from "../vtn/dialects/dialect.ts";
import { PriceClient } from "../vtn/prices.ts";
import { ReportClient } from "../vtn/reports.ts";
import { TokenSource } from "../vtn/token.ts";
import { WebhookListener } from "../vtn/webhook.ts";
import type { ChargerOptions, ConnectedChargers, Edges, Machine, Partner, PartnerOptions } from "./edges.ts";
import { receiversOverHttp } from "./receivers.ts";
import { leadSite, pageAddress } from "./standIn.ts";
import { accountsIn } from "./stateFolder.ts";

/** Clocks and random source of this machine. */
export const realMachine = (log: Logger): Machine => ({
  now: () => instant(Date.now()),
  monotonic: () => millis(performance.now()),
  random: Math.random,
  randomBytes,
  log,
});

/** Parts of the process that a start of the site uses. They outlive it. */
interface ProcessParts {
  /** Aborted: the process stops, and waits for no lease. */
  readonly stopped?: AbortSignal;
  readonly terms?: Terms;
  readonly sessions?: SessionStore;
  /** True: a listener whose address this machine lacks is an error. */
  readonly isAddressNeeded?: boolean;
  /** Sets the reload of a stand-in. Null: it stands by no more. */
  readonly onReload?: (reload: (() => void) | null) => void;
}

/** Disk, network and sockets as the configuration names them. */
export function realEdges(
  config: Config,
  machine: Machine,
  profiles: ReadonlyMap<string, Profile> = new Map(),
  {
    stopped = new AbortController().signal,
    terms = { lost: 0 },
    sessions,
    isAddressNeeded = false,
    onReload = () => {},
  }: ProcessParts = {},
): Edges {
  const { now, monotonic, log } = machine;
  const { webhook } = config;
  const dialect = dialectOf(config);
  const failures = {
    passing: passingIn(config),
    onError: (error: unknown) => log.error({ err: error }, "a request of the command line failed"),
  };
  return {
    ...machine,
    openStore: async () =>
      config.database !== null
        ? leadSite(config, config.database, dialect, machine, {
            stopped,
            terms,
            operator: operatorListener,
            onReload,
          })
        : openState(config.state, {
            now,
            monotonic,
            random: machine.randomBytes,
            keys: config.keys,
            log,
            // Chargers whose event ends are released although nothing can be stored.
            onFull: "open",
          }),
    clock: (recorded, onDoubt) =>
      new BelievedClock(() => ({ wall: now(), monotonic: monotonic() }), recorded, onDoubt),
    partner: (options) => partnerOverHttp(config, dialect, machine, options),
    chargers: (options) => chargersOverMqtt(config, profiles, machine, isAddressNeeded, options),
    webhook:
      webhook === null
        ? null
        : (options) =>
            WebhookListener.start({
              ...webhook.listen,
              path: webhook.path,
              trustProxy: webhook.trustProxy,
              scheme: webhook.auth,
              dialect,
              monotonic,
              log,
              isAddressNeeded,
              ...options,
            }),
    operator: (views, options) =>
      operatorListener(config, machine, views, {
        ...options,
        isAddressNeeded,
        sessions: sessions ?? new SessionStore(),
      }),
    page: (port) => pageAddress(config.operator, port, hostname()),
    receivers: () => receiversOverHttp(config.site.id, config.receivers, now),
    controlSocket: (api) => controlSocket(join(config.state, "control.sock"), api, failures),
    statusSocket: (status) => statusSocket(config.statusSocket, status, failures),
  };
}

/** Reason of an error of the database that may pass, or that a person ends. Null: a bug. */
const passingIn =
  ({ database }: Pick<Config, "database">) =>
  (error: unknown): string | null =>
    database !== null && isAwaited(error) ? faultOf(error).reason : null;

/** The listener for people on site. */
export async function operatorListener(
  { operator, state, database }: Config,
  { monotonic, log }: Machine,
  views: Promise<OperatorViews>,
  options: Pick<ListenerOptions, "now" | "record" | "fleet" | "sessions" | "isAddressNeeded">,
  pageOf: (built: PageFiles | null) => PageFiles | null = (built) => built,
): Promise<OperatorListener> {
  const { listen, hosts, tls, trustProxy } = operator;
  const accounts = operator.access === "open" ? null : accountsIn(state);
  const fault = accounts?.fault ?? null;
  if (fault !== null) log.error({ reason: fault }, "no user can sign in");
  const listener = await OperatorListener.start(
    {
      ...options,
      ...listen,
      hosts: [...hosts, hostname()],
      tls: tls?.current() ?? null,
      trustProxy,
      page: pageOf(readPage(shipped("dist/page"))),
      access:
        accounts === null
          ? { kind: "open" }
          : { kind: "login", accounts, isSecure: tls !== null || trustProxy !== false },
      monotonic,
      onBinding: (reason) => {
        if (reason === null) log.info(listen, "the operator's listener listens now");
        else
          log.error({ reason }, "no API and no page: this machine lacks their address, which is tried again");
      },
      onError: (error) => log.error({ err: error }, "a request to the operator's listener failed"),
      passing: passingIn({ database }),
    },
    views,
  );
  if (listener.firstLink !== null) {
    const name = hosts[0] ?? (isLoopback(listen.host) ? urlHost(listen.host) : hostname());
    // A reverse proxy has a port of its own.
    const authority = trustProxy === false ? `${name}:${listener.port}` : name;
    const scheme = tls === null && trustProxy === false ? "http" : "https";
    log.warn(
      `no user yet: open ${scheme}://${authority}${listener.firstLink} within one hour to add the first, or use setpointd user add`,
    );
  }
  return listener;
}

/** The partner's service as the configuration names it. */
export function partnerOverHttp(
  { vtn }: Config,
  dialect: Dialect,
  { monotonic, random, log }: Machine,
  { now, onNearlySpent }: PartnerOptions,
): Partner {
  const stack = new AsyncDisposableStack();
  const { baseUrl } = vtn;
  const tokens = stack.use(new TokenSource({ ...vtn, scope: dialect.scope, now, monotonic, random, log }));
  const client = stack.use(new VtnClient({ ...vtn, dialect, tokens, now, monotonic, log }));
  const shared = { baseUrl, dialect, tokens, now, monotonic, mayAsk: client.mayAskMore };
  const prices = stack.use(new PriceClient(shared));
  const reports = stack.use(new ReportClient({ ...shared, onNearlySpent }));
  return {
    list: () => client.list(),
    event: (id) => client.event(id),
    settled: (delivery) => client.settled(delivery),
    endBackoff: () => tokens.endBackoff(),
    mayAskMore: client.mayAskMore,
    tokenAge: () => tokens.age(),
    tokenUntil: () => tokens.expiresAt(),
    prices,
    reports: {
      write: dialect.writeReport,
      post: (body) => reports.post(body),
      nearlySpent: () => reports.nearlySpent,
      close: () => reports[Symbol.asyncDispose](),
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/**
 * The address of a configured broker. An embedded one is started first, and stops with the stack. `daemon`: how this
 * process logs in there. Absent: as a verb. `isAddressNeeded`: see `EmbeddedBrokerOptions`.
 */
export async function reachBroker(
  broker: BrokerConfig,
  { site, chargers, operator }: Config,
  { log, monotonic, randomBytes: bytes }: Machine,
  stack: AsyncDisposableStack,
  daemon = daemonAt(`setpointd-${site.id}`, bytes),
  isAddressNeeded = true,
): Promise<{
  readonly broker: NamedBroker;
  /** Null: the broker is elsewhere. */
  readonly port: number | null;
}> {
  const { reach, prefix } = broker;
  if (reach.kind !== "embedded") return { broker: { prefix, address: addressOf(broker, null) }, port: null };
  const embedded = stack.use(
    await EmbeddedBroker.listen({
      ...reach.listen,
      credentials: credentialsOf(broker),
      daemon,
      root: siteRoot(prefix, site.id),
      shared: operator.mqttHolds ? [holdRequestTopic(prefix, site.id)] : [],
      mostConnections: connectionsFor(chargers.length),
      isAddressNeeded,
      monotonic,
      log,
    }),
  );
  const { port } = embedded;
  const address = addressOf(broker, { ...daemon, port, fault: () => embedded.fault });
  return { broker: { prefix, isEmbedded: true, address }, port };
}

async function chargersOverMqtt(
  config: Config,
  profiles: ReadonlyMap<string, Profile>,
  machine: Machine,
  isAddressNeeded: boolean,
  { siteKey, onHomeAssistant, ...options }: ChargerOptions,
): Promise<ConnectedChargers> {
  await using stack = new AsyncDisposableStack();
  const { site, chargers, homeAssistant } = config;
  const clientId = mqttClientId(site.id, siteKey);
  const daemon = daemonAt(clientId, machine.randomBytes);
  const brokers = new Map<string, NamedBroker>();
  let brokerPort: number | null = null;
  for (const [name, broker] of [["", config.mqtt] as const, ...config.brokers]) {
    const reached = await reachBroker(broker, config, machine, stack, daemon, isAddressNeeded);
    if (name === "") brokerPort = reached.port;
    brokers.set(name, reached.broker);
  }
  const connections = stack.use(
    new ChargerConnections({
      ...options,
      ...(homeAssistant.discovery
        ? { homeAssistant: { prefix: homeAssistant.prefix, onBirth: onHomeAssistant } }
        : {}),
      site: site.id,
      clientId,
      chargers,
      profiles,
      brokers,
      random: machine.random,
      log: machine.log,
    }),
  );
  const connected = stack.move();
  return { connections, profiles, brokerPort, [Symbol.asyncDispose]: () => connected.disposeAsync() };
}
