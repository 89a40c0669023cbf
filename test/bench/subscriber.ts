import { connectAsync, type MqttClient } from "mqtt";

import { writeAck } from "../../src/chargers/native/messages.ts";

/** A setpoint as it came. `at`: performance.now() of its arrival. */
export interface Arrived {
  readonly topic: string;
  readonly payload: Buffer;
  /** Message expiry in seconds, as the broker has it left. */
  readonly expiry: number | undefined;
  readonly at: number;
}

/** Who waits for so many messages. */
interface Waiting {
  readonly count: number;
  /** Topics that count once. Null: each message counts. */
  readonly topics: Set<string> | null;
  readonly resolve: (messages: readonly Arrived[]) => void;
}

/**
 * Listens to every charger's `set` on a broker, whoever publishes it; at QoS 0, to weigh as little as it can. Answering:
 * it accepts each, as the charger would.
 */
export class Subscriber implements AsyncDisposable {
  readonly #client: MqttClient;
  #messages: Arrived[] = [];
  #waiting: Waiting | null = null;

  private constructor(client: MqttClient, answers: boolean) {
    this.#client = client;
    client.on("message", (topic, payload, packet) => {
      if (answers) this.#accept(topic, payload);
      const expiry = packet.properties?.messageExpiryInterval;
      const { count, topics, resolve } = this.#waiting ?? {
        count: NaN,
        topics: null,
        resolve: () => undefined,
      };
      if (topics?.has(topic) === true) return;
      topics?.add(topic);
      this.#messages.push({ topic, payload, expiry, at: performance.now() });
      if (this.#messages.length === count) resolve(this.#messages);
    });
  }

  static async on(broker: string, { answers = false } = {}): Promise<Subscriber> {
    const client = await connectAsync(broker, { protocolVersion: 5, reconnectPeriod: 0 });
    const subscriber = new Subscriber(client, answers);
    await client.subscribeAsync("setpointd/+/chargers/+/set", { qos: 0 });
    return subscriber;
  }

  /** The next so many, from now on. Rejects with what came when they take longer than that. */
  next(count: number, timeoutMs = 120_000): Promise<readonly Arrived[]> {
    return this.#next(count, timeoutMs, null);
  }

  /** The next message of each of so many chargers: a setpoint that is repeated meanwhile counts once. */
  nextOfEach(count: number, timeoutMs: number): Promise<readonly Arrived[]> {
    return this.#next(count, timeoutMs, new Set());
  }

  #next(count: number, timeoutMs: number, topics: Waiting["topics"]): Promise<readonly Arrived[]> {
    this.#messages = [];
    const { promise, resolve, reject } = Promise.withResolvers<readonly Arrived[]>();
    const bell = setTimeout(
      () => reject(new Error(`${this.#messages.length} of ${count} messages in ${timeoutMs} ms`)),
      timeoutMs,
    );
    this.#waiting = { count, topics, resolve };
    return promise.finally(() => {
      clearTimeout(bell);
      this.#waiting = null;
    });
  }

  #accept(topic: string, payload: Buffer): void {
    const set: { readonly id: string; readonly value: number | null } = JSON.parse(payload.toString());
    const ack = writeAck({ id: set.id, accepted: true, value: set.value, reason: null });
    this.#client.publish(topic.replace(/set$/, "ack"), ack, { qos: 0 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.endAsync(true);
  }
}

/** Of the last of them. */
export const lastOf = (messages: readonly Arrived[]): number => messages.at(-1)?.at ?? NaN;
