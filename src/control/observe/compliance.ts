import type { Charger } from "../../domain/charger.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import type { Millis } from "../../domain/units.ts";
import { asSwitched, wattsPerAmpere } from "../decide/limits.ts";
import {
  type Desired,
  formatKilowatts,
  formatLevel,
  type Setpoint,
  switchedIn,
} from "../../domain/setpoint.ts";

/** Settings for the comparison of telemetry with a setpoint. */
export interface JudgeSettings {
  /** Time that a charger and its vehicle may take to reach the setpoint. */
  readonly ramp: Millis;
  /** Tolerance: the larger of the two applies. */
  readonly amperes: number;
  readonly percent: number;
}

/** Result of the comparison. Only the first two close a command. `observation`: for the record. */
export type Compliance =
  | { readonly kind: "followed"; readonly observation: string }
  | { readonly kind: "notFollowed"; readonly observation: string }
  /** The charger reports too little. */
  | { readonly kind: "unknown" };

/** Fraction of the nominal voltage (EN 50160). */
const LOWEST_VOLTAGE = 0.9;

const UNKNOWN: Compliance = { kind: "unknown" };
type Judged = Pick<JudgeSettings, "amperes" | "percent">;

/** A setpoint, and the one before it: what a release ended. */
interface Asked {
  readonly desired: Desired;
  readonly before?: Desired | null;
}

/** A charger, and the vehicle on it where that is known. */
interface JudgedBay {
  readonly charger: Charger;
  readonly vehicle: Vehicle | null;
}

/**
 * Compares a setpoint with the charger's reported limit and its draw.
 * The level is an upper bound: drawing less, or a lower limit of its own, is no violation.
 */
export function complianceWith(
  { desired, before = null }: Asked,
  telemetry: Telemetry,
  { charger, vehicle }: JudgedBay,
  settings: Judged,
): Compliance {
  const ratio = wattsPerAmpere(asSwitched(charger, desired), vehicle, null);
  switch (desired.kind) {
    case "current":
    case "power":
      return withLevel(desired, telemetry, charger, ratio, settings);
    case "pause":
      return withPause(telemetry, ratio, settings);
    case "release":
      return withRelease(before, telemetry, charger, ratio, settings);
  }
}

function withLevel(
  setpoint: Desired & Setpoint,
  telemetry: Telemetry,
  charger: Charger,
  ratio: number,
  settings: Judged,
): Compliance {
  const level = setpoint.kind === "current" ? setpoint.amperes : setpoint.watts / ratio;
  const most = level + tolerance(level, settings);
  if (level < 0) return withDischarge(setpoint, telemetry, ratio, most);
  if (setpoint.kind === "power" && telemetry.powerW !== undefined)
    return withWatts(
      setpoint,
      telemetry.powerW,
      reportsAmperes(charger) ? telemetry.limitA : undefined,
      ratio,
      settings,
    );
  const drawn = switchedIn(setpoint) === null ? drawnBy(telemetry, ratio) : drawnInAll(telemetry, ratio);
  if (telemetry.limitA === undefined && drawn === null) return UNKNOWN;
  const observation = observationOf(telemetry, drawn);
  if ((telemetry.limitA ?? 0) > most || (drawn ?? 0) > most) {
    return { kind: "notFollowed", observation: `setpoint ${formatLevel(setpoint)}, ${observation}` };
  }
  return { kind: "followed", observation };
}

/**
 * Compares watts with watts. Their value in amperes depends on a voltage that may differ.
 * Limits are reported in amperes. A limit that no voltage of this grid explains was set by another
 * controller.
 */
function withWatts(
  setpoint: Setpoint & { kind: "power" },
  drawn: number,
  limitA: number | undefined,
  ratio: number,
  settings: Judged,
): Compliance {
  const most = setpoint.watts + ratio * tolerance(setpoint.watts / ratio, settings);
  const limit = limitA === undefined ? "" : `reports a limit of ${toTenths(limitA)} A and `;
  const observation = `${limit}draws ${formatKilowatts(drawn)}`;
  const isForeign = limitA !== undefined && limitA * ratio * LOWEST_VOLTAGE > most;
  return drawn > most || isForeign
    ? { kind: "notFollowed", observation: `setpoint ${formatLevel(setpoint)}, ${observation}` }
    : { kind: "followed", observation };
}

/** False: configured in watts alone (DC), so it reports no amperes of the grid. */
const reportsAmperes = ({ maxCurrent, maxPower }: Charger): boolean =>
  maxCurrent !== null || maxPower === null;

function withDischarge(
  setpoint: Desired & Setpoint,
  telemetry: Telemetry,
  ratio: number,
  most: number,
): Compliance {
  const drawn = flowing(telemetry, ratio);
  if (drawn === null) return UNKNOWN;
  const observation = drawn < 0 ? `feeds back ${toTenths(-drawn)} A` : `draws ${toTenths(drawn)} A`;
  return drawn > most
    ? { kind: "notFollowed", observation: `setpoint ${formatLevel(setpoint)}, ${observation}` }
    : { kind: "followed", observation };
}

function withPause(telemetry: Telemetry, ratio: number, settings: Judged): Compliance {
  const drawn = drawnBy(telemetry, ratio);
  const observation = observationOf(telemetry, drawn);
  // Feeding back is no pause either.
  const flow = drawn === null ? 0 : Math.max(Math.abs(drawn), ...(telemetry.currentsA ?? []).map(Math.abs));
  if (flow > settings.amperes) return { kind: "notFollowed", observation: `setpoint pause, ${observation}` };
  if (drawn === null && telemetry.state === "charging")
    return { kind: "notFollowed", observation: "setpoint pause, it charges" };
  const isReported =
    drawn !== null ||
    telemetry.limitA === 0 ||
    (telemetry.state !== undefined && telemetry.state !== "unknown");
  return isReported ? { kind: "followed", observation } : UNKNOWN;
}

/** Followed: the charger reports or draws more than its former limit, or as much as it can. */
function withRelease(
  before: Desired | null,
  telemetry: Telemetry,
  charger: Charger,
  ratio: number,
  settings: Judged,
): Compliance {
  const formerLimit = formerLimitOf(before, ratio);
  if (formerLimit === null) return UNKNOWN;
  const drawn = formerLimit < 0 ? flowing(telemetry, ratio) : drawnBy(telemetry, ratio);
  const observation = observationOf(telemetry, drawn);
  const free = formerLimit + (formerLimit === 0 ? settings.amperes : tolerance(formerLimit, settings));
  const own = charger.maxCurrent ?? (charger.maxPower === null ? Infinity : charger.maxPower / ratio);
  if (drawn !== null && drawn > free) return { kind: "followed", observation };
  if (telemetry.limitA === undefined) return UNKNOWN;
  // A clearly lower limit is the charger's own and not fought.
  const isItsOwn = telemetry.limitA < formerLimit - tolerance(formerLimit, settings);
  const open = isItsOwn || telemetry.limitA > free || telemetry.limitA >= own - tolerance(own, settings);
  return open
    ? { kind: "followed", observation }
    : { kind: "notFollowed", observation: `released, ${observation}` };
}

function formerLimitOf(before: Desired | null, ratio: number): number | null {
  switch (before?.kind) {
    case "current":
      return before.amperes;
    case "power":
      return before.watts / ratio;
    case "pause":
      return 0;
    case "release":
    case undefined:
      return null;
  }
}

const tolerance = (level: number, { amperes, percent }: Judged): number =>
  Number.isFinite(level) ? Math.max(amperes, (Math.abs(level) * percent) / 100) : 0;

/** Amperes per phase: the largest phase, or the equivalent of the power. */
function drawnBy(telemetry: Telemetry, ratio: number): number | null {
  const { currentsA = [] } = telemetry;
  return currentsA.length > 0 ? Math.max(...currentsA) : flowing(telemetry, ratio);
}

/** Only power shows the direction: currents and limits often have no sign. Negative: feeding back. */
const flowing = ({ powerW }: Pick<Telemetry, "powerW">, ratio: number): number | null =>
  powerW === undefined ? null : powerW / ratio;

/** After a phase switch: a draw on other phases shows in the power, not in the largest phase. */
function drawnInAll({ currentsA = [], powerW }: Telemetry, ratio: number): number | null {
  const drawn = [...currentsA, ...(powerW === undefined ? [] : [powerW / ratio])];
  return drawn.length === 0 ? null : Math.max(...drawn);
}

const toTenths = (amperes: number): number => Math.round(amperes * 10) / 10;

function observationOf({ limitA, state }: Telemetry, drawn: number | null): string {
  const parts = [
    ...(limitA === undefined ? [] : [`reports a limit of ${toTenths(limitA)} A`]),
    ...(drawn === null ? [] : [`draws ${toTenths(drawn)} A`]),
  ];
  return parts.length > 0 ? parts.join(" and ") : `reports ${state ?? "no state"}`;
}
