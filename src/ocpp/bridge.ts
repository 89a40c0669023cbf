import type { Logger } from "pino";

import { addressOf } from "../chargers/broker/address.ts";
import type { BrokerTiming } from "../chargers/broker/createClient.ts";
import { BrokerSession } from "../chargers/broker/session.ts";
import {
  nativeTopics,
  type NativeTopics,
  readReboot,
  readSet,
  writeAck,
  writeWholeTelemetry,
} from "../chargers/native/messages.ts";
import type { SetMessage } from "../chargers/native/payload.ts";
import type { BrokerConfig } from "../config/sections/mqtt.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { ChargerId } from "../domain/units.ts";
import type { Ack } from "./orders.ts";

export interface NativeOutletOptions {
  readonly site: string;
  readonly charger: ChargerId;
  readonly mqtt: BrokerConfig;
  /** Begin of the MQTT client id. The charger's id is appended. */
  readonly clientId: string;
  readonly random: () => number;
  readonly log: Logger;
  readonly onSet: (order: SetMessage) => void;
  /** `id`: of the request, for the answer. */
  readonly onReboot: (id: string) => void;
  readonly onMalformed: () => void;
  /** The broker is (again) connected: telemetry can be published. */
  readonly onUp: () => void;
  readonly timing?: Partial<BrokerTiming>;
}

/**
 * The native side of a charger, with a connection of its own while its station is ready. MQTT has one last will per
 * connection, and each native charger needs one: its `online` becomes false when this process is killed.
 */
export class NativeOutlet implements AsyncDisposable {
  readonly #options: NativeOutletOptions;
  readonly #topics: NativeTopics;
  #session: BrokerSession | null = null;
  #isWanted = false;
  /** Openings and closings, one after the other. */
  #steps: Promise<void> = Promise.resolve();

  constructor(options: NativeOutletOptions) {
    this.#options = options;
    const topics = nativeTopics(options.mqtt.prefix, options.site, options.charger);
    // The schema of the configuration allows topic levels only.
    if (topics === null) throw new Error(`${options.charger} is no level of a topic`);
    this.#topics = topics;
  }

  get isConnected(): boolean {
    return this.#session?.connected ?? false;
  }

  /** Publishes `online` true and listens for `set`. */
  open(): void {
    this.#isWanted = true;
    // A connection that still closes must publish its `false` before our `true`.
    this.#steps = this.#steps.then(() => {
      if (this.#isWanted) this.#session ??= this.#connect();
    });
  }

  /** Publishes `online` false. */
  close(): void {
    this.#isWanted = false;
    this.#steps = this.#steps.then(async () => {
      const session = this.#session;
      this.#session = null;
      await session?.[Symbol.asyncDispose]();
    });
  }

  /** Nothing is queued: what cannot be published now is dropped. */
  telemetry(telemetry: Telemetry): void {
    this.#publish("telemetry", writeWholeTelemetry(telemetry));
  }

  ack(ack: Ack): void {
    this.#publish("ack", writeAck(ack));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await this.#steps;
  }

  #connect(): BrokerSession {
    const { charger, mqtt, clientId, random, log, onSet, onReboot, onMalformed, onUp, timing } =
      this.#options;
    const { set, reboot, online } = this.#topics;
    return new BrokerSession({
      address: addressOf(mqtt, null),
      section: "mqtt",
      clientId: `${clientId}-${charger}`,
      presenceTopic: online,
      filters: [set, reboot],
      random,
      log,
      onUp,
      onDown: () => undefined,
      onMessage: (topic, payload, retained) => {
        // The daemon retains neither. A retained one is an old order.
        if (retained) return;
        const [order, request] =
          topic === reboot ? [undefined, readReboot(payload)] : [readSet(payload), undefined];
        if (order !== undefined) onSet(order);
        else if (request !== undefined) onReboot(request.id);
        else onMalformed();
      },
      ...(timing === undefined ? {} : { timing }),
    });
  }

  #publish(leaf: "telemetry" | "ack", payload: string): void {
    if (this.#session?.connected !== true) return;
    void this.#session.publish(this.#topics[leaf], payload, { retain: false });
  }
}
