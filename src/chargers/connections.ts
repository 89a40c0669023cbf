import type { Charger } from "../domain/charger.ts";
import type { Command, Sent } from "../domain/command.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import type { ChargerId, Millis } from "../domain/units.ts";
import { sectionOf, type Discarded, type ConnectionOptions, type NamedBroker } from "./broker/address.ts";
import { Heartbeats, keyOf } from "./broker/heartbeats.ts";
import { floodGate } from "./broker/inFlight.ts";
import { BrokerSession } from "./broker/session.ts";
import { type TopicRouter, topicRouter } from "./broker/topicRouter.ts";
import { type BrokerTrial, tryBroker } from "./broker/tryBroker.ts";
import type { ChargerDriver } from "./driver.ts";
import {
  gatewayOnlineTopic,
  nativeFilters,
  nativeTopics,
  siteTopic,
  nativeDriver,
} from "./native/messages.ts";
import type { ProfileInstance } from "./profile/instance.ts";
import { instanceSettings } from "./profile/profileLimits.ts";
import { commandingOf, keepalivesOf } from "./profile/topics.ts";
import { ProfileDriver } from "./profileDriver.ts";

/** Where one charger is: its line, its state topic, and the gate that its messages come through. */
interface ConnectedCharger {
  readonly id: ChargerId;
  /** The broker that it is reached over. */
  readonly broker: string;
  readonly driver: ChargerDriver;
  readonly admits: () => boolean;
  readonly publishState: (payload: string) => Promise<Sent>;
}

/** All chargers of the site, over their brokers. Nothing is queued here: what fails, the next look sends again. */
export class ChargerConnections implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  readonly #sessions = new Map<string, BrokerSession>();
  readonly #outlets = new Map<ChargerId, ConnectedCharger>();
  readonly #bounds = new Map<ChargerId, ProfileInstance>();
  /** By the name of their broker. */
  readonly #hearts = new Map<string, Heartbeats>();
  readonly #discarded = new Map<ChargerId, number>();
  readonly #stack = new DisposableStack();

  /** Connects at once; `onBroker` says when commands can be sent. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    for (const [name, broker] of options.brokers) this.#connect(name, broker);
  }

  /** Whether all brokers are there. */
  get connected(): boolean {
    return [...this.#sessions.values()].every((session) => session.connected);
  }

  /** Whether the broker that this charger is reached over is there. */
  isLinked(charger: ChargerId): boolean {
    const outlet = this.#outlets.get(charger);
    return outlet !== undefined && (this.#sessions.get(outlet.broker)?.connected ?? false);
  }

  /** Why the broker of this name is not there, as far as is known. */
  troubleOf(name: string): string | null {
    return this.#sessions.get(name)?.trouble ?? null;
  }

  /** What each broker lets us do, tried without commanding anyone. */
  async tryBrokers(): Promise<readonly BrokerTrial[]> {
    const { site, chargers, brokers } = this.#options;
    const trials = [...this.#sessions].map(([name, session]) => {
      const prefix = brokers.get(name)?.prefix ?? "";
      const native = chargers.filter((charger) => charger.broker === name && isNative(charger));
      const topics = native.flatMap(({ id }) => nativeTopics(prefix, site, id)?.set ?? []);
      return tryBroker(name, session, topics);
    });
    return Promise.all(trials);
  }

  /** Connections to the broker of this name that were lost within the last ten minutes. */
  recentDropsOf(name: string): number {
    return this.#sessions.get(name)?.recentDrops ?? 0;
  }

  /** Messages of this charger that were not taken in, since start. */
  discardedFrom(charger: ChargerId): number {
    return this.#discarded.get(charger) ?? 0;
  }

  /**
   * Publishes a command for `lease` at most, in the words of its make: ok means that the broker has all of it, not that
   * the charger does it. `before` is what the charger was told before it, null: nothing by us; `isDoubted`: it was
   * seen not to follow this command. Past its `until` it is refused, at this moment and again when its turn in the
   * window comes (S9).
   */
  async send(
    command: Command,
    lease: Millis,
    before: Desired | null = null,
    isDoubted = false,
  ): Promise<Sent> {
    const line = this.#outlets.get(command.charger)?.driver;
    return line?.send(command, lease, before, isDoubted) ?? noDriver(command.charger);
  }

  /** The level that a charger shows it stands under, whoever told it; null: it does not show. */
  shows(charger: ChargerId): Desired | null {
    return this.#outlets.get(charger)?.driver.shows() ?? null;
  }

  /**
   * Says nothing any more that would keep a charger obeying, until what it answers is called. A text: another charger
   * needs to hear the same.
   */
  pauseKeepalives(charger: ChargerId): (() => void) | string {
    const [outlet, bound] = [this.#outlets.get(charger), this.#bounds.get(charger)];
    const keepalives = bound === undefined ? [] : keepalivesOf(bound);
    const keys = new Set(keepalives.map(keyOf));
    for (const [other, { broker }] of this.#outlets) {
      const theirs = other === charger || broker !== outlet?.broker ? undefined : this.#bounds.get(other);
      if (theirs !== undefined && keepalivesOf(theirs).some((keepalive) => keys.has(keyOf(keepalive))))
        return `${other} is kept alive by the same message`;
    }
    return this.#hearts.get(outlet?.broker ?? "")?.pauseKeepalives(keepalives) ?? (() => {});
  }

  /** Says what keeps a charger obeying also where it only observes, until what it answers is called. */
  resumeKeepalives(charger: ChargerId): () => void {
    const [outlet, bound] = [this.#outlets.get(charger), this.#bounds.get(charger)];
    const hearts = this.#hearts.get(outlet?.broker ?? "");
    if (!this.#options.observes || bound === undefined || hearts === undefined) return () => {};
    const commanding = commandingOf(bound);
    hearts.pauseKeepalives(commanding)();
    return () => void hearts.pauseKeepalives(commanding);
  }

  /** What is asked, allowed and measured, retained for whoever asks later. */
  async publishState(charger: ChargerId, payload: string): Promise<Sent> {
    return this.#outlets.get(charger)?.publishState(payload) ?? noDriver(charger);
  }

  /** Something about the site, retained at its own broker; `path` comes after `<prefix>/<site>/`. */
  async publishAboutSite(path: string, payload: string): Promise<Sent> {
    const { brokers, site } = this.#options;
    const broker = brokers.get("");
    return broker === undefined
      ? { ok: false, retry: false, reason: "no broker" }
      : this.#retain("", siteTopic(broker.prefix, site, path), payload);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session[Symbol.asyncDispose]()));
    this.#stack.dispose();
  }

  #connect(name: string, { address, prefix }: NamedBroker): void {
    const { site, clientId, chargers, observes, presencePath, now, random, log, onBroker, window, timing } =
      this.#options;
    const here = chargers.filter(({ broker }) => broker === name);
    const bound = new Map(here.flatMap((charger) => this.#bound(charger)));
    for (const [id, its] of bound) this.#bounds.set(id, its);
    // Lines publish through the session, which is made after them because it has to know their topics.
    const publish: BrokerSession["publish"] = (...message) => session.publish(...message);
    const board = topicRouter<ConnectedCharger>();
    const outlets = here.flatMap((charger) =>
      this.#outlet(name, prefix, charger, bound.get(charger.id), publish),
    );
    for (const outlet of outlets) {
      this.#outlets.set(outlet.id, outlet);
      for (const topic of outlet.driver.topics) board.connect(topic, outlet);
      this.#stack.use(outlet.driver);
    }
    const heartbeats = this.#stack.use(
      new Heartbeats(
        [...bound.values()].flatMap(keepalivesOf),
        ({ topic, payload }) => publish(topic, payload, { retain: false }),
        now,
      ),
    );
    this.#hearts.set(name, heartbeats);
    if (observes) heartbeats.pauseKeepalives([...bound.values()].flatMap(commandingOf));
    const filters = here
      .filter((charger) => !isNative(charger))
      .flatMap(({ id }) => this.#outlets.get(id)?.driver.topics ?? []);
    const session = new BrokerSession({
      address,
      section: sectionOf(name),
      // Two brokers by name may be one server, which lets a client id in once.
      clientId: name === "" ? clientId : `${clientId}-${name}`,
      presenceTopic:
        presencePath === undefined ? gatewayOnlineTopic(prefix, site) : siteTopic(prefix, site, presencePath),
      filters: [
        ...(here.length === 0 || here.some(isNative) ? nativeFilters(prefix, site) : []),
        ...new Set(filters),
      ],
      random,
      log: name === "" ? log : log.child({ broker: name }),
      onUp: () => {
        for (const { driver: line } of outlets) line.brokerUp();
        heartbeats.start();
        onBroker(name, true);
      },
      onAbsent: () => onBroker(name, false),
      onDown: () => {
        heartbeats.stop();
        for (const { driver: line } of outlets) line.brokerDown();
        onBroker(name, false);
      },
      onMessage: (topic, payload, retained) => this.#hear(board, topic, payload, retained),
      ...(window === undefined ? {} : { window }),
      ...(timing === undefined ? {} : { timing }),
    });
    this.#sessions.set(name, session);
  }

  #bound(charger: Charger): readonly [ChargerId, ProfileInstance][] {
    const profile = this.#options.profiles.get(charger.profile);
    if (profile === undefined || profile.nativePayloads) return [];
    const binding = instanceSettings(charger, profile);
    // What cannot be bound is explained by the check of the configuration, and refused as without a line.
    return binding.ok ? [[charger.id, binding.instance]] : [];
  }

  #outlet(
    name: string,
    prefix: string,
    { id, profile }: Charger,
    bound: ProfileInstance | undefined,
    publish: BrokerSession["publish"],
  ): readonly ConnectedCharger[] {
    const { site, brokers, now } = this.#options;
    const emit = (message: ChargerMessage): void => this.#emit(message);
    const ports = { now, publish, emit };
    const native = isNative({ profile });
    // A broker that is a charger is no place for what other programs read.
    const [home, root] = native ? [name, prefix] : ["", brokers.get("")?.prefix ?? prefix];
    const topics = nativeTopics(root, site, id);
    if (topics === null || (!native && bound === undefined)) return [];
    const line =
      bound === undefined ? nativeDriver(topics, [prefix, site], ports) : new ProfileDriver(id, bound, ports);
    const publishState = (payload: string) => this.#retain(home, topics.state, payload);
    return [{ id, broker: name, driver: line, admits: floodGate(now), publishState }];
  }

  async #retain(broker: string, topic: string, payload: string): Promise<Sent> {
    const session = this.#sessions.get(broker);
    return session === undefined
      ? { ok: false, retry: false, reason: "no broker" }
      : session.publish(topic, payload, { retain: true });
  }

  /** Who is reached over one broker is not believed over another: each has its own board. */
  #hear(board: TopicRouter<ConnectedCharger>, topic: string, payload: Buffer, retained: boolean): void {
    const listeners = board.listeners(topic);
    if (listeners.size === 0) this.#options.log.debug({ topic }, "a charger that is not configured speaks");
    for (const { id, driver: line, admits } of listeners) {
      if (admits()) line.handleMessage(topic, payload, retained);
      else this.#discard(id, "tooMany", "too many messages in a second");
    }
  }

  #emit(message: ChargerMessage): void {
    if (message.kind === "malformed") this.#discard(message.charger, "unreadable", message.reason);
    this.#options.onMessage(message);
  }

  #discard(charger: ChargerId, why: Discarded, reason: string): void {
    const before = this.discardedFrom(charger);
    this.#discarded.set(charger, before + 1);
    this.#options.onDiscard(charger, why);
    if (before > 0) return;
    this.#options.log.warn(
      { charger, reason },
      "charger message not taken in; further ones are only counted",
    );
  }
}

const isNative = ({ profile }: Pick<Charger, "profile">): boolean => profile === "native";

const noDriver = (charger: ChargerId): Sent => ({
  ok: false,
  retry: false,
  reason: `charger ${JSON.stringify(charger)} has no topic: unknown id, profile or broker`,
});
