import { connect, type MqttClient } from "mqtt";
import type { Logger } from "pino";
import type { Millis } from "../core/units.ts";
import type { Message } from "./makes/make.ts";

/** How a simulated charger reaches its broker, and what it does there. */
export interface FloorClientOptions {
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly clientId: string;
  readonly reconnectAfter: Millis;
  readonly log: Logger;
  readonly filters: readonly string[];
  readonly will: Message | null;
  /** It is connected and subscribed: first the ear, then the mouth. */
  readonly greet: () => void;
  readonly hear: (topic: string, payload: Buffer, retained: boolean) => void;
}

/** The MQTT side of one simulated charger: a client of its own that comes back by itself, and queues nothing. */
export class FloorClient implements AsyncDisposable {
  readonly #options: FloorClientOptions;
  readonly #firstOnline = Promise.withResolvers<void>();
  #client: MqttClient | null;

  constructor(options: FloorClientOptions) {
    this.#options = options;
    this.#client = this.#connect();
  }

  /** Once it had greeted, or was disposed of before. */
  whenOnline(): Promise<void> {
    return this.#firstOnline.promise;
  }

  /** False: nobody to say it to. Never queued: it would be old when it arrived. */
  say({ topic, payload, retain }: Message, qos: 0 | 1 = 0): boolean {
    const client = this.#client;
    if (!client?.connected) return false;
    client.publish(topic, payload, { qos, retain });
    return true;
  }

  /** The connection is cut with no goodbye: the broker speaks the last will. */
  async dropOff(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    await client?.endAsync(true);
  }

  comeBack(): void {
    this.#client ??= this.#connect();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dropOff();
    this.#firstOnline.resolve();
  }

  #connect(): MqttClient {
    const { url, username, password, clientId, reconnectAfter, log, filters, will, greet, hear } =
      this.#options;
    const client = connect(url, {
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      clientId,
      // The embedded broker knows no later one.
      protocolVersion: 4,
      clean: true,
      reconnectPeriod: reconnectAfter,
      resubscribe: false,
      queueQoSZero: false,
      ...(will !== null && { will: { ...will, payload: Buffer.from(will.payload), qos: 1 as const } }),
    });
    const greeting = async (): Promise<void> => {
      await client.subscribeAsync([...filters], { qos: 1 });
      greet();
      this.#firstOnline.resolve();
    };
    client.on("connect", () => {
      greeting().catch((error: Error) => {
        log.debug({ clientId, reason: error.message }, "simulated charger lost its broker while greeting");
      });
    });
    client.on("error", (error) => {
      log.debug({ clientId, reason: error.message }, "simulated charger cannot reach its broker");
    });
    client.on("message", (topic, payload, { retain }) => hear(topic, payload, retain));
    return client;
  }
}
