import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import { alarmNote } from "../alarms.ts";
import { resendSchema } from "../resend.ts";
import { answers } from "./answers.ts";
import { Refusal, valueOf } from "./problem.ts";
import { route, type Route } from "./route.ts";
import { type OperatorViews, page, pageQuery } from "./views.ts";

/** Proofs of one address in a minute: each reads the record of its event and its readings. */
const MAX_PROOFS = 6;

const proofQuery = z.strictObject({
  format: z
    .enum(["json", "csv"])
    .exactOptional()
    .describe("Default json: an array of flat facts. csv opens in a spreadsheet."),
});

const MEDIA_TYPES = { json: "application/json", csv: "text/csv" } as const;

/** Actions on a charger, and the plan and the proof of an event. */
export const actionRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "POST",
    path: "/api/v1/chargers/:id/resend",
    role: "operator",
    summary: "Sends the last command of a charger again. It changes no setpoint.",
    body: resendSchema,
    answer: answers.resent,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).resend(params["id"] ?? "", body, person.name)),
  }),
  route({
    method: "GET",
    path: "/api/v1/events/:id/plan",
    role: "viewer",
    summary: "What each vehicle of an event gets by the plan: at its start, or now if it has begun.",
    answer: answers.eventPlan,
    handle: async ({ params }) => valueOf(await (await views).eventPlan(params["id"] ?? "")),
  }),
  route({
    method: "GET",
    path: "/api/v1/events/:id/proof",
    role: "viewer",
    summary:
      "The history of an event as a file, sealed: asked, sent, acknowledged, measured. setpointd proof verify checks it.",
    query: proofQuery,
    answer: z.array(answers.proofFact),
    rateLimit: MAX_PROOFS,
    handle: async ({ query: { format = "json" }, params, reply }) => {
      const event = (params["id"] ?? "").normalize("NFC").toWellFormed();
      const proven = await (await views).proof(event, format);
      if (!proven.ok) throw new Refusal(404, proven.reason);
      const name = `proof-${event.replaceAll(/[^\w.-]+/g, "_").slice(0, 100)}.${format}`;
      return reply
        .type(`${MEDIA_TYPES[format]}; charset=utf-8`)
        .header("content-disposition", `attachment; filename="${name}"`)
        .send(proven.text);
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
