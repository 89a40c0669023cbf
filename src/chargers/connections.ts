import { isNative } from "../domain/charger.ts";
import type { Command, Sent } from "../domain/command.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import type { ChargerId, Millis } from "../domain/units.ts";
import { sanitizeForLog } from "../platform/text.ts";
import { type ConnectionOptions, type Discarded, type NamedBroker, sectionOf } from "./broker/address.ts";
import { Heartbeats } from "./broker/heartbeats.ts";
import { FloodGate } from "./broker/flowControl.ts";
import { BrokerSession } from "./broker/session.ts";
import { siteMessages, type TopicRouter } from "./broker/topicRouter.ts";
import { type BrokerTrial, evidenceAt, tryBroker } from "./broker/tryBroker.ts";
import {
  type ConnectedCharger,
  chargerRouter,
  connectedCharger,
  instancesOf,
  NativeDriver,
  rebootMessages,
  shareKeepalive,
  stateTopic,
} from "./connectedCharger.ts";
import { type DriverPorts, NO_BROKER, noDriver } from "./driver.ts";
import { gatewayOnlineTopic, nativeFilters, siteTopic } from "./native/messages.ts";
import { commandingOf, keepalivesOf } from "./profile/publishes.ts";

/** Topics of no charger that are logged until the end of the run. More are an attack. */
const MOST_UNKNOWN = 10;
/** Expiry of a reboot at the broker, s. */
const REBOOT_HOLDS = 10;

/** All chargers of the site, with their brokers. Nothing is queued: what fails is sent again by the next evaluation. */
export class ChargerConnections implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  readonly #sessions = new Map<string, BrokerSession>();
  readonly #chargers = new Map<ChargerId, ConnectedCharger>();
  readonly #heartbeats = new Map<string, Heartbeats>();
  readonly #discarded = new Map<ChargerId, number>();
  /** Topics of no charger that were logged. */
  readonly #unknown = new Set<string>();
  readonly #stack = new DisposableStack();

  /** Connects at once. `onBroker` is called when commands can be sent. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    for (const [name, broker] of options.brokers) this.#connect(name, broker);
  }

  /** True: all brokers are connected. */
  get connected(): boolean {
    return [...this.#sessions.values()].every((session) => session.connected);
  }

  /** True: the broker of this charger is connected. */
  isLinked(charger: ChargerId): boolean {
    const connected = this.#chargers.get(charger);
    return connected !== undefined && (this.#sessions.get(connected.place.broker)?.connected ?? false);
  }

  /** See `BrokerSession.window`. */
  windowOf = (broker: string): number => this.#sessions.get(broker)?.window ?? 0;

  firstAttempt = (broker: string) => this.#sessions.get(broker)?.firstAttempt;

  /** Reason why the broker of this name is not connected, as far as known. */
  troubleOf(name: string): string | null {
    return this.#sessions.get(name)?.trouble ?? null;
  }

  /** Tries login, subscriptions and publishes at each broker, without commanding a charger. */
  tryBrokers(): Promise<readonly BrokerTrial[]> {
    const { brokers } = this.#options;
    return Promise.all(
      [...this.#sessions].flatMap(([name, session]) => {
        const broker = brokers.get(name);
        return broker === undefined ? [] : [tryBroker(name, broker, session, this.#options)];
      }),
    );
  }

  /** Connections to the broker of this name that were lost within the last ten minutes. */
  recentDropsOf(name: string): number {
    return this.#sessions.get(name)?.recentDrops ?? 0;
  }

  /** Messages of this charger that were discarded since the start. */
  discardedFrom(charger: ChargerId): number {
    return this.#discarded.get(charger) ?? 0;
  }

  /**
   * Publishes a command that is valid for `lease` at most. Ok: the broker has all of it; the charger may still refuse.
   * `before`: the previous command, null: none. `isDoubted`: the charger was measured not to follow this command.
   * A command past its `until` is refused, now and again at its slot in the window.
   */
  async send(
    command: Command,
    lease: Millis,
    before: Desired | null = null,
    isDoubted = false,
  ): Promise<Sent> {
    const connected = this.#chargers.get(command.charger);
    return connected?.driver.send(command, lease, before, isDoubted) ?? noDriver(command.charger);
  }

  /** Reason why this charger cannot be rebooted. Null: it can. */
  cannotReboot(charger: ChargerId): string | null {
    const messages = this.#rebootMessages(charger, "");
    return typeof messages === "string" ? messages : null;
  }

  /** Reboots a charger. Ok: the broker has all of it. `id`: the charger may answer with it. */
  async reboot(charger: ChargerId, id: string): Promise<Sent> {
    const session = this.#sessions.get(this.#chargers.get(charger)?.place.broker ?? "");
    const messages = this.#rebootMessages(charger, id);
    if (typeof messages === "string") return { ok: false, retry: false, reason: messages };
    for (const { topic, payload } of messages) {
      // A charger that comes online later must not restart then.
      const sent = await session?.publish(topic, payload, {
        retain: false,
        expirySeconds: () => REBOOT_HOLDS,
      });
      if (sent?.ok !== true) return sent ?? NO_BROKER;
    }
    return { ok: true };
  }

  #rebootMessages(charger: ChargerId, id: string): ReturnType<typeof rebootMessages> {
    return rebootMessages(this.#chargers.get(charger), id, this.#options.now());
  }

  /** The level that a charger shows, set by anyone. Null: it shows none. */
  shows(charger: ChargerId): Desired | null {
    return this.#chargers.get(charger)?.driver.shows() ?? null;
  }

  /** Pauses every keepalive of a charger. The result resumes them. A text: another charger needs the same message. */
  pauseKeepalives(charger: ChargerId): (() => void) | string {
    const connected = this.#chargers.get(charger);
    if (connected === undefined) return () => {};
    const sharing = this.#chargers.values().find((other) => shareKeepalive(connected, other));
    if (sharing !== undefined) return `${sharing.id} is kept alive by the same message`;
    const keepalives = instancesOf([connected]).flatMap(keepalivesOf);
    return this.#heartbeats.get(connected.place.broker)?.pauseKeepalives(keepalives) ?? (() => {});
  }

  /** Sends the keepalives that keep a charger obeying, even in observe mode. The result stops them again. */
  resumeKeepalives(charger: ChargerId): () => void {
    const { instance = null, place } = this.#chargers.get(charger) ?? {};
    const heartbeats = this.#heartbeats.get(place?.broker ?? "");
    return (instance === null ? undefined : heartbeats?.allow(commandingOf(instance))) ?? (() => {});
  }

  /** Stops or resumes the keepalives that keep chargers obeying. */
  observe(isObserving: boolean): void {
    for (const heartbeats of this.#heartbeats.values()) heartbeats.observe(isObserving);
  }

  /** Setpoint, limits and measurements, retained. */
  async publishState(charger: ChargerId, payload: string): Promise<Sent> {
    const connected = this.#chargers.get(charger);
    if (connected === undefined) return noDriver(charger);
    const [broker, topic] = stateTopic(connected);
    return this.#sessions.get(broker)?.publish(topic, payload, { retain: true }) ?? NO_BROKER;
  }

  /** Publishes at the site's own broker. `path` comes after `<prefix>/<site>/`. */
  async publishAboutSite(path: string, payload: string, retain = true): Promise<Sent> {
    const { brokers, site } = this.#options;
    return this.publishAtHome(siteTopic(brokers.get("")?.prefix ?? "", site, path), payload, retain);
  }

  publishAtHome = async (topic: string, payload: string, retain = true): Promise<Sent> =>
    this.#sessions.get("")?.publish(topic, payload, { retain }) ?? NO_BROKER;

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session[Symbol.asyncDispose]()));
    this.#stack.dispose();
  }

  #connect(name: string, broker: NamedBroker): void {
    const { prefix } = broker;
    const { site, clientId, chargers, profiles, brokers, presencePath, now, random, log } = this.#options;
    const { onBroker, window, quota, timing, mayConnect } = this.#options;
    // Drivers publish through the session. It is created after them because it needs their topics.
    const publish: BrokerSession["publish"] = (...message) => session.publish(...message);
    const ports: DriverPorts = { now, publish, emit: (message) => this.#emit(message) };
    const place = { broker: name, of: [prefix, site], home: brokers.get("")?.prefix ?? prefix } as const;
    const configured = chargers.filter((charger) => charger.broker === name);
    const here = configured.flatMap((charger) => connectedCharger(place, charger, profiles, ports));
    for (const charger of here) this.#chargers.set(charger.id, charger);
    // Native drivers keep nothing that a lost connection changes.
    const others = here.filter(({ driver }) => !(driver instanceof NativeDriver));
    const router = chargerRouter(this.#chargers, name);
    for (const charger of others) {
      for (const topic of charger.driver.topics) router.connect(topic, charger);
      this.#stack.use(charger.driver);
    }
    const heartbeats = this.#createHeartbeats(name, here, publish);
    const handlers = name === "" ? siteMessages(prefix, this.#options) : new Map<string, never>();
    const filters = [
      ...(configured.length === 0 || configured.some(isNative) ? nativeFilters(prefix, site) : []),
      ...new Set(others.flatMap(({ driver }) => driver.topics)),
      ...handlers.keys(),
    ];
    const session = new BrokerSession({
      address: broker.address,
      section: sectionOf(name),
      // Two names may lead to one server, which accepts a client id once.
      clientId: name === "" ? clientId : `${clientId}-${name}`,
      presenceTopic:
        presencePath === undefined ? gatewayOnlineTopic(prefix, site) : siteTopic(prefix, site, presencePath),
      filters,
      evidence: evidenceAt(name, broker, filters, this.#options),
      mayConnect,
      random,
      log: name === "" ? log : log.child({ broker: name }),
      onUp: () => {
        for (const { driver } of others) driver.brokerUp();
        heartbeats.start();
        onBroker(name, true);
      },
      onAbsent: () => onBroker(name, false),
      onDown: () => {
        heartbeats.stop();
        for (const { driver } of others) driver.brokerDown();
        onBroker(name, false);
      },
      onMessage: (topic, payload, retained) =>
        handlers.has(topic)
          ? handlers.get(topic)?.({ payload, retained })
          : this.#handleMessage(router, topic, payload, retained),
      ...(window === undefined ? {} : { window }),
      quota,
      ...(timing === undefined ? {} : { timing }),
    });
    this.#sessions.set(name, session);
  }

  #createHeartbeats(
    name: string,
    here: readonly ConnectedCharger[],
    publish: BrokerSession["publish"],
  ): Heartbeats {
    const instances = instancesOf(here);
    const heartbeats = new Heartbeats(
      instances.flatMap(keepalivesOf),
      ({ topic, payload }) => publish(topic, payload, { retain: false }),
      this.#options.now,
      instances.flatMap(commandingOf),
    );
    this.#heartbeats.set(name, this.#stack.use(heartbeats));
    heartbeats.observe(this.#options.observes ?? false);
    return heartbeats;
  }

  /** Each broker has its own router: a message counts only over the broker of its charger. */
  #handleMessage(
    router: TopicRouter<ConnectedCharger>,
    topic: string,
    payload: Buffer,
    retained: boolean,
  ): void {
    const listeners = router.listeners(topic);
    if (listeners.size === 0) this.#logUnknown(topic);
    const now = this.#options.now();
    for (const listener of listeners) {
      const { id, driver } = listener;
      listener.gate ??= new FloodGate(now);
      if (listener.gate.admits(now)) driver.handleMessage(topic, payload, retained);
      else this.#discard(id, "tooMany", "too many messages in a second");
    }
  }

  /** A mistyped id, in the charger or in the configuration, would otherwise show as a silent charger alone. */
  #logUnknown(topic: string): void {
    if (this.#unknown.has(topic) || this.#unknown.size >= MOST_UNKNOWN) return;
    this.#unknown.add(topic);
    this.#options.log.warn(
      `message on ${sanitizeForLog(topic)}, which belongs to no charger: compare its id with the configuration`,
    );
  }

  #emit(message: ChargerMessage): void {
    if (message.kind === "malformed") this.#discard(message.charger, "unreadable", message.reason);
    this.#options.onMessage(message);
  }

  #discard(charger: ChargerId, why: Discarded, reason: string): void {
    const before = this.discardedFrom(charger);
    this.#discarded.set(charger, before + 1);
    this.#options.onDiscard(charger, why);
    if (before === 0)
      this.#options.log.warn({ charger, reason }, "charger message discarded; further ones are only counted");
  }
}
