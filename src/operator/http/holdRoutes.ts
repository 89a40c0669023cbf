import * as z from "zod";

import { invalid } from "../answer.ts";
import { holdEndSchema, holdSchema } from "../holdRequest.ts";
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
const hold = z.looseObject({ id: z.string() });

/** Holds: listed, opened and ended. */
export const holdRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/api/v1/holds",
    role: "viewer",
    summary: "Holds, the newest first, with what each charger under them gets and whether it follows.",
    query: listQuery,
    answer: z.array(hold),
    handle: async ({ query }) => valueOf((await views).holds.list(query)),
  }),
  route({
    method: "POST",
    path: "/api/v1/holds",
    role: "operator",
    summary: "Opens a hold: overrides the events on a vehicle, a charger or the site, until an end.",
    status: 201,
    body: holdSchema,
    answer: hold,
    handle: async ({ body, person, request }) => {
      const key = request.headers["idempotency-key"];
      if (key !== undefined && !(typeof key === "string" && KEY.test(key)))
        return valueOf(
          invalid({ path: "Idempotency-Key", found: String(key), expected: "1 to 128 characters, no space" }),
        );
      return valueOf(await (await views).holds.open(body, person.name, key ?? null));
    },
  }),
  route({
    method: "DELETE",
    path: "/api/v1/holds/:id",
    role: "operator",
    summary: "Ends a hold early.",
    body: holdEndSchema,
    answer: hold,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).holds.end(params["id"] ?? "", body, person.name)),
  }),
];
