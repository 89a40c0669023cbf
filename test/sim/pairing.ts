import { decodeMessage as hearMessage } from "../../src/chargers/profile/decodeMessage.ts";
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
import { keepalivesOf } from "../../src/chargers/profile/topics.ts";
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
  hear,
  type SimulatedModel,
  simulatedModel,
  type MakeFaults,
  tells,
} from "../../src/sim/simulatedModel.ts";
import { boundTo } from "../chargers/profile/aTrial.ts";

const START = instant(Date.UTC(2026, 10, 21, 12));
const SECOND = millis(1000);

/** Parameters that every simulated make can be placed with. */
export const PLACES: Readonly<Record<string, Params>> = {
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
  readonly faults?: MakeFaults;
}

/** The profile engine and a simulated charger of its make, face to face in virtual time, without a broker. */
export class Pair {
  readonly bound: ProfileInstance;
  now: Instant = START;
  made: SimulatedModel;
  standing: DriverKnowledge = { acquired: false, pause: "none", phases: null };
  #stands = NOTHING_STANDS;
  telemetry: Telemetry = { at: START };
  /** As long as we are there, keepalives are said. */
  talking = true;
  readonly refusals: string[] = [];
  readonly #ear: TelemetryMap;
  readonly #memory = new Map<string, string>();
  readonly #said = new Map<string, string>();
  readonly #kept = new Map<string, Instant>();
  readonly #reported: Reported;

  constructor({ profile, maxCurrent = 32, vehicle = BUS, faults = {} }: Pairing) {
    this.bound = boundTo(profile, { ...PLACES[profile], maxCurrentA: maxCurrent });
    this.#ear = compileTelemetry(this.bound);
    this.#reported = new Reported(this.bound);
    const make = MODELS.get(profile)?.(this.bound.values);
    if (make === undefined) throw new Error(`${profile} cannot be simulated`);
    const most = amperes(maxCurrent);
    const traits = { ...TRAITS, maxCurrent: most, ownDefault: most };
    this.made = simulatedModel(make, switchedOn(traits, vehicle, START), faults);
  }

  /** What the outlet lets through, A per phase. */
  get limit(): number {
    return limitOf(this.made.charger);
  }

  get drawn(): number {
    return this.made.charger.drawn;
  }

  /** One message to it, and what it answers. */
  say(topic: string, payload: string): void {
    const { charger, answers } = hear(this.made, topic, payload, this.now);
    this.made = charger;
    this.#listen(answers);
  }

  get means(): Signals {
    return currentSignals(this.#stands);
  }

  order(desired: Desired): void {
    if (!this.standing.acquired && desired.kind !== "release") this.#reported.take();
    const bound = { ...this.bound, reported: this.#reported.values };
    const orders = ordersFor(desired, this.standing, bound, this.now);
    if (!orders.ok) throw new Error(orders.reason);
    for (const { topic, payload } of orders.publishes) this.say(topic, payload);
    this.standing = orders.after;
  }

  /** Second by second. */
  pass(span: Millis, each: () => void = () => {}): void {
    const until = after(this.now, span);
    for (; this.now < until; this.now = after(this.now, SECOND)) {
      this.#tick();
      each();
    }
    this.#tick();
  }

  #tick(): void {
    if (this.talking) this.#keepAlive();
    const { charger, answers } = advance(this.made, this.now);
    this.made = charger;
    this.#listen(answers);
    const news = tells(charger).filter(
      ({ topic, payload }) => charger.make.tellsAlways || this.#said.get(topic) !== payload,
    );
    for (const { topic, payload } of news) this.#said.set(topic, payload);
    this.#listen(news);
  }

  #keepAlive(): void {
    for (const { every, publishAt } of keepalivesOf(this.bound)) {
      const { topic, payload } = publishAt(this.now, false);
      const last = this.#kept.get(topic);
      if (last !== undefined && this.now < after(last, every)) continue;
      this.#kept.set(topic, this.now);
      this.say(topic, payload);
    }
  }

  #listen(messages: readonly Message[]): void {
    for (const { topic, payload } of messages) {
      this.#reported.record(topic, payload, false);
      const { signals: means, answer } = hearMessage(this.#ear, this.#memory, topic, payload);
      if (answer?.accepted === false) this.refusals.push(answer.reason ?? "");
      const told = telemetryOf(means, this.#stands, this.bound.electrics.phases, this.now);
      this.#stands = folded(this.#stands, means);
      this.telemetry = { ...this.telemetry, ...told };
    }
  }
}
