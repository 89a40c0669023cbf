import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import { invalid } from "../answer.ts";
import { departureSchema } from "../departureRequest.ts";
import { idempotencyKey } from "./holdRoutes.ts";
import { valueOf } from "./problem.ts";
import { route, type Route } from "./route.ts";
import { type OperatorViews, page, pageQuery } from "./views.ts";

const departure = z.looseObject({
  vehicle: z.string(),
  name: z.string(),
  charger: z.string().nullable().describe("null: the vehicle is at no charger."),
  at: z.string(),
  need: z.union([z.strictObject({ energyWh: z.number() }), z.strictObject({ soc: z.number() })]),
  source: z.enum(["weekly", "api", "csv"]),
  by: z.string().nullable().describe("null: from the configuration."),
  state: z
    .enum(["ready", "onTime", "short", "unknown"])
    .describe("ready: it has what it needs. unknown: missing names what is not known."),
  readyAt: z.string().nullable().describe("By the plan and the measured power. null: never, or not known."),
  slackS: z.number().nullable().describe("Seconds from readyAt to the departure; negative: late."),
  short: z.strictObject({ energyWh: z.number() }).nullable(),
  cause: z.enum(["event", "hold", "charger", "vehicle", "time", "notPluggedIn"]).nullable(),
  because: z.string(),
  missing: z.array(z.string()),
  guardFrom: z
    .string()
    .nullable()
    .describe("From then on the departure guard frees the vehicle from events. null: it does not."),
});

/** Departures: listed, set, cleared and imported. */
export const departureRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/departures",
    role: "viewer",
    summary: "The next departure of each vehicle, the next first, with what is expected of it.",
    query: pageQuery,
    answer: z.array(departure),
    handle: async ({ query }) =>
      page(valueOf((await views).departures.list()) as readonly Json[], "vehicle", query),
  }),
  route({
    method: "PUT",
    path: "/api/v1/departures/:vehicle",
    role: "operator",
    summary: "Sets the next departure of a vehicle. It replaces the weekly ones of its day.",
    body: departureSchema,
    answer: departure,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).departures.set(params["vehicle"] ?? "", body, person.name)),
  }),
  route({
    method: "DELETE",
    path: "/api/v1/departures/:vehicle",
    role: "operator",
    summary: "Clears what was set for a vehicle. Its weekly departures apply again.",
    answer: z.looseObject({ vehicle: z.string() }),
    handle: async ({ params, person }) =>
      valueOf(await (await views).departures.clear(params["vehicle"] ?? "", person.name)),
  }),
  route({
    method: "POST",
    path: "/api/v1/departures",
    role: "operator",
    summary:
      "Sets the departures of a CSV file with the header vehicle,at,energyKwh,soc. A file with a mistake changes nothing.",
    body: z.string(),
    bodyType: "text/csv",
    answer: z.looseObject({ departures: z.int(), vehicles: z.int() }),
    handle: async ({ body, person, request }) => {
      const key = idempotencyKey(request.headers["idempotency-key"]);
      return valueOf(
        typeof key === "object" && key !== null
          ? invalid(key)
          : await (await views).departures.importCsv(body, person.name, key),
      );
    },
  }),
];
