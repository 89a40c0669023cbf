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

export interface FleetOptions {
  readonly prefix: string;
  readonly site: string;
  readonly chargers: readonly Charger[];
  /** The site's own broker. */
  readonly broker: BrokerAddress;
  readonly now: () => Instant;
  /** A fraction for the jitter of the back-off. */
  readonly random: () => number;
  readonly log: Logger;
  /** Everything a configured charger says, in the order of arrival, rubbish included. */
  readonly onMessage: (message: ChargerMessage) => void;
  /** True after every (re)connection: what the chargers should be doing now has to be said again (F85). */
  readonly onBroker: (up: boolean) => void;
  /** Publishes without a PUBACK at a time. */
  readonly window?: number;
  readonly timing?: Partial<BrokerTiming>;
}

/** All chargers of the site, over the site's broker. Nothing is queued here: what fails, the next look sends again. */
export class Fleet implements AsyncDisposable {
  readonly #options: FleetOptions;
  readonly #session: BrokerSession;
  /** Only profile `native` on the site's broker has topics yet; others will bring their own lines and sessions. */
  readonly #lines: ReadonlyMap<ChargerId, NativeTopics>;
  readonly #rubbish = new Map<ChargerId, number>();

  /** Connects at once; `onBroker(true)` says when commands can be sent. */
  constructor(options: FleetOptions) {
    const { prefix, site, broker, random, log, onBroker, window, timing } = options;
    this.#options = options;
    this.#lines = linesOf(options);
    this.#session = new BrokerSession({
      address: broker,
      clientId: `setpointd-${site}`,
      presenceTopic: gatewayOnlineTopic(prefix, site),
      filters: nativeFilters(prefix, site),
      random,
      log,
      onUp: () => onBroker(true),
      onDown: () => onBroker(false),
      onMessage: (topic, payload, retained) => this.#hear(topic, payload, retained),
      ...(window === undefined ? {} : { window }),
      ...(timing === undefined ? {} : { timing }),
    });
  }

  get connected(): boolean {
    return this.#session.connected;
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
    const topics = this.#lines.get(command.charger);
    if (topics === undefined) return noLine(command.charger);
    const { now } = this.#options;
    // Not retained: a charger that reboots next week must not find this setpoint waiting.
    const expirySeconds = () => secondsLeft(command, lease, now());
    if (expirySeconds() <= 0) return { ok: false, retry: false, reason: "its time has passed" };
    return this.#session.publish(topics.set, writeSet(command, lease), { retain: false, expirySeconds });
  }

  /** What is asked, allowed and measured, retained for whoever asks later. */
  async publishState(charger: ChargerId, payload: string): Promise<Sent> {
    const topics = this.#lines.get(charger);
    if (topics === undefined) return noLine(charger);
    return this.#session.publish(topics.state, payload, { retain: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#session[Symbol.asyncDispose]();
  }

  #hear(topic: string, payload: Buffer, retained: boolean): void {
    const { prefix, site, now, log, onMessage } = this.#options;
    const message = readNative(prefix, site, topic, payload, now(), retained);
    if (message === undefined) return;
    if (!this.#lines.has(message.charger)) {
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

function linesOf({ prefix, site, chargers }: FleetOptions): ReadonlyMap<ChargerId, NativeTopics> {
  const lines = new Map<ChargerId, NativeTopics>();
  for (const { id, profile, broker } of chargers) {
    const topics = profile === "native" && broker === "" ? nativeTopics(prefix, site, id) : null;
    if (topics !== null) lines.set(id, topics);
  }
  return lines;
}

const noLine = (charger: ChargerId): Sent => ({
  ok: false,
  retry: false,
  reason: `charger ${JSON.stringify(charger)} has no topic: unknown id, profile or broker`,
});
