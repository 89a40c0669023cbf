import { connect, type MqttClient } from "mqtt";
import type { Logger } from "pino";

import type { Millis, ChargerId, Instant } from "../domain/units.ts";
import { type PluggedVehicle, rebooted, type SimulatedCharger } from "./charger.ts";
import type { Message, Model } from "./models/model.ts";
import {
  advance,
  deliver,
  type SimulatedModel,
  simulatedModel,
  type ModelFaults,
  powerCycled,
  type Reaction,
  replugged,
  messagesOf,
} from "./simulatedModel.ts";

/** Connection of a simulated charger, and its handlers. */
export interface FloorClientOptions {
  readonly url: string;
  readonly clientId: string;
  readonly reconnectAfter: Millis;
  readonly log: Logger;
  readonly filters: readonly string[];
  readonly will: Message | null;
  /** Called after each connect, once subscribed: publishing earlier could miss an answer. */
  readonly onSubscribed: () => void;
  readonly onMessage: (topic: string, payload: Buffer, retained: boolean) => void;
}

/** Time without power and connection of a charger that restarts, ms. */
const RESTARTS_FOR = 3000;

/** MQTT client of one simulated charger. It reconnects by itself and queues no publish. */
export class FloorClient implements AsyncDisposable {
  readonly #options: FloorClientOptions;
  readonly #firstOnline = Promise.withResolvers<void>();
  #client: MqttClient | null;
  /** Ends a restart. Null: none is under way. */
  #starting: NodeJS.Timeout | null = null;

  constructor(options: FloorClientOptions) {
    this.#options = options;
    this.#client = this.#connect();
  }

  /** Resolves after the first `onSubscribed`, or when disposed of. */
  whenOnline(): Promise<void> {
    return this.#firstOnline.promise;
  }

  /** False: not connected. Never queued: the message would be outdated when it arrived. */
  publish({ topic, payload, retain }: Message, qos: 0 | 1 = 0): boolean {
    const client = this.#client;
    if (!client?.connected) return false;
    client.publish(topic, payload, { qos, retain });
    return true;
  }

  /** Cuts the connection without DISCONNECT: the broker publishes the last will. */
  async dropOff(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    await client?.endAsync(true);
  }

  comeBack(): void {
    this.#client ??= this.#connect();
  }

  get isStarting(): boolean {
    return this.#starting !== null;
  }

  /** Away for some seconds. `onStart`: called before it connects again. */
  async restart(onStart: () => void): Promise<void> {
    if (this.isStarting) return;
    this.#starting = setTimeout(() => {
      this.#starting = null;
      onStart();
      this.comeBack();
    }, RESTARTS_FOR);
    await this.dropOff();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#starting !== null) clearTimeout(this.#starting);
    await this.dropOff();
    this.#firstOnline.resolve();
  }

  #connect(): MqttClient {
    const { url, clientId, reconnectAfter, log, filters, will, onSubscribed, onMessage } = this.#options;
    const client = connect(url, {
      clientId,
      // The embedded broker supports MQTT 3.1.1 only.
      protocolVersion: 4,
      clean: true,
      reconnectPeriod: reconnectAfter,
      resubscribe: false,
      queueQoSZero: false,
      ...(will !== null && { will: { ...will, payload: Buffer.from(will.payload), qos: 1 as const } }),
    });
    const subscribe = async (): Promise<void> => {
      await client.subscribeAsync([...filters], { qos: 1 });
      onSubscribed();
      this.#firstOnline.resolve();
    };
    client.on("connect", () => {
      subscribe().catch((error: Error) => {
        log.debug({ clientId, reason: error.message }, "simulated charger lost its broker while subscribing");
      });
    });
    client.on("error", (error) => {
      log.debug({ clientId, reason: error.message }, "simulated charger cannot reach its broker");
    });
    client.on("message", (topic, payload, { retain }) => onMessage(topic, payload, retain));
    return client;
  }
}

/** A simulated charger with a connection of its own. */
export abstract class FloorCharger implements AsyncDisposable {
  protected abstract readonly client: FloorClient;

  /** Advances to now and publishes the messages that are due. */
  abstract tick(): void;
  protected abstract replug(vehicle: PluggedVehicle | null): void;
  /** Power is back. What does not survive a power cut is lost. */
  protected abstract switchOn(): void;

  /** Resolves when the charger was online once, or is disposed of. */
  whenOnline(): Promise<void> {
    return this.client.whenOnline();
  }

  /** Null: unplugs the vehicle. */
  plug(vehicle: PluggedVehicle | null): void {
    this.replug(vehicle);
    this.tick();
  }

  /** Cuts the connection without DISCONNECT: the broker publishes the last will. Charging goes on. */
  async dropOff(): Promise<void> {
    await this.client.dropOff();
  }

  comeBack(): void {
    this.client.comeBack();
  }

  /** Power cut. */
  async reboot(): Promise<void> {
    await this.dropOff();
    this.switchOn();
    this.comeBack();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
  }
}

/** Step of the simulated physics, ms. */
const TICK_MS = 250;

/** Simulated chargers that advance together. */
export class Floor<Charger extends FloorCharger> implements AsyncDisposable {
  readonly chargers: readonly Charger[];
  readonly #ticking: NodeJS.Timeout;

  constructor(chargers: readonly Charger[]) {
    this.chargers = chargers;
    this.#ticking = setInterval(() => {
      for (const charger of chargers) charger.tick();
    }, TICK_MS);
  }

  /** Resolves when every charger was online once. Waits while there is no broker. */
  async whenOnline(): Promise<void> {
    await Promise.all(this.chargers.map((charger) => charger.whenOnline()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#ticking);
    await Promise.all(this.chargers.map((charger) => charger[Symbol.asyncDispose]()));
  }
}

/** Connection of a charger with a model. */
export interface MqttModelOptions {
  readonly url: string;
  readonly clientId: string;
  readonly reconnectAfter: Millis;
  readonly now: () => Instant;
  readonly log: Logger;
}

const PUBLISH_ALL_MS = 1000;

/** A simulated charger on the topics of its model. */
export class MqttModel extends FloorCharger {
  readonly id: ChargerId;
  protected readonly client: FloorClient;
  readonly #now: () => Instant;
  readonly #published = new Map<string, string>();
  #simulated: SimulatedModel;
  #publishedAllAt: Instant;

  constructor(model: Model, charger: SimulatedCharger, faults: ModelFaults, options: MqttModelOptions) {
    super();
    this.id = charger.traits.id;
    this.#now = options.now;
    this.#simulated = simulatedModel(model, charger, faults);
    this.#publishedAllAt = charger.at;
    this.client = new FloorClient({
      ...options,
      filters: model.filters,
      will: model.will,
      onSubscribed: () => {
        this.#published.clear();
        this.tick();
      },
      onMessage: (topic, payload) => {
        if (model.isReboot?.(topic, payload.toString()) === true)
          return void this.client.restart(() => this.switchOn());
        this.#apply(deliver(this.#simulated, topic, payload.toString(), this.#now()));
        this.tick();
      },
    });
  }

  /** State of the charger now. */
  get model(): SimulatedCharger {
    // A charger that restarts draws nothing.
    if (this.client.isStarting) return rebooted(this.#simulated.charger, this.#now());
    this.#apply(advance(this.#simulated, this.#now()));
    return this.#simulated.charger;
  }

  set faults(faults: ModelFaults) {
    this.#simulated = { ...this.#simulated, faults };
  }

  tick(): void {
    if (this.client.isStarting) return;
    const now = this.#now();
    this.#apply(advance(this.#simulated, now));
    const publishesAll = this.#simulated.model.publishesAll && now >= this.#publishedAllAt + PUBLISH_ALL_MS;
    if (publishesAll) this.#publishedAllAt = now;
    for (const message of messagesOf(this.#simulated)) {
      if (publishesAll || this.#published.get(message.topic) !== message.payload) this.#publish(message);
    }
  }

  protected replug(vehicle: PluggedVehicle | null): void {
    this.#simulated = replugged(this.#simulated, vehicle, this.#now());
  }

  protected switchOn(): void {
    this.#simulated = powerCycled(this.#simulated, this.#now());
  }

  #apply({ charger, answers }: Reaction): void {
    this.#simulated = charger;
    for (const answer of answers) this.client.publish(answer, 1);
  }

  #publish(message: Message): void {
    if (this.client.publish(message)) this.#published.set(message.topic, message.payload);
  }
}
