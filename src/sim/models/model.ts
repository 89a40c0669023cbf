import type { Json } from "../../domain/audit.ts";
import type { Desired, Setpoint } from "../../domain/setpoint.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { type Amperes, amperes, type Instant, type Millis } from "../../domain/units.ts";
import { type ChargerTraits, type PluggedVehicle, type SimulatedCharger, telemetryOf } from "../charger.ts";

/** An MQTT message that a charger publishes. */
export interface Message {
  readonly topic: string;
  readonly payload: string;
  readonly retain: boolean;
}

/** Commanded state of a charger, the same for every model. */
export interface LastOrder {
  /** Last accepted level. Null: none, so the charger's own maximum holds. */
  readonly level: Setpoint | null;
  readonly paused: boolean;
  /** Mode in the model's own terms. */
  readonly mode: string;
  /** Phases that it was switched to. Null: all. */
  readonly phases: number | null;
  /** Accepted level that is applied only at `until`. Null: none. */
  readonly waiting: { readonly level: Setpoint; readonly until: Instant } | null;
  /** Last keepalive of its controller; by the controller's clock where the message carries it. Null: none yet. */
  readonly masterAt: Instant | null;
}

/** Effect of a message: the new order, and the answers. Null: ignored without an answer. */
export type OrderEffect = { readonly order: LastOrder; readonly answers: readonly Message[] } | null;

/** A message as a charger receives it. */
export interface ReceivedMessage {
  readonly topic: string;
  readonly payload: string;
  readonly at: Instant;
  readonly traits: ChargerTraits;
  /** A vehicle is plugged in. */
  readonly plugged: boolean;
  /** Time since the charger was switched on. */
  readonly upFor: Millis;
}

/** Values that a model can publish. */
export interface View {
  readonly order: LastOrder;
  readonly charger: SimulatedCharger;
  /** Measured values, rounded as a native charger publishes them. */
  readonly native: Telemetry;
  /** A per phase; 0 for unused phases. */
  readonly currents: readonly [number, number, number];
  readonly voltages: readonly [number, number, number];
  /** Accepted level, also while paused. Without one: the charger's own maximum. */
  readonly level: Amperes;
  readonly vehicle: PluggedVehicle | null;
  readonly at: Instant;
  readonly bootedAt: Instant;
  /** Number of starts so far. */
  readonly boots: number;
}

/** Behaviour of one charger model on its topics, as its documents describe it. Pure, so it also runs in virtual time. */
export interface Model {
  /** State as delivered by the manufacturer. */
  readonly fresh: LastOrder;
  /** Topic filters of its subscriptions. */
  readonly filters: readonly string[];
  /** Null: it has no last will. */
  readonly will: Message | null;
  readonly receive: (order: LastOrder, received: ReceivedMessage) => OrderEffect;
  /** Absent: no message restarts it. */
  readonly isReboot?: (topic: string, payload: string) => boolean;
  /** Effect of elapsed time on an order. */
  readonly age: (order: LastOrder, now: Instant) => LastOrder;
  /** Setpoint that results from an order. */
  readonly desired: (order: LastOrder, traits: ChargerTraits) => Desired;
  /** Order that remains after a power cut. */
  readonly rebooted: (order: LastOrder) => LastOrder;
  /** Order that remains when the vehicle leaves. */
  readonly unplugged: (order: LastOrder) => LastOrder;
  /** Messages on all its topics. */
  readonly messages: (view: View) => readonly Message[];
  /** True: publishes everything each second. False: publishes changes. */
  readonly publishesAll: boolean;
}

export const NO_ORDER: LastOrder = {
  level: null,
  paused: false,
  mode: "",
  phases: null,
  waiting: null,
  masterAt: null,
};

/** Effect on a model that keeps its order. */
export const unchanged = (order: LastOrder): LastOrder => order;

/** Pause, or the level, or its own maximum. */
export function desiredOf({ paused, level }: LastOrder): Desired {
  if (paused) return { kind: "pause" };
  return level ?? { kind: "release" };
}

export const inAmperes = (value: number): Setpoint => ({ kind: "current", amperes: amperes(value) });

export const accepted = (order: LastOrder, ...answers: readonly Message[]): OrderEffect => ({
  order,
  answers,
});

/** A text is sent as it is, anything else as JSON. */
const serialized = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

export const retained = (topic: string, value: Json): Message => ({
  topic,
  payload: serialized(value),
  retain: true,
});
export const live = (topic: string, value: Json): Message => ({
  topic,
  payload: serialized(value),
  retain: false,
});

/** Undefined: not JSON. */
export function jsonIn(payload: string): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    return undefined;
  }
}

/** Member of a JSON value at a path of names and indexes. Undefined: missing. */
export const memberOf = (json: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined),
    json,
  );

/** Last level of a topic. */
export const lastLevel = (topic: string): string => topic.slice(topic.lastIndexOf("/") + 1);

/** Bounds included. */
export const isWithin = (value: unknown, least: number, most: number): value is number =>
  typeof value === "number" && value >= least && value <= most;

export const isWholeWithin = (value: unknown, least: number, most: number): value is number =>
  Number.isInteger(value) && isWithin(value, least, most);

/** Identity of this kind. Null: no vehicle, or it has none of this kind. */
export const identityOf = ({ vehicle }: View, kind: string): string | null =>
  vehicle?.identity?.kind === kind ? vehicle.identity.value : null;

/** Values of a charger by its own clock. */
export function viewOf(
  order: LastOrder,
  charger: SimulatedCharger,
  { bootedAt, boots }: Pick<View, "bootedAt" | "boots">,
): View {
  const { traits, vehicle, at } = charger;
  const native = telemetryOf(charger);
  const [l1 = 0, l2 = 0, l3 = 0] = native.currentsA ?? [];
  const { voltage } = traits;
  return {
    order,
    charger,
    native,
    currents: [l1, l2, l3],
    voltages: [voltage, voltage, voltage],
    level: levelIn(order, traits),
    vehicle,
    at,
    bootedAt,
    boots,
  };
}

function levelIn({ level }: LastOrder, { maxCurrent, phases, voltage }: ChargerTraits): Amperes {
  if (level === null) return maxCurrent;
  const current = level.kind === "current" ? level.amperes : level.watts / phases / voltage;
  return amperes(Math.max(0, Math.min(current, maxCurrent)));
}

/** The parameters of a profile, by name. */
export type Params = ReadonlyMap<string, string | number | null>;

/** A parameter as text. Throws if it is missing: the profile's own check rejects that earlier. */
export function param(params: Params, name: string): string {
  const value = params.get(name);
  if (value == null) throw new Error(`no parameter ${name}`);
  return String(value);
}
