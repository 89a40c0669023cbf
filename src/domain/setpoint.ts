import type { CoordinationEvent } from "./event.ts";
import { type Amperes, amperes, type Instant, type Watts, watts } from "./units.ts";

/** Upper bound for a charger. It may draw less. */
export type Setpoint =
  | { readonly kind: "current"; readonly amperes: Amperes }
  | { readonly kind: "power"; readonly watts: Watts };

/** Setpoint that an event asks for. Null: none to act on. */
export function setpointOf({ ask, duration }: CoordinationEvent, powerUnit: "kW" | "W"): Setpoint | null {
  if (duration <= 0) return null;
  switch (ask.kind) {
    case "current":
      return { kind: "current", amperes: amperes(ask.level) };
    case "power":
      return { kind: "power", watts: powerUnit === "kW" ? fromKilowatts(ask.level) : watts(ask.level) };
    case "unknown":
      return null;
  }
}

/** 16.08 kW are 16080 W, not 16079.999999999998. The result is always finite. */
function fromKilowatts(level: number): Watts {
  const most = Number.MAX_VALUE;
  return watts(Math.min(most, Math.max(-most, Number((level * 1000).toPrecision(12)))));
}

/** Phases that a charger was switched to, and the times that the next switch depends on. */
export interface SwitchedTo {
  readonly count: PhaseCount;
  /** Time at which the switch was commanded. */
  readonly since: Instant;
  /** Since when it may charge on these phases. Null: paused. */
  readonly chargingSince: Instant | null;
}

/** Chargers are switched between one phase and all three. */
export type PhaseCount = 1 | 3;

/** Absent `phases`: not switched lately, so the charger has all phases that it is wired with. */
interface OnPhases {
  readonly phases?: SwitchedTo;
}

/** Setpoint of a charger: a level, a pause, or a release (the charger's own default). */
export type Desired =
  | (Setpoint & OnPhases)
  | ({ readonly kind: "pause" } & OnPhases)
  | { readonly kind: "release" };

/** Phases of a setpoint. Null: not switched. */
export const switchedIn = (desired: Desired): SwitchedTo | null =>
  desired.kind === "release" ? null : (desired.phases ?? null);

/** Copies the phases of the previous setpoint where this one has none. A release gives all phases back. */
export function onSamePhases(desired: Desired, before: Desired | null): Desired {
  const phases = before === null ? null : switchedIn(before);
  return desired.kind === "release" || desired.phases !== undefined || phases === null
    ? desired
    : { ...desired, phases };
}

/** A level for people: "16 A", "11.04 kW", "pause", "release"; "10 A on 1 phase" where phases were switched. */
export const formatLevel = (desired: Desired): string => formatRecorded(levelOnRecord(desired));

/** "11.04 kW", exact to the watt. */
export const formatKilowatts = (power: number): string => `${Math.round(power) / 1000} kW`;

/** A level of the record for people: "11040 W" becomes "11.04 kW". */
export const formatRecorded = (level: string): string =>
  level.replace(/^(-?[\d.e+-]+) W\b/, (_, value: string) => formatKilowatts(Number(value)));

/** A level in the record, for other programs: in A or W, "11040 W". */
export function levelOnRecord(desired: Desired): string {
  const count = switchedIn(desired)?.count;
  const phases = count === undefined ? "" : ` on ${formatPhases(count)}`;
  switch (desired.kind) {
    case "current":
      return `${desired.amperes} A${phases}`;
    case "power":
      return `${desired.watts} W${phases}`;
    case "pause":
      return `pause${phases}`;
    case "release":
      return desired.kind;
  }
}

/** "1 phase", "3 phases". */
export const formatPhases = (count: PhaseCount): string => (count === 1 ? "1 phase" : `${count} phases`);

/** Value and unit as published. Null: pause or release. */
export function valueOf(desired: Desired): { value: number | null; unit: "A" | "W" | null } {
  switch (desired.kind) {
    case "current":
      return { value: desired.amperes, unit: "A" };
    case "power":
      return { value: desired.watts, unit: "W" };
    case "pause":
    case "release":
      return { value: null, unit: null };
  }
}

/** A level as the operator's API reads and shows it. `release`: the charger decides by itself. */
export type LevelView = {
  readonly currentA?: number;
  readonly powerW?: number;
  readonly pause?: true;
  readonly release?: true;
};

/** A setpoint as the API shows it: exactly one member. */
export function viewOf(desired: Desired): LevelView {
  switch (desired.kind) {
    case "current":
      return { currentA: desired.amperes };
    case "power":
      return { powerW: desired.watts };
    case "pause":
      return { pause: true };
    case "release":
      return { release: true };
  }
}

/** The setpoint of a level. */
export const levelOf = ({ currentA, powerW, pause }: LevelView): Desired =>
  currentA !== undefined
    ? { kind: "current", amperes: amperes(currentA) }
    : powerW !== undefined
      ? { kind: "power", watts: watts(powerW) }
      : { kind: pause === true ? "pause" : "release" };

/** Reads the text of `levelOnRecord`, for example from a stored reason. Null: not a level. */
export function parseLevel(text: string): LevelView | null {
  const [, value, unit, word] = /^(?:(-?[\d.e+-]+) ([AW])|(pause|release))\b/.exec(text) ?? [];
  if (unit === "A") return { currentA: Number(value) };
  if (unit === "W") return { powerW: Number(value) };
  if (word === "pause") return { pause: true };
  return word === "release" ? { release: true } : null;
}
