import * as z from "zod";
import type { Millis } from "../../domain/units.ts";
import { duration } from "../fields/quantities.ts";
import { pricesSection, type PricesConfig } from "./prices.ts";
import { openFirst, secrets, type OpenSecret, type Secret } from "../fields/secret.ts";
import { webUrl } from "../fields/address.ts";

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
  staleAfter: duration("10s", "7d")
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
