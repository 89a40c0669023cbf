import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import { alarmNote } from "../alarms.ts";
import { answers } from "./answers.ts";
import { valueOf } from "./problem.ts";
import { route, type Route } from "./route.ts";
import { type OperatorViews, page, pageQuery } from "./views.ts";

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
