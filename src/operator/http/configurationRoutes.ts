import { applySchema, rollbackSchema } from "../configuration.ts";
import { answers } from "./answers.ts";
import { valueOf } from "./problem.ts";
import { route, type Route } from "./route.ts";
import type { OperatorViews } from "./views.ts";

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
