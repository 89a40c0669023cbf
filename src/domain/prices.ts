import type { Json } from "./audit.ts";
import { type Millis, after, between, type Instant, iso, minutes } from "./units.ts";

/** What is paid, or what is expected to be paid. Neither ever decides about a charger. */
export type PriceKind = "actual" | "forecast";

/** As the partner sends it: it does not say whether `hasVAT` means that the prices include it. Rate 0.25 is 25 %. */
export type Vat = { readonly rate: number | null; readonly hasVAT: boolean | null };

/** Of what and in what a price is; null: the partner does not say. */
export interface PriceUnits {
  readonly currency: string | null;
  /** The amount of energy that the price is for, e.g. `kWh`. */
  readonly perUnit: string | null;
  readonly vat: Vat | null;
}

/** A price with its half-open stretch of time. */
export interface Price extends PriceUnits {
  readonly start: Instant;
  readonly end: Instant;
  readonly value: number;
  readonly region: string;
}

/** A price as it was sent: in any order, perhaps twice. `end` null: none was sent; `value` null: not readable. */
export interface SentPrice extends PriceUnits {
  readonly start: Instant;
  readonly end: Instant | null;
  readonly value: number | null;
}

/** One series that is asked for. */
export interface PriceQuery {
  readonly region: string;
  readonly kind: PriceKind;
}

/** For people. */
export const seriesName = ({ region, kind }: PriceQuery): string =>
  kind === "actual" ? `spot prices of ${region}` : `price forecast of ${region}`;

/** The last answer that could be read. */
export interface PriceSeries extends PriceQuery {
  readonly fetchedAt: Instant;
  /** In order, without overlaps; never empty. */
  readonly prices: readonly Price[];
  /** What in the answer was odd, in words; capped. */
  readonly doubts: readonly string[];
  /** How the answer began, as text; capped. */
  readonly raw: string;
}

/** Prices are hourly where nothing says otherwise. */
const USUAL_STEP = minutes(60);

/**
 * Prices in order, each with its end: its own, else the start of the next, else a step as long as the one before
 * (openadr3 9). Instants alone count, so that a day may have 23 or 25 hours. One that is not readable leaves a gap.
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

/** A price as other programs read it (DESIGN 6.2): moments in ISO 8601, UTC. */
export type SpelledPrice = Omit<Price, "start" | "end"> & {
  readonly start: string;
  readonly end: string;
  readonly [member: string]: Json;
};

/** For MQTT, the API and the command line. */
export const spelled = (prices: readonly Price[]): readonly SpelledPrice[] =>
  prices.map(({ start, end, value, currency, perUnit, region, vat }) => ({
    start: iso(start),
    end: iso(end),
    value,
    currency,
    perUnit,
    region,
    vat: vat === null ? null : { ...vat },
  }));

/** What one request for prices gave. */
export type PricesAsked =
  | { readonly kind: "read"; readonly series: PriceSeries }
  /** An answer that is no price series as far as we can tell. `raw`: how it began. */
  | { readonly kind: "unreadable"; readonly reason: string; readonly raw: string }
  | {
      readonly kind: "failed";
      readonly reason: string;
      /** Asking again before it is due may help. */
      readonly retry: boolean;
      /** Not before this has passed. */
      readonly retryAfter: Millis | null;
    };

/** `doubtful`: read, but something in it was odd. */
export type PriceOutcome = "good" | "doubtful" | "unreadable" | "failed";

/** How one price series stands. */
export interface PriceStand extends PriceQuery {
  /** The last that could be read, also from before a restart; null: there never was one. */
  readonly series: PriceSeries | null;
  /** Of the last request since the start; null: none yet. */
  readonly outcome: PriceOutcome | null;
  /** What was wrong with it, or odd; null: nothing. */
  readonly reason: string | null;
  /** People were told that it cannot be had. */
  readonly alarmed: boolean;
}

/** What tells one series from another, in the store too. */
export const priceKey = ({ region, kind }: PriceQuery): string => `${kind}/${region}`;
