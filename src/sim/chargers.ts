import type { Logger } from "pino";
import { millis, seconds, type ChargerId, type Instant, type Millis } from "../domain/units.ts";
import { nativeTopics } from "../chargers/native/messages.ts";
import { switchedOn, type ChargerTraits, type PluggedVehicle, type SimulatedCharger } from "./charger.ts";
import { MqttCharger, type ChargerFaults, type ReceivedSet } from "./mqttCharger.ts";

/** A charger, the vehicle at its plug, and its faults. */
export interface ChargerSetup {
  readonly traits: ChargerTraits;
  readonly vehicle: PluggedVehicle | null;
  readonly faults?: ChargerFaults;
}

/** Broker, site and chargers of a simulation. */
export interface SimulatedChargersOptions {
  /** Broker, e.g. mqtt://127.0.0.1:1883. */
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly prefix: string;
  readonly site: string;
  readonly chargers: readonly ChargerSetup[];
  readonly now: () => Instant;
  readonly log: Logger;
  /** Absent: 2 s. Changes are published at once. */
  readonly telemetryEvery?: Millis;
  /** Absent: 1 s. */
  readonly reconnectAfter?: Millis;
}

/** Step of the simulated physics. */
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

  /** Starts to connect at once; see `whenOnline`. Throws for an id that cannot be part of a topic. */
  static start(options: SimulatedChargersOptions): SimulatedChargers {
    const {
      prefix,
      site,
      chargers,
      now,
      telemetryEvery = seconds(2),
      reconnectAfter = millis(1000),
    } = options;
    const bays = chargers.map(({ traits, vehicle, faults = {} }) => {
      const topics = nativeTopics(prefix, site, traits.id);
      if (topics === null) throw new Error(`${prefix}/${site}/${traits.id} cannot be a topic`);
      return { model: switchedOn(traits, vehicle, now()), topics, faults };
    });
    const connected = bays.map(({ model, topics, faults }) => {
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

  /** Resolves when every charger has subscribed and published `online` once. Waits while there is no broker. */
  async whenOnline(): Promise<void> {
    await Promise.all([...this.#chargers.values()].map((charger) => charger.whenOnline()));
  }

  /** Throws for an unknown id. */
  at(id: ChargerId): MqttCharger {
    const charger = this.#chargers.get(id);
    if (!charger) throw new Error(`no simulated charger ${id}`);
    return charger;
  }

  /** State of a charger now. Throws for an unknown id. */
  model(id: ChargerId): SimulatedCharger {
    return this.at(id).model;
  }

  /** Every `set` message that a charger received, oldest first. */
  received(id: ChargerId): readonly ReceivedSet[] {
    return this.at(id).received;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#ticking);
    await Promise.all([...this.#chargers.values()].map((charger) => charger[Symbol.asyncDispose]()));
  }
}
