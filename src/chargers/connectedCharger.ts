import { type Charger, isNative } from "../domain/charger.ts";
import { type Command, PAST, secondsLeft, type Sent } from "../domain/command.ts";
import type { Desired } from "../domain/setpoint.ts";
import { amperes, chargerId, type ChargerId, type Instant, type Millis } from "../domain/units.ts";
import type { FloodGate } from "./broker/flowControl.ts";
import { keyOf } from "./broker/heartbeats.ts";
import { type TopicRouter, topicRouter } from "./broker/topicRouter.ts";
import type { ChargerDriver, DriverPorts } from "./driver.ts";
import {
  chargerRoot,
  NATIVE_LEAVES,
  readNative,
  rebootTopicBelow,
  stateTopicBelow,
  topicLevel,
  writeReboot,
  writeSet,
} from "./native/messages.ts";
import type { ProfileInstance } from "./profile/instance.ts";
import { instanceSettings } from "./profile/level.ts";
import { keepalivesOf, publishesFor } from "./profile/publishes.ts";
import type { Profile } from "./profile/schema.ts";
import { ProfileDriver } from "./profileDriver.ts";

/** A charger, its driver, and the rate limit for its messages. */
export interface ConnectedCharger {
  readonly id: ChargerId;
  readonly place: Place;
  readonly driver: ChargerDriver;
  /** Its profile with its parameters. Null: it is native. */
  readonly instance: ProfileInstance | null;
  /** Null: it sent no message yet. */
  gate: FloodGate | null;
}

/** The broker of a charger. One for all its chargers: each keeps it. */
interface Place {
  /** Name of the broker. */
  readonly broker: string;
  /** Its prefix, and the site. */
  readonly of: readonly [prefix: string, site: string];
  /** Prefix at the site's own broker. */
  readonly home: string;
}

/** A charger at its broker. Empty: its id or its site is no level of a topic, or its profile cannot be used. */
export function connectedCharger(
  place: Place,
  charger: Charger,
  profiles: ReadonlyMap<string, Profile>,
  ports: DriverPorts,
): readonly ConnectedCharger[] {
  const { id } = charger;
  const [, site] = place.of;
  if (topicLevel(site) === null || topicLevel(id) === null) return [];
  if (isNative(charger)) return [new NativeDriver(id, place, ports)];
  const profile = profiles.get(charger.profile);
  if (profile === undefined || profile.nativePayloads) return [];
  const binding = instanceSettings(charger, profile);
  // The check of the configuration explains the reason. Commands are refused as for an unknown charger.
  if (!binding.ok) return [];
  const { instance } = binding;
  return [{ id, place, driver: new ProfileDriver(id, instance, ports), instance, gate: null }];
}

/** The profiles of these chargers at work. Native chargers have none. */
export const instancesOf = (chargers: readonly ConnectedCharger[]): readonly ProfileInstance[] =>
  chargers.flatMap(({ instance }) => instance ?? []);

/** True: the same message keeps both chargers alive. */
export function shareKeepalive(one: ConnectedCharger, other: ConnectedCharger): boolean {
  if (one === other || one.place.broker !== other.place.broker) return false;
  const keys = new Set(instancesOf([one]).flatMap(keepalivesOf).map(keyOf));
  return instancesOf([other])
    .flatMap(keepalivesOf)
    .some((each) => keys.has(keyOf(each)));
}

/** Router of the messages at one broker. A native charger is found by its id, so it has no entry for its topics. */
export const chargerRouter = (
  chargers: ReadonlyMap<ChargerId, ConnectedCharger>,
  broker: string,
): TopicRouter<ConnectedCharger> =>
  topicRouter(NATIVE_LEAVES, (root) => {
    const found = chargers.get(chargerId(root.slice(root.lastIndexOf("/") + 1)));
    return found?.place.broker === broker && NativeDriver.isAt(root, found.driver) ? found : undefined;
  });

/** Broker and topic of the state of a charger. A broker inside a charger is not the place for topics that other programs read. */
export function stateTopic({
  id,
  place,
  driver,
}: ConnectedCharger): readonly [broker: string, topic: string] {
  const [prefix, site] = place.of;
  return driver instanceof NativeDriver
    ? [place.broker, stateTopicBelow(chargerRoot(prefix, site, id))]
    : ["", stateTopicBelow(chargerRoot(place.home, site, id))];
}

/** Messages that reboot a charger. A text: the reason why it cannot be rebooted. */
export function rebootMessages(
  connected: ConnectedCharger | undefined,
  id: string,
  now: Instant,
): readonly { readonly topic: string; readonly payload: string }[] | string {
  if (connected === undefined) return "it has no topic: unknown id, profile or broker";
  const { instance } = connected;
  if (instance === null)
    return [
      {
        topic: rebootTopicBelow(chargerRoot(...connected.place.of, connected.id)),
        payload: writeReboot(id, now),
      },
    ];
  const answer = publishesFor({ kind: "reboot" }, instance, now);
  if (answer.ok) return answer.publishes;
  return instance.profile.cannot.reboot === undefined
    ? `${answer.reason}: no message is known that reboots this make over MQTT`
    : answer.reason;
}

/**
 * True: the last command reached a subscriber, as far as the broker reports it (MQTT 5).
 * `missed`: it did not. The next live message asks for it again: the charger may have reconnected after us.
 * `waits`: it was asked for, and the refresh is next. A meter that reads nothing would be sent to at each message.
 */
type Arrival = "arrived" | "missed" | "waits";

/**
 * Driver of a native charger. A class: 20,000 drivers share its methods. Topics are derived from the id: a process of a
 * fleet has a driver for each of its chargers.
 */
export class NativeDriver implements ChargerDriver, ConnectedCharger {
  readonly id: ChargerId;
  readonly place: Place;
  gate: FloodGate | null = null;
  readonly #ports: DriverPorts;
  #limit = amperes(0);
  #arrival: Arrival = "arrived";

  constructor(id: ChargerId, place: Place, ports: DriverPorts) {
    this.id = id;
    this.place = place;
    this.#ports = ports;
  }

  get instance(): null {
    return null;
  }

  /** A native charger is its own driver: an object less for each of thousands. */
  get driver(): this {
    return this;
  }

  static isAt(root: string, driver: ChargerDriver): boolean {
    return driver instanceof NativeDriver && driver.root === root;
  }

  get root(): string {
    return chargerRoot(...this.place.of, this.id);
  }

  get topics(): readonly string[] {
    return NATIVE_LEAVES.map((leaf) => `${this.root}/${leaf}`);
  }

  async send(command: Command, lease: Millis): Promise<Sent> {
    const { now, publish } = this.#ports;
    const expirySeconds = () => secondsLeft(command, lease, now());
    if (expirySeconds() <= 0) return PAST;
    let hasSubscriber = true;
    const onNoSubscriber = (): void => void (hasSubscriber = false);
    // Not retained: a charger that reboots next week must not receive this old setpoint.
    const options = { retain: false, expirySeconds, onNoSubscriber };
    const sent = await publish(`${this.root}/set`, writeSet(command, lease), options);
    if (sent.ok) this.#arrival = hasSubscriber ? "arrived" : this.#arrival === "waits" ? "waits" : "missed";
    return sent;
  }

  handleMessage(topic: string, payload: Buffer, retained: boolean): void {
    const { now, emit } = this.#ports;
    const message = readNative(this.place.of, { topic, payload, retained }, now());
    if (message === undefined) return;
    if (message.kind === "telemetry") this.#limit = amperes(message.telemetry.limitA ?? this.#limit);
    const isHere = message.kind === "telemetry" || (message.kind === "online" && message.online);
    if (this.#arrival === "missed" && isHere && !retained) {
      this.#arrival = "waits";
      emit({ kind: "forgot", charger: this.id });
    }
    emit(message);
  }

  /** 0 is ambiguous: a pause, or no vehicle that charges. */
  shows(): Desired | null {
    return this.#limit <= 0 ? null : { kind: "current", amperes: this.#limit };
  }

  brokerUp(): void {}

  brokerDown(): void {}

  [Symbol.dispose](): void {}
}
