import { decodeMessage } from "../../src/chargers/profile/decodeMessage.ts";
import type { ProfileInstance, Params } from "../../src/chargers/profile/instance.ts";
import {
  telemetryOf,
  folded,
  NOTHING_STANDS,
  currentSignals,
} from "../../src/chargers/profile/lastKnownSignals.ts";
import { ordersFor, type DriverKnowledge } from "../../src/chargers/profile/orders.ts";
import { Reported } from "../../src/chargers/profile/reported.ts";
import type { Signals } from "../../src/chargers/profile/signals.ts";
import { type TelemetryMap, compileTelemetry } from "../../src/chargers/profile/telemetryMap.ts";
import { keepalivesOf } from "../../src/chargers/profile/publishes.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import {
  after,
  amperes,
  chargerId,
  type Instant,
  instant,
  type Millis,
  millis,
} from "../../src/domain/units.ts";
import { type ChargerTraits, limitOf, type PluggedVehicle, switchedOn } from "../../src/sim/charger.ts";
import { MODELS } from "../../src/sim/mixedFloor.ts";
import type { Message } from "../../src/sim/models/model.ts";
import {
  advance,
  deliver as deliverTo,
  type SimulatedModel,
  simulatedModel,
  type ModelFaults,
  messagesOf,
} from "../../src/sim/simulatedModel.ts";
import { boundTo } from "../chargers/profile/aTrial.ts";

const START = instant(Date.UTC(2026, 10, 21, 12));
const SECOND = millis(1000);

/** Profile parameters for each model. */
export const PARAMETERS: Readonly<Record<string, Params>> = {
  "go-e-v2": { serial: "000001" },
  "openevse-override": { base: "openevse-a7d4" },
  warp: { prefix: "warp3/AbCd" },
  "openwb-secondary": { parentIp: "192.0.2.1" },
  evcc: { id: "1" },
  "everest-api-v1": { limitsModule: "limits", evseModule: "evse" },
  "everest-api-legacy": { evse: "evse_manager" },
  smartevse: { prefix: "SmartEVSE/1" },
  "victron-evcs": { portalId: "c0619ab1" },
  ocpp2mqtt: { base: "ocpp/charger1" },
};

export const TRAITS: ChargerTraits = {
  id: chargerId("bay-01"),
  phases: 3,
  voltage: 230,
  minCurrent: amperes(6),
  maxCurrent: amperes(32),
  ownDefault: amperes(32),
  ramp: 100,
};

export const BUS: PluggedVehicle = {
  id: null,
  identity: null,
  maxCurrent: amperes(32),
  capacityWh: 300_000,
  soc: 40,
};

export interface Pairing {
  readonly profile: string;
  readonly maxCurrent?: number;
  readonly vehicle?: PluggedVehicle | null;
  readonly faults?: ModelFaults;
}

/** A profile and a simulated charger of its model, connected in virtual time without a broker. */
export class Pair {
  readonly instance: ProfileInstance;
  now: Instant = START;
  simulated: SimulatedModel;
  knowledge: DriverKnowledge = { acquired: false, pause: "none", phases: null };
  #lastKnown = NOTHING_STANDS;
  telemetry: Telemetry = { at: START };
  /** False: the gateway is lost and sends no keepalives. */
  sendsKeepalives = true;
  readonly refusals: string[] = [];
  readonly #telemetryMap: TelemetryMap;
  readonly #lastPayloads = new Map<string, string>();
  readonly #published = new Map<string, string>();
  readonly #keptAliveAt = new Map<string, Instant>();
  readonly #reported: Reported;

  constructor({ profile, maxCurrent = 32, vehicle = BUS, faults = {} }: Pairing) {
    this.instance = boundTo(profile, { ...PARAMETERS[profile], maxCurrentA: maxCurrent });
    this.#telemetryMap = compileTelemetry(this.instance);
    this.#reported = new Reported(this.instance);
    const model = MODELS.get(profile)?.(this.instance.values);
    if (model === undefined) throw new Error(`${profile} cannot be simulated`);
    const most = amperes(maxCurrent);
    const traits = { ...TRAITS, maxCurrent: most, ownDefault: most };
    this.simulated = simulatedModel(model, switchedOn(traits, vehicle, START), faults);
  }

  /** Limit of the charger, A per phase. */
  get limit(): number {
    return limitOf(this.simulated.charger);
  }

  get drawn(): number {
    return this.simulated.charger.drawn;
  }

  /** Delivers one message and decodes the answers. */
  deliver(topic: string, payload: string): void {
    const { charger, answers } = deliverTo(this.simulated, topic, payload, this.now);
    this.simulated = charger;
    this.#decode(answers);
  }

  get signals(): Signals {
    return currentSignals(this.#lastKnown);
  }

  order(desired: Desired): void {
    if (!this.knowledge.acquired && desired.kind !== "release") this.#reported.take();
    const instance = { ...this.instance, reported: this.#reported.values };
    const orders = ordersFor(desired, this.knowledge, instance, this.now);
    if (!orders.ok) throw new Error(orders.reason);
    for (const { topic, payload } of orders.publishes) this.deliver(topic, payload);
    this.knowledge = orders.after;
  }

  /** Advances the time in steps of one second. */
  pass(span: Millis, each: () => void = () => {}): void {
    const until = after(this.now, span);
    for (; this.now < until; this.now = after(this.now, SECOND)) {
      this.#tick();
      each();
    }
    this.#tick();
  }

  #tick(): void {
    if (this.sendsKeepalives) this.#keepAlive();
    const { charger, answers } = advance(this.simulated, this.now);
    this.simulated = charger;
    this.#decode(answers);
    const due = messagesOf(charger).filter(
      ({ topic, payload }) => charger.model.publishesAll || this.#published.get(topic) !== payload,
    );
    for (const { topic, payload } of due) this.#published.set(topic, payload);
    this.#decode(due);
  }

  #keepAlive(): void {
    for (const { every, publishAt } of keepalivesOf(this.instance)) {
      const { topic, payload } = publishAt(this.now, false);
      const last = this.#keptAliveAt.get(topic);
      if (last !== undefined && this.now < after(last, every)) continue;
      this.#keptAliveAt.set(topic, this.now);
      this.deliver(topic, payload);
    }
  }

  #decode(messages: readonly Message[]): void {
    for (const { topic, payload } of messages) {
      this.#reported.record(topic, payload, false);
      const { signals, answer } = decodeMessage(this.#telemetryMap, this.#lastPayloads, topic, payload);
      if (answer?.accepted === false) this.refusals.push(answer.reason ?? "");
      const changes = telemetryOf(signals, this.#lastKnown, this.instance.electrics.phases, this.now);
      this.#lastKnown = folded(this.#lastKnown, signals);
      this.telemetry = { ...this.telemetry, ...changes };
    }
  }
}
