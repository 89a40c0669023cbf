import { asSwitched, wattsPerAmpere } from "../control/decide/limits.ts";
import type { CoordinationEvent, ReportDescriptor } from "../domain/event.ts";
import type { Quantity, Method, Wanted } from "../domain/report.ts";
import type { Window } from "../domain/units.ts";
import { type Finding, nothing } from "./cause.ts";
import type { Commanded, Evidence, FillContext } from "./evidence.ts";
import { integral, last, mean, peak, type Step, within } from "./series.ts";

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
const folded = (word: string): string => word.toUpperCase().replaceAll(/[^A-Z0-9]/g, "");

/** What a descriptor wants of whom, and what is odd about how it says so. */
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

/** Named so in `payloadDescriptors` (openadr3 1.1); null: it has none. */
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

/** The word of openadr3 1.3 for how the values were obtained; a sum over vehicles is SUMMED whatever was asked. */
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

/** A name is 1 to 128 characters (openadr3 1.1). */
const nameOf = (payloadType: string): string => payloadType.slice(0, 128).toWellFormed() || "UNKNOWN";

const SHOWN = 60;
const shown = (word: string): string =>
  word === "" ? "(none)" : JSON.stringify(word.length > SHOWN ? `${word.slice(0, SHOWN)}…` : word);

const HOUR = 3_600_000;

/** What the vehicle was, or will be, held to, as levels of one unit: a pause is 0, a release is none. */
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

/** Null: free, or a charger of which nothing is known any more. */
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

/** The setpoint in force: the last, or by the method the mean or the highest; in A or kW. */
export function setpointIn(
  levels: readonly Step<number>[],
  method: Method,
  unit: Wanted["level"],
): Finding<number> {
  const level = method === "mean" ? mean(levels) : method === "peak" ? peak(levels) : last(levels);
  if (level === null) return nothing("no setpoint");
  return { value: unit === "A" ? level : level / 1000, quality: "OK", causes: [] };
}

/** Energy (kWh) or mean power (kW) at the levels it will be held to: what it draws at most. */
export function forecastIn(watts: readonly Step<number>[], quantity: "usage" | "demand"): Finding<number> {
  const level = mean(watts);
  if (level === null) return nothing("no setpoint");
  const value = quantity === "usage" ? integral(watts) / HOUR / 1000 : level / 1000;
  return { value, quality: "ESTIMATED", causes: [] };
}

/** Below this a charger is idle, whatever it says: standby electronics draw less, W. */
const RUNNING = 100;

/**
 * OpenADR's word for how the vehicle was at the end of a window: IDLE or RUNNING, NORMAL, CURTAILED while we hold it
 * to a level, OPTED_OUT while the site holds it out of the event; ERROR where the charger says so.
 */
export function operatingState(
  { state, power, commanded, outages }: Evidence,
  window: Window,
): Finding<string> {
  const said = last(within(state.steps, window));
  const drawn = last(within(power.steps, window));
  if (said === null && drawn === null) return nothing("no readings");
  const value = said === "error" ? "ERROR" : `${isRunning(said, drawn) ? "RUNNING" : "IDLE"}_${mode()}`;
  return { value, quality: "OK", causes: [] };

  function mode(): "OPTED_OUT" | "CURTAILED" | "NORMAL" {
    const isOut = outages.some(
      ({ cause, from, until }) =>
        cause === "opted out by the site" && from < window.until && until >= window.until,
    );
    if (isOut) return "OPTED_OUT";
    const told = last(within(commanded, window));
    return told === null || told.kind === "release" ? "NORMAL" : "CURTAILED";
  }
}

const isRunning = (said: string | null, drawn: number | null): boolean =>
  drawn === null ? said === "charging" : Math.abs(drawn) >= RUNNING;
