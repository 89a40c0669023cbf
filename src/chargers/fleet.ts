import type { Logger } from "pino";
import type { Command, Sent } from "../core/control/command.ts";
import type { Charger } from "../core/site/charger.ts";
import type { ChargerMessage } from "../core/site/telemetry.ts";
import type { ChargerId, Instant, Millis } from "../core/units.ts";
import { BrokerSession } from "./brokerSession.ts";
import type { BrokerTiming } from "./brokerTiming.ts";
import type { BrokerAddress } from "./dial.ts";
import {
  gatewayOnlineTopic,
  nativeFilters,
  nativeTopics,
  readNative,
  writeSet,
  type NativeTopics,
} from "./native.ts";

/** A broker, and what its native topics begin with. */
export interface FleetBroker {
  readonly address: BrokerAddress;
  readonly prefix: string;
}

export interface FleetOptions {
  readonly site: string;
  readonly chargers: readonly Charger[];
  /** By the name that `Charger.broker` has; "" is the site's own. */
  readonly brokers: ReadonlyMap<string, FleetBroker>;
  readonly now: () => Instant;
  /** A fraction for the jitter of the back-off. */
  readonly random: () => number;
  readonly log: Logger;
  /** Everything a configured charger says, in the order of arrival, rubbish included. */
  readonly onMessage: (message: ChargerMessage) => void;
  /** Up after every (re)connection: what its chargers should be doing now has to be said again (F85). */
  readonly onBroker: (name: string, up: boolean) => void;
  /** Publishes without a PUBACK at a time. */
  readonly window?: number;
  readonly timing?: Partial<BrokerTiming>;
}

/** How one charger is reached. */
interface Line {
  readonly broker: string;
  readonly session: BrokerSession;
  readonly topics: NativeTopics;
}

/** All chargers of the site, over their brokers. Nothing is queued here: what fails, the next look sends again. */
export class Fleet implements AsyncDisposable {
  readonly #options: FleetOptions;
  readonly #sessions: ReadonlyMap<string, BrokerSession>;
  /** Only profile `native` has topics yet; others will bring their own lines. */
  readonly #lines: ReadonlyMap<ChargerId, Line>;
  readonly #rubbish = new Map<ChargerId, number>();

  /** Connects at once; `onBroker` says when commands can be sent. */
  constructor(options: FleetOptions) {
    this.#options = options;
    this.#sessions = new Map(
      [...options.brokers].map(([name, broker]) => [name, this.#connect(name, broker)]),
    );
    this.#lines = new Map(options.chargers.flatMap((charger) => this.#line(charger)));
  }

  /** Whether all brokers are there. */
  get connected(): boolean {
    return [...this.#sessions.values()].every((session) => session.connected);
  }

  /** Messages of this charger that could not be read, since start. */
  rubbishFrom(charger: ChargerId): number {
    return this.#rubbish.get(charger) ?? 0;
  }

  /**
   * Publishes a command for `lease` at most. Ok means that the broker has it, not that the charger does it.
   * Past its `until` it is refused, at this moment and again when its turn in the window comes (S9).
   */
  async send(command: Command, lease: Millis): Promise<Sent> {
    const line = this.#lines.get(command.charger);
    if (line === undefined) return noLine(command.charger);
    const { now } = this.#options;
    // Not retained: a charger that reboots next week must not find this setpoint waiting.
    const expirySeconds = () => secondsLeft(command, lease, now());
    if (expirySeconds() <= 0) return { ok: false, retry: false, reason: "its time has passed" };
    return line.session.publish(line.topics.set, writeSet(command, lease), { retain: false, expirySeconds });
  }

  /** What is asked, allowed and measured, retained for whoever asks later. */
  async publishState(charger: ChargerId, payload: string): Promise<Sent> {
    const line = this.#lines.get(charger);
    if (line === undefined) return noLine(charger);
    return line.session.publish(line.topics.state, payload, { retain: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session[Symbol.asyncDispose]()));
  }

  #connect(name: string, { address, prefix }: FleetBroker): BrokerSession {
    const { site, random, log, onBroker, window, timing } = this.#options;
    return new BrokerSession({
      address,
      clientId: `setpointd-${site}`,
      presenceTopic: gatewayOnlineTopic(prefix, site),
      filters: nativeFilters(prefix, site),
      random,
      log: name === "" ? log : log.child({ broker: name }),
      onUp: () => onBroker(name, true),
      onDown: () => onBroker(name, false),
      onMessage: (topic, payload, retained) => this.#hear(name, prefix, topic, payload, retained),
      ...(window === undefined ? {} : { window }),
      ...(timing === undefined ? {} : { timing }),
    });
  }

  #line({ id, profile, broker: name }: Charger): readonly [ChargerId, Line][] {
    const { brokers, site } = this.#options;
    const [broker, session] = [brokers.get(name), this.#sessions.get(name)];
    if (profile !== "native" || broker === undefined || session === undefined) return [];
    const topics = nativeTopics(broker.prefix, site, id);
    return topics === null ? [] : [[id, { broker: name, session, topics }]];
  }

  #hear(broker: string, prefix: string, topic: string, payload: Buffer, retained: boolean): void {
    const { site, now, log, onMessage } = this.#options;
    const message = readNative(prefix, site, topic, payload, now(), retained);
    if (message === undefined) return;
    // Who is reached over one broker is not believed over another.
    if (this.#lines.get(message.charger)?.broker !== broker) {
      log.debug({ charger: message.charger }, "a charger that is not configured speaks");
      return;
    }
    if (message.kind === "rubbish") this.#countRubbish(message.charger, message.reason);
    onMessage(message);
  }

  #countRubbish(charger: ChargerId, reason: string): void {
    const before = this.rubbishFrom(charger);
    this.#rubbish.set(charger, before + 1);
    if (before === 0) {
      this.#options.log.warn(
        { charger, reason },
        "charger message not readable; further ones are only counted",
      );
    }
  }
}

/** Whole seconds until the command must not be obeyed any more: its own end or its lease, whichever is first. */
function secondsLeft(command: Command, lease: Millis, now: Instant): number {
  const left = command.until === null ? lease : Math.min(command.until - now, lease);
  return Math.ceil(left / 1000);
}

const noLine = (charger: ChargerId): Sent => ({
  ok: false,
  retry: false,
  reason: `charger ${JSON.stringify(charger)} has no topic: unknown id, profile or broker`,
});
