import type { Logger } from "pino";

import {
  nativeTopics,
  readReboot,
  readSet,
  writeAck,
  writeTelemetry,
  type NativeTopics,
} from "../chargers/native/messages.ts";
import { orderExpires, type SetMessage } from "../chargers/native/payload.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { millis, seconds, type ChargerId, type Instant, type Millis, after } from "../domain/units.ts";
import {
  switchedOn,
  type ChargerTraits,
  type PluggedVehicle,
  type SimulatedCharger,
  plugged,
  rebooted,
  step,
  telemetryOf,
  accept,
  type Acceptance,
} from "./charger.ts";
import { Floor, FloorCharger, FloorClient } from "./mqttModel.ts";

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

/** Version of the simulated chargers' firmware. */
const FIRMWARE = "simulated 1.0";

/** Native chargers with vehicles, each a real MQTT client that reconnects by itself. */
export class SimulatedChargers extends Floor<MqttCharger> {
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
      return charger;
    });
    return new SimulatedChargers(connected);
  }

  /** Throws for an unknown id. */
  at(id: ChargerId): MqttCharger {
    const charger = this.chargers.find((each) => each.id === id);
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
}

/** Faults of a native charger. They can be combined. */
interface ChargerFaults {
  /** Accepts a setpoint without applying it. */
  readonly ignoresSetpoints?: boolean;
  /** Applies a setpoint without an acknowledgement. */
  readonly neverAcks?: boolean;
  /** Rejects every setpoint with this reason. */
  readonly refuses?: string;
}

/** A message on `set`. */
interface ReceivedSet {
  readonly at: Instant;
  /** Null: malformed. */
  readonly set: SetMessage | null;
  readonly retained: boolean;
}

/** Connection of a native charger. */
interface MqttChargerOptions {
  readonly url: string;
  readonly clientId: string;
  readonly topics: NativeTopics;
  readonly telemetryEvery: Millis;
  readonly reconnectAfter: Millis;
  readonly now: () => Instant;
  readonly log: Logger;
}

/** A simulated native charger with a connection and a last will of its own. */
class MqttCharger extends FloorCharger {
  readonly id: ChargerId;
  readonly received: ReceivedSet[] = [];
  /** Can be changed at any time. */
  faults: ChargerFaults = {};
  readonly #options: MqttChargerOptions;
  protected readonly client: FloorClient;
  #model: SimulatedCharger;
  #published: Telemetry | null = null;
  #startedAt: Instant;

  constructor(model: SimulatedCharger, options: MqttChargerOptions) {
    super();
    this.id = model.traits.id;
    this.#model = model;
    this.#options = options;
    this.#startedAt = options.now();
    const { topics } = options;
    this.client = new FloorClient({
      ...options,
      filters: [topics.set, topics.reboot],
      will: { topic: topics.online, payload: "false", retain: true },
      onSubscribed: () => {
        this.client.publish({ topic: topics.online, payload: "true", retain: true }, 1);
        this.#publishTelemetry(telemetryOf(this.model));
      },
      onMessage: (topic, payload, retain) => {
        if (topic === topics.set) this.#onSet(payload, retain);
        else if (!retain && readReboot(payload) !== undefined) this.#restart();
      },
    });
  }

  /** State of the charger now. */
  get model(): SimulatedCharger {
    // A charger that restarts draws nothing.
    if (!this.client.isStarting) this.#model = step(this.#model, this.#options.now());
    return this.#model;
  }

  /** Advances to now. Publishes telemetry when it changed, and at least every `telemetryEvery`. */
  tick(): void {
    const telemetry = telemetryOf(this.model);
    const last = this.#published;
    const due = last === null || telemetry.at >= after(last.at, this.#options.telemetryEvery);
    if (!this.client.isStarting && (due || differs(last, telemetry))) this.#publishTelemetry(telemetry);
  }

  protected replug(vehicle: PluggedVehicle | null): void {
    this.#model = plugged(this.#model, vehicle, this.#options.now());
  }

  /** The order is lost, the energy counters are kept. */
  protected switchOn(): void {
    this.#startedAt = this.#options.now();
    this.#model = rebooted(this.#model, this.#startedAt);
  }

  #restart(): void {
    this.#model = rebooted(this.#model, this.#options.now());
    void this.client.restart(() => this.switchOn());
  }

  #onSet(payload: Buffer, retained: boolean): void {
    const at = this.#options.now();
    const set = readSet(payload) ?? null;
    this.received.push({ at, set, retained });
    if (set === null) return;
    const answer = this.#answer(set, at);
    if (answer.accepted && this.faults.ignoresSetpoints !== true) this.#model = answer.charger;
    const value = answer.accepted ? answer.value : null;
    const reason = answer.accepted ? null : answer.reason;
    if (this.faults.neverAcks !== true)
      this.client.publish(
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
    return accept(this.#model, { epoch, seq, desired, expires: orderExpires({ until, lease }, at) }, at);
  }

  #publishTelemetry(telemetry: Telemetry): void {
    const message = {
      topic: this.#options.topics.telemetry,
      payload: writeTelemetry({
        ...telemetry,
        firmware: FIRMWARE,
        started: { kind: "time", at: this.#startedAt },
      }),
      retain: false,
    };
    if (this.client.publish(message)) this.#published = telemetry;
  }
}

const differs = (before: Telemetry, after: Telemetry): boolean =>
  before.state !== after.state ||
  before.limitA !== after.limitA ||
  before.vehicle !== after.vehicle ||
  before.currentsA?.[0] !== after.currentsA?.[0];
