import { parse, validate } from "node-cron";
import * as z from "zod";

import type { Millis } from "../../domain/units.ts";
import { webUrl } from "../fields/address.ts";
import { duration, reads } from "../fields/quantities.ts";
import { openFirst, secrets, type OpenSecret, type Secret } from "../fields/secret.ts";

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

const pricesSection = z.strictObject({
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

export const vtnSection = z.strictObject({
  baseUrl: webUrl.describe(
    "Address of the partner's API without /vtn or /energy-coordination, as issued to you; https, unless it is on this machine. Required.",
  ),
  family: z
    .enum(["energy-coordination", "vtn"])
    .prefault("energy-coordination")
    .describe(
      "Which of the partner's two path families serves your events: energy-coordination or vtn. Default energy-coordination. Change it when the partner asks for it.",
    ),
  tokenUrl: webUrl.describe(
    "Whole address of the token endpoint, usually ending in /connect/token. Required.",
  ),
  clientId: z
    .string()
    .min(1)
    .max(256)
    .describe("Client identifier that the partner's operator issued to you. Required."),
  clientSecret: secrets.describe(
    "Client secret of clientId, as { file: PATH } or { env: NAME }, never as text. The first of a list is sent. Required.",
  ),
  scope: z
    .string()
    .min(1)
    .max(1024)
    .nullable()
    .prefault("spk.spotprice spk.forecast")
    .describe(
      "Scopes requested with the token, separated by spaces. Default spk.spotprice spk.forecast. Change it when the partner names others; null omits the field.",
    ),
  pollEvery: duration("1s", "1h")
    .prefault("60s")
    .describe(
      "How often the list of events is fetched, 1s to 1h. Default 60s. Shorten it where no webhook can reach the site.",
    ),
  staleAfter: duration("1s", "7d")
    .prefault("10m")
    .describe(
      "An alarm is raised if the partner gives no good answer for this long. The stored plan continues. Default 10m. Keep it above a few pollEvery.",
    ),
  prices: pricesSection
    .prefault({})
    .describe("Spot prices and their forecast, for people and other programs."),
});

/** Connection to the partner. */
export interface VtnConfig {
  /** Without trailing slash. */
  readonly baseUrl: string;
  readonly family: "energy-coordination" | "vtn";
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Null: the field is not sent. */
  readonly scope: string | null;
  readonly pollEvery: Millis;
  readonly staleAfter: Millis;
  readonly prices: PricesConfig;
}

export const vtnConfig = (section: z.infer<typeof vtnSection>, open: OpenSecret): VtnConfig => ({
  ...section,
  clientSecret: openFirst(section.clientSecret, ["vtn", "clientSecret"], open),
});
