import * as z from "zod";

import { type InputError, invalid } from "../answer.ts";
import { holdEndSchema, holdSchema } from "../holdRequest.ts";
import { modeSchema } from "../mode.ts";
import { answers } from "./answers.ts";
import { valueOf } from "./problem.ts";
import { route, type Route } from "./route.ts";
import type { OperatorViews } from "./views.ts";

const listQuery = z.strictObject({
  state: z
    .enum(["open"])
    .exactOptional()
    .describe("open: only those. Absent: also those that ended within a day."),
  limit: z.string().exactOptional().describe("At most so many rows. Default 100."),
  after: z.string().exactOptional().describe("The id of the last row seen: the rows behind it follow."),
});

const KEY = /^[!-~]{1,128}$/;

/** The `Idempotency-Key` of a request. Null: none. An object: the mistake in it. */
export function idempotencyKey(given: string | string[] | undefined): string | null | InputError {
  if (given === undefined) return null;
  if (typeof given === "string" && KEY.test(given)) return given;
  return { path: "Idempotency-Key", found: String(given), expected: "1 to 128 characters, no space" };
}

/** Holds: listed, opened and ended. And the mode of the site. */
export const holdRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/holds",
    role: "viewer",
    summary: "Holds, the newest first, with what each charger under them gets and whether it follows.",
    query: listQuery,
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
      const key = idempotencyKey(request.headers["idempotency-key"]);
      if (typeof key === "object" && key !== null) return valueOf(invalid(key));
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
