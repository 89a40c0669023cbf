import { bindingSchema } from "../bindings.ts";
import { brokerTrialSchema, resendSchema, trialSchema } from "../chargerActions.ts";
import { answers } from "./answers.ts";
import { valueOf } from "./problem.ts";
import { idempotencyKey, route, type Route } from "./route.ts";
import type { OperatorViews } from "./views.ts";

/** Trials of one address in a minute: each publishes at every native charger. */
const MAX_TRIALS = 6;

/** Trials of the brokers, and of a charger with real setpoints; actions of people on one charger. */
export const chargerRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
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
    method: "POST",
    path: "/api/v1/chargers/:id/vehicle",
    role: "operator",
    summary:
      "Names the vehicle on a charger that cannot tell. Until it reports unplugged, names another vehicle, or DELETE.",
    status: 201,
    body: bindingSchema,
    answer: answers.bound,
    handle: async ({ body, params, person, request }) => {
      const key = idempotencyKey(request);
      return valueOf(await (await views).bindings.bind(params["id"] ?? "", body, person.name, key));
    },
  }),
  route({
    method: "DELETE",
    path: "/api/v1/chargers/:id/vehicle",
    role: "operator",
    summary: "Takes back what a person said: what the charger itself reports counts again.",
    body: resendSchema,
    answer: answers.bound,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).bindings.unbind(params["id"] ?? "", body, person.name)),
  }),
  route({
    method: "GET",
    path: "/api/v1/chargers/:id/reboot",
    role: "viewer",
    summary: "What a reboot of a charger would do now, whether it is possible, and how the last one went.",
    answer: answers.reboot,
    handle: async ({ params }) => valueOf((await views).reboots.get(params["id"] ?? "")),
  }),
  route({
    method: "POST",
    path: "/api/v1/chargers/:id/reboot",
    role: "operator",
    summary: "Reboots a charger, which interrupts its charging. Does not wait for the end: GET shows it.",
    status: 202,
    body: resendSchema,
    answer: answers.reboot,
    handle: async ({ body, params, person }) =>
      valueOf(await (await views).reboots.start(params["id"] ?? "", body, person.name)),
  }),
];
