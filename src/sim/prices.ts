import { iso, instant, type Instant } from "../core/units.ts";

const HOUR_MS = 3_600_000;

/** A plausible day: dear at breakfast and supper, cheap at night. Currency per kWh; the hours are UTC. */
const price = (hour: number): number =>
  Math.round((0.8 + 0.35 * Math.cos(((hour - 8) / 12) * 2 * Math.PI)) * 10_000) / 10_000;

/** Spot prices of the UTC day around `now`: a map from hour to price (openadr3.md 0). */
export function spotPrices(region: string, now: Instant): object {
  const midnight = Math.floor(now / (24 * HOUR_MS)) * 24 * HOUR_MS;
  const hours = Array.from({ length: 24 }, (_, hour) => [
    iso(instant(midnight + hour * HOUR_MS)),
    price(hour),
  ]);
  return {
    priceArea: region,
    priceUnits: { currency: "NOK", vat: { rate: 0.25, hasVAT: false }, energyUnit: "kWh" },
    prices: Object.fromEntries(hours),
  };
}
