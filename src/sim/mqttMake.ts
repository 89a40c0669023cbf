import type { Logger } from "pino";
import type { ChargerId, Instant, Millis } from "../core/units.ts";
import type { PluggedVehicle, SimulatedCharger } from "./charger.ts";
import { FloorClient } from "./floorClient.ts";
import {
  advance,
  hear,
  type MadeCharger,
  madeCharger,
  type MakeFaults,
  powerCycled,
  type Reaction,
  replugged,
  tells,
} from "./madeCharger.ts";
import type { Make, Message } from "./makes/make.ts";

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
export class MqttMake implements AsyncDisposable {
  readonly id: ChargerId;
  readonly #now: () => Instant;
  readonly #client: FloorClient;
  readonly #told = new Map<string, string>();
  #made: MadeCharger;
  #toldAllAt: Instant;

  constructor(make: Make, charger: SimulatedCharger, faults: MakeFaults, options: MqttMakeOptions) {
    this.id = charger.traits.id;
    this.#now = options.now;
    this.#made = madeCharger(make, charger, faults);
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
