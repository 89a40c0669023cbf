import { DateTime } from "luxon";
import { type Instant, type Millis, minutes } from "../core/units.ts";

/** The day of the market; its regions are these. */
const ZONE = "Europe/Oslo";
const REGIONS = ["NO1", "NO2", "NO3", "NO4", "NO5", "SE1", "SE2", "SE3", "SE4", "DK1", "DK2", "FI"];
/** Tomorrow's prices are out by this hour. */
const OUT_AT = 13;
const FORECAST_DAYS = 7;
const HOUR = minutes(60);

const bump = (hour: number, at: number, width: number): number => Math.exp(-(((hour - at) / width) ** 2));

/** A plausible day: dear at breakfast and supper, cheap at night; regions differ. Currency per kWh. */
function priceAt(region: string, at: DateTime): number {
  const hour = at.hour + at.minute / 60;
  const level = 0.4 + 0.05 * REGIONS.indexOf(region) + 0.06 * Math.cos(((hour - 15) / 12) * Math.PI);
  return Math.round((level + 0.35 * bump(hour, 8, 2) + 0.45 * bump(hour, 18, 2.5)) * 10_000) / 10_000;
}

const localMidnight = (now: Instant): DateTime => DateTime.fromMillis(now, { zone: ZONE }).startOf("day");

/** Every step from `from` until before `until`, counted in time that has passed: a day may have 23 or 25 hours. */
function stepsOf(from: DateTime, until: DateTime, step: Millis): readonly DateTime[] {
  const count = Math.ceil((until.toMillis() - from.toMillis()) / step);
  return Array.from({ length: count }, (_, index) => from.plus({ milliseconds: index * step }));
}

/** The wire spells moments in UTC (partner-interface 2.1). */
const utc = (at: DateTime): string => at.toUTC().toISO({ suppressMilliseconds: true }) ?? "";

const unitsOf = (region: string) => ({
  priceArea: region,
  priceUnits: { currency: "NOK", vat: { rate: 0.25, hasVAT: false }, energyUnit: "kWh" },
});

/**
 * Spot prices of today, and of tomorrow once they are out: a map from moment to price (openadr3 0). Null: there is no
 * such region.
 */
export function spotPrices(region: string, now: Instant, step: Millis = HOUR): object | null {
  if (!REGIONS.includes(region)) return null;
  const midnight = localMidnight(now);
  const days = DateTime.fromMillis(now, { zone: ZONE }).hour < OUT_AT ? 1 : 2;
  const steps = stepsOf(midnight, midnight.plus({ days }), step);
  return {
    ...unitsOf(region),
    prices: Object.fromEntries(steps.map((at) => [utc(at), priceAt(region, at)])),
  };
}

/** Expected prices of the week from the day after tomorrow, in segments of so many hours; `to` is the start of the last one. */
export function priceForecast(region: string, now: Instant, segmentHours: number): object | null {
  if (!REGIONS.includes(region)) return null;
  const first = localMidnight(now).plus({ days: 2 });
  const starts = stepsOf(first, first.plus({ days: FORECAST_DAYS }), minutes(60 * segmentHours));
  const forecastSegments = starts.map((from) => {
    const hours = stepsOf(from, from.plus({ hours: segmentHours }), HOUR);
    const sum = hours.reduce((total, at) => total + priceAt(region, at), 0);
    const averagePrice = Math.round((sum / hours.length) * 10_000) / 10_000;
    return { from: utc(from), to: utc(from.plus({ hours: segmentHours - 1 })), averagePrice };
  });
  return { ...unitsOf(region), forecastSegments };
}
