import type { CoordinationEvent, ReportDescriptor } from "../control/event.ts";

/** What setpointd can say of a vehicle (openadr3 1.2). */
export type Quantity =
  | "usage"
  | "demand"
  | "reading"
  | "setpoint"
  | "operatingState"
  | "chargeLevel"
  | "baseline"
  | "deltaUsage"
  | "dataQuality";

/** How a value is obtained from readings (openadr3 1.3). */
export type Method = "direct" | "mean" | "peak" | "summed" | "estimated" | "forecast";

/** What a descriptor asks for, in our words. */
export interface Wanted {
  /** As the partner spells it: the report answers in the same words. */
  readonly payloadType: string;
  /** Null: not one of ours; it is answered with "not available". */
  readonly quantity: Quantity | null;
  readonly method: Method;
  readonly aggregate: boolean;
  /** What a setpoint is told in: the unit of the event's own ask. */
  readonly level: "A" | "W";
}

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
