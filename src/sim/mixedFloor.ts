import type { Logger } from "pino";
import { type Instant, millis } from "../core/units.ts";
import type { ChargerSetup } from "./chargers.ts";
import { switchedOn } from "./charger.ts";
import type { MakeFaults } from "./madeCharger.ts";
import { MAKES } from "./makes.ts";
import type { Params } from "./makes/make.ts";
import { MqttMake } from "./mqttMake.ts";

/** One outlet of a make, and how it disobeys. */
export interface MadeSetup extends Omit<ChargerSetup, "faults"> {
  /** Name of its profile, and that profile's parameters. */
  readonly profile: string;
  readonly params: Params;
  readonly faults?: MakeFaults;
}

export interface MixedFloorOptions {
  /** Of the broker, e.g. mqtt://127.0.0.1:1883. */
  readonly url: string;
  readonly chargers: readonly MadeSetup[];
  readonly now: () => Instant;
  readonly log: Logger;
}

/** How often the physics is looked at, ms. */
const TICK = 250;
const RECONNECT = millis(1000);

/** Chargers of many makes on one broker, each a client of its own on its make's topics. */
export class MixedFloor implements AsyncDisposable {
  readonly chargers: readonly MqttMake[];
  readonly #ticking: NodeJS.Timeout;

  private constructor(chargers: readonly MqttMake[]) {
    this.chargers = chargers;
    this.#ticking = setInterval(() => {
      for (const charger of chargers) charger.tick();
    }, TICK);
  }

  /** Starts connecting at once. Throws for a profile that cannot be simulated. */
  static start({ chargers, ...options }: MixedFloorOptions): MixedFloor {
    const made = chargers.map(({ profile, params, traits, vehicle, faults = {} }) => {
      const make = MAKES.get(profile);
      if (make === undefined) throw new Error(`${profile} cannot be simulated`);
      const clientId = `sim-${profile}-${traits.id}`;
      const model = switchedOn(traits, vehicle, options.now());
      return new MqttMake(make(params), model, faults, { ...options, clientId, reconnectAfter: RECONNECT });
    });
    return new MixedFloor(made);
  }

  /** Every charger was there at least once. Waits as long as there is no broker. */
  async whenOnline(): Promise<void> {
    await Promise.all(this.chargers.map((charger) => charger.whenOnline()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#ticking);
    await Promise.all(this.chargers.map((charger) => charger[Symbol.asyncDispose]()));
  }
}
