import { connect, type IClientOptions, type MqttClient } from "mqtt";

import { waitFor } from "./waitFor.ts";

/** One message as it came to a subscriber. */
export interface Heard {
  readonly topic: string;
  readonly text: string;
  readonly qos: number;
  /** As it was published, where the broker speaks MQTT 5; else only for what waited at the broker. */
  readonly retain: boolean;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A command as DESIGN 6.2 spells it. */
export interface SetPayload {
  readonly v: number;
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
  readonly kind: string;
  readonly value: number | null;
  readonly unit: string | null;
  readonly until: string | null;
  readonly lease: number;
  readonly vehicle: string | null;
  readonly event: string | null;
}

/** A plain MQTT client that hears everything at a broker, and comes back after any outage. */
export class Floor implements AsyncDisposable {
  readonly heard: Heard[] = [];
  readonly #client: MqttClient;
  #subscribed = false;

  private constructor(url: string, options: IClientOptions) {
    this.#client = connect(url, { reconnectPeriod: 50, resubscribe: false, ...options });
    const rap = options.protocolVersion === 5;
    this.#client.on("error", () => undefined);
    this.#client.on("close", () => (this.#subscribed = false));
    this.#client.on("connect", () => {
      this.#client.subscribe("#", rap ? { qos: 2, rap } : { qos: 2 }, (error) => (this.#subscribed = !error));
    });
    this.#client.on("message", (topic, payload, { qos, retain }) => {
      this.heard.push({ topic, text: payload.toString(), qos, retain, at: Date.now() });
    });
  }

  static async at(url: string, options: IClientOptions = { protocolVersion: 5 }): Promise<Floor> {
    const floor = new Floor(url, options);
    await floor.listening();
    return floor;
  }

  /** Once it is (again) subscribed. */
  async listening(): Promise<void> {
    await waitFor(() => this.#subscribed);
  }

  /** Messages on topics that end like this, oldest first. */
  on(ending: string): readonly Heard[] {
    return this.heard.filter(({ topic }) => topic.endsWith(ending));
  }

  /** All commands to a charger, oldest first. */
  sets(charger: string): readonly (Heard & { readonly set: SetPayload })[] {
    return this.on(`/chargers/${charger}/set`).map((heard) => ({ ...heard, set: JSON.parse(heard.text) }));
  }

  /** All commands to anyone. */
  get commands(): readonly Heard[] {
    return this.on("/set");
  }

  /** `16 A EV-1`, `release EV-1` ..., oldest first. */
  told(charger: string): readonly string[] {
    return this.sets(charger).map(({ set: { kind, value, unit, event } }) =>
      value === null ? `${kind} ${event}` : `${value} ${unit} ${event}`,
    );
  }

  /** Waits for the `count`th command to a charger. */
  async nth(
    charger: string,
    count: number,
    timeoutMs = 30_000,
  ): Promise<Heard & { readonly set: SetPayload }> {
    return waitFor(() => this.sets(charger)[count - 1], { timeoutMs });
  }

  async publish(topic: string, payload: string, retain = false): Promise<void> {
    await this.#client.publishAsync(topic, payload, { qos: 1, retain });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.endAsync(true);
  }
}
