import { connect, type MqttClient } from "mqtt";
import type { Logger } from "pino";

import type { Millis, ChargerId, Instant } from "../domain/units.ts";
import type { PluggedVehicle, SimulatedCharger } from "./charger.ts";
import type { Message, Model } from "./models/model.ts";
import {
  advance,
  hear,
  type SimulatedModel,
  simulatedModel,
  type MakeFaults,
  powerCycled,
  type Reaction,
  replugged,
  tells,
} from "./simulatedModel.ts";

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

/** How a charger of a make reaches its broker. */
export interface MqttMakeOptions {
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly clientId: string;
  readonly reconnectAfter: Millis;
  readonly now: () => Instant;
  readonly log: Logger;
}

const TELL_ALL_MS = 1000;

/** One simulated charger of a make, on its make's own topics. */
export class MqttModel implements AsyncDisposable {
  readonly id: ChargerId;
  readonly #now: () => Instant;
  readonly #client: FloorClient;
  readonly #told = new Map<string, string>();
  #made: SimulatedModel;
  #toldAllAt: Instant;

  constructor(make: Model, charger: SimulatedCharger, faults: MakeFaults, options: MqttMakeOptions) {
    this.id = charger.traits.id;
    this.#now = options.now;
    this.#made = simulatedModel(make, charger, faults);
    this.#toldAllAt = charger.at;
    this.#client = new FloorClient({
      ...options,
      filters: make.filters,
      will: make.will,
      greet: () => {
        this.#told.clear();
        this.tick();
      },
      hear: (topic, payload) => {
        this.#apply(hear(this.#made, topic, payload.toString(), this.#now()));
        this.tick();
      },
    });
  }

  /** The charger as it stands now. */
  get model(): SimulatedCharger {
    this.#apply(advance(this.#made, this.#now()));
    return this.#made.charger;
  }

  set faults(faults: MakeFaults) {
    this.#made = { ...this.#made, faults };
  }

  whenOnline(): Promise<void> {
    return this.#client.whenOnline();
  }

  /** Lets time pass, and tells what is to be told. */
  tick(): void {
    const now = this.#now();
    this.#apply(advance(this.#made, now));
    const tellsAll = this.#made.make.tellsAlways && now >= this.#toldAllAt + TELL_ALL_MS;
    if (tellsAll) this.#toldAllAt = now;
    for (const message of tells(this.#made)) {
      if (tellsAll || this.#told.get(message.topic) !== message.payload) this.#tell(message);
    }
  }

  /** Null: the plug is pulled. */
  plug(vehicle: PluggedVehicle | null): void {
    this.#made = replugged(this.#made, vehicle, this.#now());
    this.tick();
  }

  /** The connection is cut with no goodbye. It goes on charging. */
  async dropOff(): Promise<void> {
    await this.#client.dropOff();
  }

  comeBack(): void {
    this.#client.comeBack();
  }

  /** Off and on again. */
  async reboot(): Promise<void> {
    await this.dropOff();
    this.#made = powerCycled(this.#made, this.#now());
    this.comeBack();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
  }

  #apply({ charger, answers }: Reaction): void {
    this.#made = charger;
    for (const answer of answers) this.#client.say(answer, 1);
  }

  #tell(message: Message): void {
    if (this.#client.say(message)) this.#told.set(message.topic, message.payload);
  }
}
