import { connectAsync, type MqttClient } from "mqtt";

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
  readonly resolve: (messages: readonly Arrived[]) => void;
}

/** Listens to every charger's `set` on a broker, whoever publishes it; at QoS 0, to weigh as little as it can. */
export class Subscriber implements AsyncDisposable {
  readonly #client: MqttClient;
  #messages: Arrived[] = [];
  #waiting: Waiting | null = null;

  private constructor(client: MqttClient) {
    this.#client = client;
    client.on("message", (topic, payload, packet) => {
      const expiry = packet.properties?.messageExpiryInterval;
      this.#messages.push({ topic, payload, expiry, at: performance.now() });
      const { count, resolve } = this.#waiting ?? { count: NaN, resolve: () => undefined };
      if (this.#messages.length === count) resolve(this.#messages);
    });
  }

  static async on(broker: string): Promise<Subscriber> {
    const client = await connectAsync(broker, { protocolVersion: 5, reconnectPeriod: 0 });
    const subscriber = new Subscriber(client);
    await client.subscribeAsync("setpointd/+/chargers/+/set", { qos: 0 });
    return subscriber;
  }

  /** The next so many, from now on. Rejects with what came when they take longer than that. */
  next(count: number, timeoutMs = 120_000): Promise<readonly Arrived[]> {
    this.#messages = [];
    const { promise, resolve, reject } = Promise.withResolvers<readonly Arrived[]>();
    const bell = setTimeout(
      () => reject(new Error(`${this.#messages.length} of ${count} messages in ${timeoutMs} ms`)),
      timeoutMs,
    );
    this.#waiting = { count, resolve };
    return promise.finally(() => {
      clearTimeout(bell);
      this.#waiting = null;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.endAsync(true);
  }
}

/** Of the last of them. */
export const lastOf = (messages: readonly Arrived[]): number => messages.at(-1)?.at ?? NaN;
