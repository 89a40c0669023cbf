import { brokerTrialSchema, trialSchema } from "../chargerActions.ts";
import { answers } from "./answers.ts";
import { valueOf } from "./problem.ts";
import { idempotencyKey, route, type Route } from "./route.ts";
import type { OperatorViews } from "./views.ts";

/** Trials of one address in a minute: each publishes at every native charger. */
const MAX_TRIALS = 6;

/** Commissioning: trials of the brokers, and of a charger with real setpoints. */
export const trialRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "POST",
    path: "/api/v1/broker/trial",
    role: "integrator",
    summary:
      "Tries login and access list of each broker over the daemon's own connection: which topics are refused. Commands no charger.",
    body: brokerTrialSchema,
    answer: answers.brokerTrial,
    rateLimit: MAX_TRIALS,
    handle: async ({ body, person }) => valueOf(await (await views).trials.brokers(body.reason, person.name)),
  }),
  route({
    method: "GET",
    path: "/api/v1/chargers/:id/trial",
    role: "viewer",
    summary: "What a trial of a charger does, whether it can be tried now, and how its last trial went.",
    answer: answers.trial,
    handle: async ({ params }) => valueOf((await views).trials.get(params["id"] ?? "")),
  }),
  route({
    method: "POST",
    path: "/api/v1/chargers/:id/trial",
    role: "integrator",
    summary:
      "Tries a charger with three real setpoints, measures, and restores what it had. Does not wait for the end: GET shows it.",
    status: 202,
    body: trialSchema,
    answer: answers.trial,
    handle: async ({ body, params, person, request }) => {
      const key = idempotencyKey(request);
      return valueOf(await (await views).trials.start(params["id"] ?? "", body, person.name, key));
    },
  }),
  route({
    method: "DELETE",
    path: "/api/v1/chargers/:id/trial",
    role: "integrator",
    summary: "Ends the trial of a charger early. The charger gets back what it had.",
    answer: answers.trial,
    handle: async ({ params, person }) => valueOf((await views).trials.stop(params["id"] ?? "", person.name)),
  }),
];
