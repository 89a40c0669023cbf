import { parse, validate } from "node-cron";
import * as z from "zod";
import { reads } from "../fields/quantities.ts";

const region = z.string({ error: 'a region code in quotes, e.g. "NO1"' }).regex(/^[A-Za-z0-9_-]{1,32}$/, {
  error: 'a region code of 1 to 32 letters, digits, "-" or "_", e.g. NO1',
});

const cron = reads(
  (text) => (validate(text) ? text.trim() : null),
  'a cron expression in quotes: minute, hour, day of month, month, day of week, e.g. "2 * * * *"',
);

/** Path of a price series, after `vtn.baseUrl`. */
const path = reads(
  (text) => (/^\/[\x21\x22\x24-\x7e]{0,510}$/.test(text) && text.includes("{region}") ? text : null),
  "a path that starts with / and has {region} in it, e.g. /smart/v1/prices/forecast/{region}?segmentSize=6",
);

export const pricesSection = z.strictObject({
  regions: z
    .array(region)
    .max(16)
    .refine((all) => new Set(all).size === all.length, { error: "each region once" })
    .prefault([])
    .describe(
      "Regions whose spot prices are fetched, in the partner's codes, e.g. [NO1]. Default []. Prices are stored, published and shown. They never command a charger.",
    ),
  cron: cron
    .prefault("2 * * * *")
    .describe(
      "When prices are fetched, as a cron expression in the site's time zone, within 30 s; also at every start. Default 2 * * * *. At most 60 requests an hour are made.",
    ),
  forecastPath: path
    .nullable()
    .prefault(null)
    .describe(
      "Path of price forecasts, after baseUrl, e.g. /smart/v1/prices/forecast/{region}?segmentSize=6. Default null: none is fetched. Ask the partner for it.",
    ),
});

/** Regions and schedule of prices. */
export interface PricesConfig {
  readonly regions: readonly string[];
  /** Valid for node-cron, in the site's time zone. */
  readonly cron: string;
  /** Contains {region}. Null: no forecast. */
  readonly forecastPath: string | null;
}

/** Budget of the price client (vtn/prices.ts). */
const MOST_REQUESTS = 60;

/** Requests in the busiest hour, if they exceed the budget. Null: they do not. */
export function tooManyRequests({ regions, cron, forecastPath }: PricesConfig): number | null {
  const { second, minute } = parse(cron);
  const asked = regions.length * (forecastPath === null ? 1 : 2) * second.length * minute.length;
  return asked > MOST_REQUESTS ? asked : null;
}
