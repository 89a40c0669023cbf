import type { Charger } from "../../domain/charger.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import type { Millis } from "../../domain/units.ts";
import { asSwitched, wattsPerAmpere } from "../decide/limits.ts";
import { type Desired, formatLevel, type Setpoint, switchedIn } from "../../domain/setpoint.ts";

/** How a command is judged by what the charger then reports and draws. */
export interface JudgeSettings {
  /** How long a charger and its vehicle may take to get there. */
  readonly ramp: Millis;
  /** Whichever of the two is more is tolerated. */
  readonly amperes: number;
  readonly percent: number;
}

/** Measured, not believed: only the first two close a command. `words` say what was seen. */
export type Compliance =
  | { readonly kind: "followed"; readonly words: string }
  | { readonly kind: "notFollowed"; readonly words: string }
  /** The charger tells too little. */
  | { readonly kind: "unknown" };

/** Of the nominal one (EN 50160). */
const LOWEST_VOLTAGE = 0.9;

const UNKNOWN: Compliance = { kind: "unknown" };
type Judged = Pick<JudgeSettings, "amperes" | "percent">;

/**
 * Whether a charger does what it was told, by its own limit and by what it draws. The level is an upper bound:
 * drawing less is no violation, and a lower limit of its own is not fought. `before` is what held before a release.
 */
export function complianceWith(
  desired: Desired,
  before: Desired | null,
  told: Telemetry,
  charger: Charger,
  vehicle: Vehicle | null,
  settings: Judged,
): Compliance {
  const ratio = wattsPerAmpere(asSwitched(charger, desired), vehicle, null);
  switch (desired.kind) {
    case "current":
    case "power":
      return withLevel(desired, told, charger, ratio, settings);
    case "pause":
      return withPause(told, ratio, settings);
    case "release":
      return withRelease(before, told, charger, ratio, settings);
  }
}

function withLevel(
  setpoint: Desired & Setpoint,
  told: Telemetry,
  charger: Charger,
  ratio: number,
  settings: Judged,
): Compliance {
  const level = setpoint.kind === "current" ? setpoint.amperes : setpoint.watts / ratio;
  const most = level + tolerance(level, settings);
  if (level < 0) return withDischarge(setpoint, told, ratio, most);
  if (setpoint.kind === "power" && told.powerW !== undefined)
    return withWatts(
      setpoint,
      told.powerW,
      speaksAmperes(charger) ? told.limitA : undefined,
      ratio,
      settings,
    );
  const drawn = switchedIn(setpoint) === null ? drawnBy(told, ratio) : drawnInAll(told, ratio);
  if (told.limitA === undefined && drawn === null) return UNKNOWN;
  const seen = seenIn(told, drawn);
  if ((told.limitA ?? 0) > most || (drawn ?? 0) > most) {
    return { kind: "notFollowed", words: `told ${formatLevel(setpoint)}, ${seen}` };
  }
  return { kind: "followed", words: seen };
}

/**
 * Watts are held against watts: what they come to in amperes depends on a voltage that may be another one. A limit is
 * told in amperes all the same, and one that no voltage of this mains explains is somebody else's.
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
  const seen = `${limit}draws ${Math.round(drawn)} W`;
  const isForeign = limitA !== undefined && limitA * ratio * LOWEST_VOLTAGE > most;
  return drawn > most || isForeign
    ? { kind: "notFollowed", words: `told ${formatLevel(setpoint)}, ${seen}` }
    : { kind: "followed", words: seen };
}

/** One that is configured in watts alone (DC) tells no amperes of the mains. */
const speaksAmperes = ({ maxCurrent, maxPower }: Charger): boolean =>
  maxCurrent !== null || maxPower === null;

function withDischarge(
  setpoint: Desired & Setpoint,
  told: Telemetry,
  ratio: number,
  most: number,
): Compliance {
  const drawn = flowing(told, ratio);
  if (drawn === null) return UNKNOWN;
  const seen = drawn < 0 ? `feeds back ${toTenths(-drawn)} A` : `draws ${toTenths(drawn)} A`;
  return drawn > most
    ? { kind: "notFollowed", words: `told ${formatLevel(setpoint)}, ${seen}` }
    : { kind: "followed", words: seen };
}

function withPause(told: Telemetry, ratio: number, settings: Judged): Compliance {
  const drawn = drawnBy(told, ratio);
  const seen = seenIn(told, drawn);
  // What flows back is no pause either.
  const flow = drawn === null ? 0 : Math.max(Math.abs(drawn), ...(told.currentsA ?? []).map(Math.abs));
  if (flow > settings.amperes) return { kind: "notFollowed", words: `told to pause, ${seen}` };
  if (drawn === null && told.state === "charging")
    return { kind: "notFollowed", words: "told to pause, it charges" };
  const says = drawn !== null || told.limitA === 0 || (told.state !== undefined && told.state !== "unknown");
  return says ? { kind: "followed", words: seen } : UNKNOWN;
}

/** Free again: it reports or draws more than it was held to, or as much as it can. */
function withRelease(
  before: Desired | null,
  told: Telemetry,
  charger: Charger,
  ratio: number,
  settings: Judged,
): Compliance {
  const held = heldTo(before, ratio);
  if (held === null) return UNKNOWN;
  const drawn = held < 0 ? flowing(told, ratio) : drawnBy(told, ratio);
  const seen = seenIn(told, drawn);
  const free = held + (held === 0 ? settings.amperes : tolerance(held, settings));
  const own = charger.maxCurrent ?? (charger.maxPower === null ? Infinity : charger.maxPower / ratio);
  if (drawn !== null && drawn > free) return { kind: "followed", words: seen };
  if (told.limitA === undefined) return UNKNOWN;
  // What is clearly less than it was held to is its own, and not fought (DESIGN 5.6).
  const isItsOwn = told.limitA < held - tolerance(held, settings);
  const open = isItsOwn || told.limitA > free || told.limitA >= own - tolerance(own, settings);
  return open ? { kind: "followed", words: seen } : { kind: "notFollowed", words: `released, ${seen}` };
}

function heldTo(before: Desired | null, ratio: number): number | null {
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

/** Amperes per phase: the largest phase, or what the power comes to. */
function drawnBy(told: Telemetry, ratio: number): number | null {
  const { currentsA = [] } = told;
  return currentsA.length > 0 ? Math.max(...currentsA) : flowing(told, ratio);
}

/** Only power tells which way it flows: currents and limits are often given without a sign. Negative: it feeds back. */
const flowing = ({ powerW }: Pick<Telemetry, "powerW">, ratio: number): number | null =>
  powerW === undefined ? null : powerW / ratio;

/** Where phases were switched: on others than it was told, its power shows it and its largest phase does not. */
function drawnInAll({ currentsA = [], powerW }: Telemetry, ratio: number): number | null {
  const drawn = [...currentsA, ...(powerW === undefined ? [] : [powerW / ratio])];
  return drawn.length === 0 ? null : Math.max(...drawn);
}

const toTenths = (amperes: number): number => Math.round(amperes * 10) / 10;

function seenIn({ limitA, state }: Telemetry, drawn: number | null): string {
  const parts = [
    ...(limitA === undefined ? [] : [`reports a limit of ${toTenths(limitA)} A`]),
    ...(drawn === null ? [] : [`draws ${toTenths(drawn)} A`]),
  ];
  return parts.length > 0 ? parts.join(" and ") : `says it is ${state ?? "there"}`;
}
