import type { Logger } from "pino";
import { millis, seconds, type ChargerId, type Instant, type Millis } from "../domain/units.ts";
import { nativeTopics } from "../chargers/native/messages.ts";
import { switchedOn, type ChargerTraits, type PluggedVehicle, type SimulatedCharger } from "./charger.ts";
import { MqttCharger, type ChargerFaults, type ReceivedSet } from "./mqttCharger.ts";

/** One outlet, what is plugged into it, and how it disobeys. */
export interface ChargerSetup {
  readonly traits: ChargerTraits;
  readonly vehicle: PluggedVehicle | null;
  readonly faults?: ChargerFaults;
}

/** Where the simulated chargers of a site live. */
export interface SimulatedChargersOptions {
  /** Of the broker, e.g. mqtt://127.0.0.1:1883. */
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly prefix: string;
  readonly site: string;
  readonly chargers: readonly ChargerSetup[];
  readonly now: () => Instant;
  readonly log: Logger;
  /** Absent: 2 s. Changes are told at once. */
  readonly telemetryEvery?: Millis;
  /** Absent: 1 s. */
  readonly reconnectAfter?: Millis;
}

/** How often the physics is looked at. */
const TICK_MS = 250;

/** Native chargers with vehicles, each a real MQTT client that reconnects by itself. */
export class SimulatedChargers implements AsyncDisposable {
  readonly #chargers: ReadonlyMap<ChargerId, MqttCharger>;
  readonly #ticking: NodeJS.Timeout;

  private constructor(chargers: ReadonlyMap<ChargerId, MqttCharger>) {
    this.#chargers = chargers;
    this.#ticking = setInterval(() => {
      for (const charger of chargers.values()) charger.tick();
    }, TICK_MS);
  }

  /** Starts connecting at once; `whenOnline` says when all are there. Throws for an id that cannot be a topic. */
  static start(options: SimulatedChargersOptions): SimulatedChargers {
    const {
      prefix,
      site,
      chargers,
      now,
      telemetryEvery = seconds(2),
      reconnectAfter = millis(1000),
    } = options;
    const plugs = chargers.map(({ traits, vehicle, faults = {} }) => {
      const topics = nativeTopics(prefix, site, traits.id);
      if (topics === null) throw new Error(`${prefix}/${site}/${traits.id} cannot be a topic`);
      return { model: switchedOn(traits, vehicle, now()), topics, faults };
    });
    const connected = plugs.map(({ model, topics, faults }) => {
      const clientId = `sim-${site}-${model.traits.id}`;
      const charger = new MqttCharger(model, {
        ...options,
        clientId,
        topics,
        telemetryEvery,
        reconnectAfter,
      });
      charger.faults = faults;
      return [model.traits.id, charger] as const;
    });
    return new SimulatedChargers(new Map(connected));
  }

  /** Every charger was subscribed and had said `true` at least once. Waits as long as there is no broker. */
  async whenOnline(): Promise<void> {
    await Promise.all([...this.#chargers.values()].map((charger) => charger.whenOnline()));
  }

  /** One charger, to look into, to plug into or to break. Throws for an unknown id. */
  at(id: ChargerId): MqttCharger {
    const charger = this.#chargers.get(id);
    if (!charger) throw new Error(`no simulated charger ${id}`);
    return charger;
  }

  /** What a charger is and does now. */
  model(id: ChargerId): SimulatedCharger {
    return this.at(id).model;
  }

  /** Every set message that came to a charger, oldest first. */
  received(id: ChargerId): readonly ReceivedSet[] {
    return this.at(id).received;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#ticking);
    await Promise.all([...this.#chargers.values()].map((charger) => charger[Symbol.asyncDispose]()));
  }
}
