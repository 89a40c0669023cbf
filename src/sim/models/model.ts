import type { Json } from "../../domain/audit.ts";
import type { Desired, Setpoint } from "../../domain/setpoint.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { type Amperes, amperes, type Instant, type Millis } from "../../domain/units.ts";
import { type ChargerTraits, type PluggedVehicle, type SimulatedCharger, telemetryOf } from "../charger.ts";

/** One MQTT message of a charger, or to one. */
export interface Message {
  readonly topic: string;
  readonly payload: string;
  readonly retain: boolean;
}

/** What a charger keeps of what it was told, whatever its make. */
export interface LastOrder {
  /** The level that it took last; null: none, so its own maximum holds. */
  readonly level: Setpoint | null;
  readonly paused: boolean;
  /** In the make's own words. */
  readonly mode: string;
  /** Phases that it was switched to; null: all it has. */
  readonly phases: number | null;
  /** A level that it took and does not act on before a moment; null: there is none. */
  readonly waiting: { readonly level: Setpoint; readonly until: Instant } | null;
  /** The last sign of life of its master, by the master's own clock where that is in it; null: none yet. */
  readonly masterAt: Instant | null;
}

/** What a message did: what holds from now on, and what is answered at once. Null: silently ignored. */
export type Taken = { readonly told: LastOrder; readonly answers: readonly Message[] } | null;

/** A message as it reaches a charger. */
export interface ReceivedMessage {
  readonly topic: string;
  readonly payload: string;
  readonly at: Instant;
  readonly traits: ChargerTraits;
  /** Whether a vehicle is plugged in. */
  readonly plugged: boolean;
  /** Since it was switched on. */
  readonly upFor: Millis;
}

/** All that a charger can tell of. */
export interface View {
  readonly told: LastOrder;
  readonly charger: SimulatedCharger;
  /** What it would tell as a native one: the measured values, rounded. */
  readonly native: Telemetry;
  /** A per phase, with 0 for phases that are not used. */
  readonly currents: readonly [number, number, number];
  readonly voltages: readonly [number, number, number];
  /** The level it holds to, whether or not it is paused: its own maximum where nobody told it one. */
  readonly level: Amperes;
  readonly vehicle: PluggedVehicle | null;
  readonly at: Instant;
  readonly bootedAt: Instant;
}

/** How one make behaves on its topics, as reference documents have it; pure, so that it runs in virtual time too. */
export interface Model {
  /** How it is delivered. */
  readonly fresh: LastOrder;
  /** What it subscribes to. */
  readonly filters: readonly string[];
  /** Null: it has no last will. */
  readonly will: Message | null;
  readonly hears: (told: LastOrder, heard: ReceivedMessage) => Taken;
  /** What its own clock does to what it was told. */
  readonly ages: (told: LastOrder, now: Instant) => LastOrder;
  /** What it does with what it was told. */
  readonly does: (told: LastOrder, traits: ChargerTraits) => Desired;
  /** What is left of it after a power cut. */
  readonly rebooted: (told: LastOrder) => LastOrder;
  /** What is left of it when the vehicle leaves. */
  readonly unplugged: (told: LastOrder) => LastOrder;
  /** All its topics as they stand. */
  readonly tells: (view: View) => readonly Message[];
  /** Whether it tells everything each second; else what changed. */
  readonly tellsAlways: boolean;
}

export const UNTOLD: LastOrder = {
  level: null,
  paused: false,
  mode: "",
  phases: null,
  waiting: null,
  masterAt: null,
};

/** For makes that keep what they were told, whatever happens. */
export const kept = (told: LastOrder): LastOrder => told;

/** Pause, or the level, or its own maximum. */
export function obeyed({ paused, level }: LastOrder): Desired {
  if (paused) return { kind: "pause" };
  return level ?? { kind: "release" };
}

export const inAmperes = (value: number): Setpoint => ({ kind: "current", amperes: amperes(value) });

/** What is told stays as it is, and there is nothing to answer. */
export const taken = (told: LastOrder, ...answers: readonly Message[]): Taken => ({ told, answers });

/** A text goes as it is, everything else as JSON. */
const spelled = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

export const retained = (topic: string, value: Json): Message => ({
  topic,
  payload: spelled(value),
  retain: true,
});
export const live = (topic: string, value: Json): Message => ({
  topic,
  payload: spelled(value),
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

/** A member of a JSON object, down a path of names and places; undefined: it is not there. */
export const memberOf = (json: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined),
    json,
  );

/** The name at the end of a topic. */
export const lastLevel = (topic: string): string => topic.slice(topic.lastIndexOf("/") + 1);

/** Both ends belong to it. */
export const isWithin = (value: unknown, least: number, most: number): value is number =>
  typeof value === "number" && value >= least && value <= most;

export const isWholeWithin = (value: unknown, least: number, most: number): value is number =>
  Number.isInteger(value) && isWithin(value, least, most);

/** The vehicle's identity of this kind; null: it has none, or there is no vehicle. */
export const identityOf = ({ vehicle }: View, kind: string): string | null =>
  vehicle?.identity?.kind === kind ? vehicle.identity.value : null;

/** The view of a charger at its own moment. */
export function viewOf(told: LastOrder, charger: SimulatedCharger, bootedAt: Instant): View {
  const { traits, vehicle, at } = charger;
  const native = telemetryOf(charger);
  const [l1 = 0, l2 = 0, l3 = 0] = native.currentsA ?? [];
  const { voltage } = traits;
  return {
    told,
    charger,
    native,
    currents: [l1, l2, l3],
    voltages: [voltage, voltage, voltage],
    level: levelIn(told, traits),
    vehicle,
    at,
    bootedAt,
  };
}

function levelIn({ level }: LastOrder, { maxCurrent, phases, voltage }: ChargerTraits): Amperes {
  if (level === null) return maxCurrent;
  const current = level.kind === "current" ? level.amperes : level.watts / phases / voltage;
  return amperes(Math.max(0, Math.min(current, maxCurrent)));
}

/** The parameters of a profile, by name. */
export type Params = ReadonlyMap<string, string | number | null>;

/** A parameter as text. Throws where it is missing: the profile has refused that before. */
export function param(params: Params, name: string): string {
  const value = params.get(name);
  if (value == null) throw new Error(`no parameter ${name}`);
  return String(value);
}
