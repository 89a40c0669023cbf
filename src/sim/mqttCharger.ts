import type { Logger } from "pino";
import type { Telemetry } from "../domain/telemetry.ts";
import { after, type Instant, type Millis } from "../domain/units.ts";
import { readSet, writeAck, writeTelemetry, type NativeTopics } from "../chargers/native/messages.ts";
import type { SetMessage } from "../chargers/native/payload.ts";
import { plugged, rebooted, step, type PluggedVehicle, type SimulatedCharger } from "./charger.ts";
import { telemetryOf } from "./charger.ts";
import { FloorClient } from "./mqttModel.ts";
import { accept, orderExpires, type Acceptance } from "./charger.ts";

/** How a charger disobeys. Any of these together. */
export interface ChargerFaults {
  /** Accepts what it is told and goes on as before. */
  readonly ignoresSetpoints?: boolean;
  /** Does what it is told and says nothing. */
  readonly neverAcks?: boolean;
  /** Answers every set with this reason. */
  readonly refuses?: string;
}

/** One message on `set`, as it arrived. */
export interface ReceivedSet {
  readonly at: Instant;
  /** Null: not readable. */
  readonly set: SetMessage | null;
  readonly retained: boolean;
}

/** How a charger reaches its broker. */
export interface MqttChargerOptions {
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly clientId: string;
  readonly topics: NativeTopics;
  readonly telemetryEvery: Millis;
  readonly reconnectAfter: Millis;
  readonly now: () => Instant;
  readonly log: Logger;
}

/** One simulated charger with a connection and a last will of its own, as DESIGN 6.2 has it. */
export class MqttCharger implements AsyncDisposable {
  readonly received: ReceivedSet[] = [];
  /** May be changed at any time. */
  faults: ChargerFaults = {};
  readonly #options: MqttChargerOptions;
  readonly #client: FloorClient;
  #model: SimulatedCharger;
  #told: Telemetry | null = null;

  constructor(model: SimulatedCharger, options: MqttChargerOptions) {
    this.#model = model;
    this.#options = options;
    const { topics } = options;
    this.#client = new FloorClient({
      ...options,
      filters: [topics.set],
      will: { topic: topics.online, payload: "false", retain: true },
      greet: () => {
        this.#client.say({ topic: topics.online, payload: "true", retain: true }, 1);
        this.#tell(telemetryOf(this.model));
      },
      hear: (_topic, payload, retain) => this.#obey(payload, retain),
    });
  }

  /** The charger as it stands now. */
  get model(): SimulatedCharger {
    this.#model = step(this.#model, this.#options.now());
    return this.#model;
  }

  /** Once it was subscribed and had said `true`, or was disposed of before. */
  whenOnline(): Promise<void> {
    return this.#client.whenOnline();
  }

  /** Lets time pass; tells what changed, and every `telemetryEvery` how things stand. */
  tick(): void {
    const telemetry = telemetryOf(this.model);
    const told = this.#told;
    const due = told === null || telemetry.at >= after(told.at, this.#options.telemetryEvery);
    if (due || differs(told, telemetry)) this.#tell(telemetry);
  }

  /** Null: the plug is pulled. */
  plug(vehicle: PluggedVehicle | null): void {
    this.#model = plugged(this.#model, vehicle, this.#options.now());
    this.tick();
  }

  /** The connection is cut with no goodbye: the broker speaks the last will. It goes on charging. */
  async dropOff(): Promise<void> {
    await this.#client.dropOff();
  }

  comeBack(): void {
    this.#client.comeBack();
  }

  /** Off and on again: the order and what it last accepted are forgotten, the meter is not. */
  async reboot(): Promise<void> {
    await this.dropOff();
    this.#model = rebooted(this.#model, this.#options.now());
    this.comeBack();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
  }

  #obey(payload: Buffer, retained: boolean): void {
    const at = this.#options.now();
    const set = readSet(payload) ?? null;
    this.received.push({ at, set, retained });
    if (set === null) return;
    const answer = this.#answer(set, at);
    if (answer.accepted && this.faults.ignoresSetpoints !== true) this.#model = answer.charger;
    const value = answer.accepted ? answer.value : null;
    const reason = answer.accepted ? null : answer.reason;
    if (this.faults.neverAcks !== true)
      this.#client.say(
        {
          topic: this.#options.topics.ack,
          payload: writeAck({ id: set.id, accepted: answer.accepted, value, reason }),
          retain: false,
        },
        1,
      );
    this.tick();
  }

  #answer({ epoch, seq, desired, until, lease }: SetMessage, at: Instant): Acceptance {
    if (this.faults.refuses !== undefined) return { accepted: false, reason: this.faults.refuses };
    return accept(this.#model, { epoch, seq, desired, expires: orderExpires(at, until, lease) }, at);
  }

  #tell(telemetry: Telemetry): void {
    const message = {
      topic: this.#options.topics.telemetry,
      payload: writeTelemetry(telemetry),
      retain: false,
    };
    if (this.#client.say(message)) this.#told = telemetry;
  }
}

const differs = (before: Telemetry, after: Telemetry): boolean =>
  before.state !== after.state ||
  before.limitA !== after.limitA ||
  before.vehicle !== after.vehicle ||
  before.currentsA?.[0] !== after.currentsA?.[0];
