import { asSwitched, wattsPerAmpere } from "../control/decide/limits.ts";
import type { CoordinationEvent, ReportDescriptor } from "../domain/event.ts";
import type { Quantity, Method, Wanted } from "../domain/report.ts";
import type { Window } from "../domain/units.ts";
import { type Finding, nothing } from "./cause.ts";
import type { Commanded, Evidence, FillContext } from "./evidence.ts";
import { atEnd, integral, last, mean, peak, type Step, within } from "./series.ts";

const QUANTITIES: ReadonlyMap<string, Quantity> = new Map([
  ["USAGE", "usage"],
  ["DEMAND", "demand"],
  ["READING", "reading"],
  ["SETPOINT", "setpoint"],
  ["OPERATINGSTATE", "operatingState"],
  ["STORAGECHARGELEVEL", "chargeLevel"],
  ["BASELINE", "baseline"],
  ["DELTAUSAGE", "deltaUsage"],
  ["DATAQUALITY", "dataQuality"],
]);

const METHODS: ReadonlyMap<string, Method> = new Map([
  ["DIRECTREAD", "direct"],
  ["MEAN", "mean"],
  ["AVERAGE", "mean"],
  ["PEAK", "peak"],
  ["SUMMED", "summed"],
  ["ESTIMATED", "estimated"],
  ["FORECAST", "forecast"],
]);

/** `STORAGE_CHARGE_LEVEL`, `StorageChargeLevel`: .NET services spell enumerations their own way. */
const folded = (text: string): string => text.toUpperCase().replaceAll(/[^A-Z0-9]/g, "");

/** Quantity and method of a descriptor. `flags`: mistakes in it. */
export function wantedOf(
  descriptor: ReportDescriptor,
  { ask }: Pick<CoordinationEvent, "ask">,
): { readonly wanted: Wanted; readonly flags: readonly string[] } {
  const { payloadType, readingType, aggregate } = descriptor;
  const flags: string[] = [];
  const quantity = QUANTITIES.get(folded(payloadType)) ?? null;
  if (quantity === null) flags.push(`payloadType ${shown(payloadType)} is not available here`);
  const method = METHODS.get(folded(readingType));
  if (method === undefined)
    flags.push(
      `readingType ${readingType === "" ? "is not given" : `${shown(readingType)} is not known`}: read directly`,
    );
  const level = ask.kind === "current" ? "A" : "W";
  return {
    wanted: { payloadType: nameOf(payloadType), quantity, method: method ?? "direct", aggregate, level },
    flags,
  };
}

/** Named so in `payloadDescriptors` (OpenADR 3.1); null: it has none. */
export function unitsOf({ quantity, level }: Wanted): string | null {
  switch (quantity) {
    case "usage":
    case "reading":
    case "baseline":
    case "deltaUsage":
      return "KWH";
    case "demand":
      return "KW";
    case "setpoint":
      return level === "A" ? "AMPS" : "KW";
    case "chargeLevel":
      return "PERCENT";
    case "operatingState":
    case "dataQuality":
    case null:
      return null;
  }
}

/** OpenADR name of the method. A sum over vehicles is always SUMMED. */
export function readingTypeOf({ quantity, method, aggregate }: Wanted, isForecast: boolean): string {
  if (isForecast) return "FORECAST";
  if (aggregate && quantity !== "chargeLevel") return "SUMMED";
  switch (method) {
    case "direct":
      return "DIRECT_READ";
    case "mean":
    case "peak":
    case "summed":
    case "estimated":
    case "forecast":
      return method.toUpperCase();
  }
}

/** A name is 1 to 128 characters (OpenADR 3.1). */
const nameOf = (payloadType: string): string => payloadType.slice(0, 128).toWellFormed() || "UNKNOWN";

const SHOWN = 60;
const shown = (word: string): string =>
  word === "" ? "(none)" : JSON.stringify(word.length > SHOWN ? `${word.slice(0, SHOWN)}…` : word);

const HOUR = 3_600_000;

/** Past or planned setpoints of the vehicle in one unit. A pause is 0; a release is none. */
export function levelsIn(
  { commanded, vehicle }: Evidence,
  window: Window,
  unit: Wanted["level"],
  { chargers, vehicles }: Pick<FillContext, "chargers" | "vehicles">,
): readonly Step<number>[] {
  return within(commanded, window).flatMap(({ from, until, value, charger }): readonly Step<number>[] => {
    const known = chargers.get(charger);
    const ratio =
      known === undefined
        ? null
        : wattsPerAmpere(asSwitched(known, value), vehicles.get(vehicle) ?? null, null);
    const level = levelOf(value, unit, ratio);
    return level === null ? [] : [{ from, until, value: level }];
  });
}

/** Null: released, or a charger that is no longer configured. */
function levelOf(desired: Commanded["value"], unit: Wanted["level"], ratio: number | null): number | null {
  switch (desired.kind) {
    case "release":
      return null;
    case "pause":
      return 0;
    case "current":
      if (unit === "A") return desired.amperes;
      return ratio === null ? null : desired.amperes * ratio;
    case "power":
      if (unit === "W") return desired.watts;
      return ratio === null ? null : desired.watts / ratio;
  }
}

/** Setpoint in force in A or kW: the last, the mean or the highest. */
export function setpointIn(
  levels: readonly Step<number>[],
  method: Method,
  unit: Wanted["level"],
): Finding<number> {
  const level = method === "mean" ? mean(levels) : method === "peak" ? peak(levels) : last(levels);
  if (level === null) return nothing("no setpoint");
  return { value: unit === "A" ? level : level / 1000, quality: "OK", causes: [] };
}

/** Upper bound: energy (kWh) or mean power (kW) at the planned setpoints. */
export function forecastIn(watts: readonly Step<number>[], quantity: "usage" | "demand"): Finding<number> {
  const level = mean(watts);
  if (level === null) return nothing("no setpoint");
  const value = quantity === "usage" ? integral(watts) / HOUR / 1000 : level / 1000;
  return { value, quality: "ESTIMATED", causes: [] };
}

/** Below this power a charger is idle, whatever its state: standby electronics draw less, W. */
const RUNNING = 100;

/**
 * OpenADR operating state at the end of a window. IDLE or RUNNING; NORMAL, CURTAILED while a setpoint holds, OPTED_OUT
 * while the site exempts it. ERROR where the charger reports one. A reading from before the end counts for `maxGap`.
 */
export function operatingState(
  { state, power, commanded, outages }: Evidence,
  window: Window,
): Finding<string> {
  const reported = atEnd(state.steps, window);
  const drawn = atEnd(power.steps, window);
  if (reported === null && drawn === null) return nothing("no readings");
  const mode = modeAtEnd(commanded, outages, window);
  const value = reported === "error" ? "ERROR" : `${isRunning(reported, drawn) ? "RUNNING" : "IDLE"}_${mode}`;
  return { value, quality: "OK", causes: mode === "OPTED_OUT" ? ["opted out by the site"] : [] };
}

function modeAtEnd(
  commanded: Evidence["commanded"],
  outages: Evidence["outages"],
  window: Window,
): "OPTED_OUT" | "CURTAILED" | "NORMAL" {
  const isOut = outages.some(
    ({ cause, from, until }) =>
      cause === "opted out by the site" && from < window.until && until >= window.until,
  );
  if (isOut) return "OPTED_OUT";
  const setpoint = atEnd(commanded, window);
  return setpoint === null || setpoint.kind === "release" ? "NORMAL" : "CURTAILED";
}

const isRunning = (reported: string | null, drawn: number | null): boolean =>
  drawn === null ? reported === "charging" : Math.abs(drawn) >= RUNNING;
