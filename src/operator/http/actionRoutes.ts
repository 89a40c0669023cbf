import { Readable } from "node:stream";
import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import { alarmNote } from "../alarms.ts";
import { applySchema, rollbackSchema } from "../configuration.ts";
import { departureSchema } from "../departureRequest.ts";
import { holdEndSchema, holdSchema } from "../holdRequest.ts";
import { modeSchema } from "../mode.ts";
import { answers } from "./answers.ts";
import { chargerRoutes } from "./chargerRoutes.ts";
import { Refusal, valueOf } from "./problem.ts";
import { idempotencyKey, route, type Route, page, pageQuery } from "./route.ts";
import type { OperatorViews } from "./views.ts";

const holdQuery = z.strictObject({
  state: z
    .enum(["open"])
    .exactOptional()
    .describe("open: only those. Absent: also those that ended within a day."),
  limit: z.string().exactOptional().describe("At most so many rows. Default 100."),
  after: z.string().exactOptional().describe("The id of the last row seen: the rows behind it follow."),
});

/** Holds: listed, opened and ended. And the mode of the site. */
export const holdRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/holds",
    role: "viewer",
    summary: "Holds, the newest first, with what each charger under them gets and whether it follows.",
    query: holdQuery,
    answer: z.array(answers.hold),
    handle: async ({ query }) => valueOf((await views).holds.list(query)),
  }),
  route({
    method: "POST",
    path: "/api/v1/holds",
    role: "operator",
    summary: "Opens a hold: overrides the events on a vehicle, a charger or the site, until an end.",
    status: 201,
    body: holdSchema,
    answer: answers.openedHold,
    handle: async ({ body, person, request }) => {
      const key = idempotencyKey(request);
      return valueOf(await (await views).holds.open(body, person.name, key));
    },
  }),
  route({
    method: "POST",
    path: "/api/v1/holds/preview",
    role: "operator",
    summary: "What a hold would take from each event, by the plan. Opens none.",
    body: holdSchema,
    answer: answers.holdPreview,
    handle: async ({ body, person }) => valueOf(await (await views).holds.preview(body, person.name)),
  }),
  route({
    method: "DELETE",
    path: "/api/v1/holds/:id",
    role: "operator",
    summary: "Ends a hold early.",
    body: holdEndSchema,
    answer: answers.hold,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).holds.end(params["id"] ?? "", body, person.name)),
  }),
  route({
    method: "GET",
    path: "/api/v1/mode",
    role: "viewer",
    summary: "The mode of the site: as configured, or observe for a period that a person asked for.",
    answer: answers.mode,
    handle: async () => (await views).mode.get(),
  }),
  route({
    method: "PUT",
    path: "/api/v1/mode",
    role: "integrator",
    summary: "Has the whole site observe until an end, or ends that. Decisions are recorded and not sent.",
    body: modeSchema,
    answer: answers.changedMode,
    handle: async ({ body, person }) => valueOf(await (await views).mode.put(body, person.name)),
  }),
];

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
      "The vehicle stays on one day: neither a weekly departure nor one that was set applies. DELETE brings the weekly ones back, and a PUT for that day sets one.",
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
      const key = idempotencyKey(request);
      return valueOf(await (await views).departures.importCsv(body, person.name, key));
    },
  }),
];

const alarmQuery = pageQuery.extend({
  state: z
    .enum(["open", "acknowledged", "cleared"])
    .exactOptional()
    .describe("Those in this state only. Absent: all, with those that cleared within a day."),
});

/** Alarms: listed and acknowledged. */
export const alarmRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/alarms",
    role: "viewer",
    summary: "Alarms: those that last first, the gravest first.",
    query: alarmQuery,
    answer: z.array(answers.alarm),
    handle: async ({ query }) => {
      const { state } = query;
      const found = valueOf((await views).alarms.list(state === undefined ? {} : { state }));
      return page(found as readonly Json[], "key", query);
    },
  }),
  route({
    method: "POST",
    path: "/api/v1/alarms/:key/acknowledge",
    role: "operator",
    summary: "Acknowledges an alarm: it is silenced, and stays until its fact ends.",
    body: alarmNote,
    answer: answers.alarm,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).alarms.acknowledge(params["key"] ?? "", body, person.name)),
  }),
];

/** Proofs of one address in a minute: each reads the record of its event and its readings. */
const MAX_PROOFS = 6;

const proofQuery = z.strictObject({
  format: z
    .enum(["json", "csv"])
    .exactOptional()
    .describe("Default json: an array of flat facts. csv opens in a spreadsheet."),
});

const planQuery = z.strictObject({
  start: z
    .literal("now")
    .exactOptional()
    .describe("A dry run: as if the event started now, with its own random offsets. Nothing is sent."),
});

const MEDIA_TYPES = { json: "application/json", csv: "text/csv" } as const;

/** Actions on a charger, and the plan and the proof of an event. */
export const actionRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  ...chargerRoutes(views),
  route({
    method: "GET",
    path: "/api/v1/events/:id/plan",
    role: "viewer",
    summary: "What each vehicle of an event gets by the plan: at its start, or now if it has begun.",
    query: planQuery,
    answer: answers.eventPlan,
    handle: async ({ query, params }) =>
      valueOf(await (await views).eventPlan(params["id"] ?? "", query.start === "now")),
  }),
  route({
    method: "GET",
    path: "/api/v1/events/:id/proof",
    role: "viewer",
    summary:
      "The history of an event as a file, sealed: asked, sent, acknowledged, measured. setpointd proof verify checks it.",
    query: proofQuery,
    answer: z.array(answers.proofFact),
    textType: "text/csv",
    rateLimit: MAX_PROOFS,
    handle: async ({ query: { format = "json" }, params, reply }) => {
      const event = (params["id"] ?? "").normalize("NFC").toWellFormed();
      const proven = await (await views).proof(event, format);
      if (!proven.ok) throw new Refusal(404, proven.reason);
      const name = `proof-${event.replaceAll(/[^\w.-]+/g, "_").slice(0, 100)}.${format}`;
      return reply
        .type(`${MEDIA_TYPES[format]}; charset=utf-8`)
        .header("content-disposition", `attachment; filename="${name}"`)
        .send(Readable.from(proven.pieces));
    },
  }),
];

/** The configuration: shown, applied, and put back. */
export const configurationRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/configuration",
    role: "integrator",
    summary:
      "What runs, whether the configuration file differs from it and where, what ran before, and what a change would interrupt. No values.",
    answer: answers.configuration,
    handle: async () => (await views).configuration.get(),
  }),
  route({
    method: "POST",
    path: "/api/v1/configuration/apply",
    role: "integrator",
    summary:
      "Starts again with the configuration file, in the same process; if that does not start, with the one before. Answered first: last of GET configuration has the result.",
    status: 202,
    body: applySchema,
    answer: answers.changedConfiguration,
    handle: async ({ body, person }) => valueOf(await (await views).configuration.apply(body, person.name)),
  }),
  route({
    method: "POST",
    path: "/api/v1/configuration/rollback",
    role: "integrator",
    summary:
      "As apply, with a configuration that ran. It stays in force over restarts until the file changes, or is applied.",
    status: 202,
    body: rollbackSchema,
    answer: answers.changedConfiguration,
    handle: async ({ body, person }) =>
      valueOf(await (await views).configuration.rollback(body, person.name)),
  }),
];
