import * as z from "zod";

import { SEVERITIES } from "../../domain/alarm.ts";
import type { Json } from "../../domain/audit.ts";
import { alarmNote } from "../alarms.ts";
import { valueOf } from "./problem.ts";
import { route, type Route } from "./route.ts";
import { type OperatorViews, page, pageQuery } from "./views.ts";

/** An alarm as its list and its topic show it. */
export const alarmBody = z.looseObject({
  key: z.string(),
  kind: z.string(),
  severity: z.enum(SEVERITIES),
  state: z.enum(["open", "acknowledged", "cleared"]),
  since: z.string(),
  lastSeen: z.string(),
  clearedAt: z.string().nullable(),
  count: z.int().describe("Beginnings of the fact within this alarm."),
  subject: z.string().nullable().describe("null: the whole site."),
  message: z.string(),
  action: z.string().describe("The remedy."),
});

const listQuery = pageQuery.extend({
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
    query: listQuery,
    answer: z.array(alarmBody),
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
    answer: alarmBody,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).alarms.acknowledge(params["key"] ?? "", body, person.name)),
  }),
];
