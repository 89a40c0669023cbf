import type { Json } from "./audit.ts";
import { type Millis, after, between, type Instant, iso, hours } from "./units.ts";

/** Paid price or expected price. Prices never affect a charger. */
export type PriceKind = "actual" | "forecast";

/**
 * Tax as the partner sends it. Rate 0.25 is 25 %. The partner does not define whether `hasVAT` means that the prices
 * include it.
 */
export type Vat = { readonly rate: number | null; readonly hasVAT: boolean | null };

/** Unit of a price. Null member: not given. */
export interface PriceUnits {
  readonly currency: string | null;
  /** Amount of energy, e.g. `kWh`. */
  readonly perUnit: string | null;
  readonly vat: Vat | null;
}

/** A price and its half-open period. */
export interface Price extends PriceUnits {
  readonly start: Instant;
  readonly end: Instant;
  readonly value: number;
  readonly region: string;
}

/** A price as received: in any order, perhaps twice. Null `end`: not given. Null `value`: not readable. */
export interface SentPrice extends PriceUnits {
  readonly start: Instant;
  readonly end: Instant | null;
  readonly value: number | null;
}

/** A price series. */
export interface PriceQuery {
  readonly region: string;
  readonly kind: PriceKind;
}

/** Name of a series for people. */
export const seriesName = ({ region, kind }: PriceQuery): string =>
  kind === "actual" ? `spot prices of ${region}` : `price forecast of ${region}`;

/** Prices of the last readable answer. */
export interface PriceSeries extends PriceQuery {
  readonly fetchedAt: Instant;
  /** Ordered, without overlaps, never empty. */
  readonly prices: readonly Price[];
  /** Sentences about odd values in the answer, capped. */
  readonly doubts: readonly string[];
  /** Start of the answer as text, capped. */
  readonly raw: string;
}

/** Assumed period of a price that has neither an end nor a neighbour. */
const USUAL_STEP = hours(1);

/**
 * Sorts prices and gives each its end: its own, else the next start, else the period of the previous price.
 * Periods are computed on instants, so a day may have 23 or 25 hours. An unreadable price leaves a gap.
 */
export function inOrder(
  sent: readonly SentPrice[],
  region: string,
): { readonly prices: readonly Price[]; readonly doubts: readonly string[] } {
  const doubts: string[] = [];
  const byStart = new Map<Instant, SentPrice>();
  for (const price of sent) {
    const before = byStart.get(price.start)?.value ?? null;
    if (before !== null && price.value === null) continue;
    if (before !== null && before !== price.value)
      doubts.push(`two prices at ${iso(price.start)}: the later one counts`);
    byStart.set(price.start, price);
  }
  const sorted = [...byStart.values()].toSorted((a, b) => a.start - b.start);
  const prices = sorted.flatMap((price, index): readonly Price[] => {
    const { start, value, currency, perUnit, vat } = price;
    if (value === null) return [];
    const [previous, next] = [sorted[index - 1], sorted[index + 1]];
    const step = previous === undefined ? USUAL_STEP : between(previous.start, start);
    const end = price.end ?? next?.start ?? after(start, step);
    const overlaps = next !== undefined && end > next.start;
    if (overlaps) doubts.push(`the price at ${iso(start)} reaches into the next one: it ends there`);
    return [{ start, end: overlaps ? next.start : end, value, currency, perUnit, region, vat }];
  });
  return { prices, doubts };
}

/** A price as other programs read it. Times are ISO 8601 UTC. */
export type SerializedPrice = Omit<Price, "start" | "end"> & {
  readonly start: string;
  readonly end: string;
  readonly [member: string]: Json;
};

/** Prices as published on MQTT, in the API and by the command line. */
export const serializePrices = (prices: readonly Price[]): readonly SerializedPrice[] =>
  prices.map(({ start, end, value, currency, perUnit, region, vat }) => ({
    start: iso(start),
    end: iso(end),
    value,
    currency,
    perUnit,
    region,
    vat: vat === null ? null : { ...vat },
  }));

/** Result of one price request. */
export type PricesAsked =
  | { readonly kind: "read"; readonly series: PriceSeries }
  /** The answer is no price series. `raw`: its start. */
  | { readonly kind: "unreadable"; readonly reason: string; readonly raw: string }
  | {
      readonly kind: "failed";
      readonly reason: string;
      /** A retry before the next regular request may succeed. */
      readonly retry: boolean;
      /** Minimum wait that the partner asked for. Null: none. */
      readonly retryAfter: Millis | null;
    };

/** `doubtful`: read, with odd values. */
export type PriceOutcome = "good" | "doubtful" | "unreadable" | "failed";

/** State of one price series. */
export interface PriceStand extends PriceQuery {
  /** Last readable series, also from before a restart. Null: none yet. */
  readonly series: PriceSeries | null;
  /** Outcome of the last request since the start. Null: none yet. */
  readonly outcome: PriceOutcome | null;
  /** Failure or odd values of that request. Null: none. */
  readonly reason: string | null;
  /** An alarm was logged because the series is unavailable. */
  readonly alarmed: boolean;
}

/** Key of a series, also in the store. */
export const priceKey = ({ region, kind }: PriceQuery): string => `${kind}/${region}`;
