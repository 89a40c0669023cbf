import { nothing, worstOf } from "./cause.ts";
import type { Filled } from "./fill.ts";
import type { Quantity, Wanted } from "./payload.ts";

/** OpenADR's name for the one entry that stands for all (openadr3 2). */
export const AGGREGATED = "AGGREGATED_REPORT";

/** One value for several vehicles, and how many of how many are in it. */
export interface Aggregated extends Filled {
  readonly included: { readonly vehicles: number; readonly of: number };
}

/**
 * Energy, power and setpoints are added up, percentages averaged, qualities judged by the worst; states, and the
 * registers of different meters, are never summed. What a vehicle lacks makes the sum MISSING, not smaller in silence.
 */
export function aggregate(parts: readonly Filled[], { quantity }: Pick<Wanted, "quantity">): Aggregated {
  const of = parts.length;
  const causes = [...new Set(parts.flatMap((part) => part.causes))];
  const quality = worstOf(parts.map((part) => part.quality));
  const none = { ...nothing(...causes), days: null, included: { vehicles: 0, of } };
  if (quantity === "dataQuality") return { ...none, value: quality, quality, included: { vehicles: of, of } };
  const how = combinationOf(quantity);
  if (how === null)
    return { ...none, causes: [quantity === null ? "not available here" : "not meaningful as an aggregate"] };
  const values = parts.flatMap(({ value }) => (typeof value === "number" ? [value] : []));
  if (values.length === 0) return none;
  const sum = values.reduce((a, b) => a + b);
  const days = parts.flatMap((part) => part.days ?? []);
  return {
    value: how === "mean" ? sum / values.length : sum,
    quality,
    causes,
    days: days.length === 0 ? null : Math.min(...days),
    included: { vehicles: values.length, of },
  };
}

function combinationOf(quantity: Exclude<Quantity, "dataQuality"> | null): "sum" | "mean" | null {
  switch (quantity) {
    case "usage":
    case "demand":
    case "setpoint":
    case "baseline":
    case "deltaUsage":
      return "sum";
    case "chargeLevel":
      return "mean";
    case "reading":
    case "operatingState":
    case null:
      return null;
  }
}
