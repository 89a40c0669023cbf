import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import { invalid } from "../answer.ts";
import { departureSchema } from "../departureRequest.ts";
import { answers } from "./answers.ts";
import { idempotencyKey } from "./holdRoutes.ts";
import { valueOf } from "./problem.ts";
import { route, type Route } from "./route.ts";
import { type OperatorViews, page, pageQuery } from "./views.ts";

/** Departures: listed, set, cleared and imported. */
export const departureRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/departures",
    role: "viewer",
    summary: "The next departure of each vehicle, the next first, with what is expected of it.",
    query: pageQuery,
    answer: z.array(answers.departure),
    handle: async ({ query }) =>
      page(valueOf((await views).departures.list()) as readonly Json[], "vehicle", query),
  }),
  route({
    method: "PUT",
    path: "/api/v1/departures/:vehicle",
    role: "operator",
    summary: "Sets the next departure of a vehicle. It replaces the weekly ones of its day.",
    body: departureSchema,
    answer: answers.departure,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).departures.set(params["vehicle"] ?? "", body, person.name)),
  }),
  route({
    method: "DELETE",
    path: "/api/v1/departures/:vehicle",
    role: "operator",
    summary: "Clears what was set for a vehicle. Its weekly departures apply again.",
    answer: answers.clearedDeparture,
    handle: async ({ params, person }) =>
      valueOf(await (await views).departures.clear(params["vehicle"] ?? "", person.name)),
  }),
  route({
    method: "POST",
    path: "/api/v1/departures/:vehicle/skip",
    role: "operator",
    summary:
      "The vehicle stays on one day of its weekly departures. What was set for that day goes; DELETE or a PUT for that day undoes it.",
    body: z.strictObject({
      date: z.string().describe("Day at the site, at most 31 days ahead: 2026-11-24."),
    }),
    answer: answers.skippedDeparture,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).departures.skip(params["vehicle"] ?? "", body, person.name)),
  }),
  route({
    method: "POST",
    path: "/api/v1/departures",
    role: "operator",
    summary:
      "Sets the departures of a CSV file with the header vehicle,at,energyKwh,soc. A file with a mistake changes nothing.",
    body: z.string(),
    bodyType: "text/csv",
    answer: answers.importedDepartures,
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
