import { Readable } from "node:stream";
import * as z from "zod";

import type { Json } from "../../domain/audit.ts";
import type { AuditQuery } from "../../domain/store.ts";
import type { Health } from "../../platform/systemd.ts";
import type { AlarmApi } from "../alarms.ts";
import type { Answer, Proof } from "../answer.ts";
import type { ConfigurationApi } from "../configuration.ts";
import type { DepartureApi } from "../departures.ts";
import type { HoldApi } from "../holds.ts";
import type { ReadingsQuery } from "../listViews.ts";
import type { ModeApi } from "../mode.ts";
import type { BindingApi } from "../bindings.ts";
import type { RebootApi, ResendApi, TrialApi } from "../chargerActions.ts";
import { answers } from "./answers.ts";
import { auditQuery, auditQueryOf } from "../recordPages.ts";
import { Refusal, valueOf } from "./problem.ts";
import { jsonList, page, pageQuery, route, type Route, type Rows } from "./route.ts";
import { EVENT_STREAM, type LiveStream } from "./stream.ts";

/** Views of the listener. Each is built anew for every request. */
export interface OperatorViews {
  /** True once the state is open, the listeners are up and the first evaluation is done. */
  readonly ready: () => boolean;
  /** A daemon that works only in part is fit and answers 200: a restart would not help. `status` has the reason. */
  readonly health: () => Health;
  readonly status: () => Json | Promise<Json>;
  readonly site: () => Json;
  readonly configuration: ConfigurationApi;
  /** Built one by one: there may be thousands, each with thousands of vehicles. */
  readonly events: () => Rows | Promise<Rows>;
  readonly chargers: () => Rows;
  readonly vehicles: () => Rows;
  readonly audit: (query: AuditQuery) => Json | Promise<Json>;
  readonly verify: () => Promise<Json>;
  readonly prices: () => readonly Json[];
  readonly reports: () => readonly Json[] | Promise<readonly Json[]>;
  /** The full stack of claims on a charger or a vehicle. */
  readonly explain: (query: Readonly<Record<string, unknown>>) => Answer<Json> | Promise<Answer<Json>>;
  readonly handover: (query: Readonly<Record<string, unknown>>) => Promise<Answer<Json>>;
  /** Readings of a charger or a vehicle, for a chart. */
  readonly readings: (query: ReadingsQuery) => Promise<Answer<Json>>;
  readonly sitePower: (query: Pick<ReadingsQuery, "from" | "until">) => Promise<Answer<Json>>;
  readonly stream: LiveStream;
  readonly holds: HoldApi;
  readonly mode: ModeApi;
  readonly resend: ResendApi;
  readonly reboots: RebootApi;
  readonly bindings: BindingApi;
  readonly trials: TrialApi;
  /** Plan of each vehicle of an event. `isDryRun`: as if it started now. */
  readonly eventPlan: (event: string, isDryRun: boolean) => Promise<Answer<Json>>;
  /** The history of an event as a sealed text, or the reason why there is none. */
  readonly proof: (event: string, format: "json" | "csv") => Promise<Proof>;
  readonly alarms: AlarmApi;
  readonly departures: DepartureApi;
  /** A support archive, or the reason why there is none. `by`: name of the person. */
  readonly bundle: (by: string) => Promise<Buffer | string>;
  readonly metrics: { readonly contentType: string; readonly text: () => Promise<string> };
}

/** Views that are chosen, or refused, anew at each access. */
export const viewsBy = (choose: (name: keyof OperatorViews) => unknown): OperatorViews =>
  new Proxy({} as OperatorViews, {
    // A promise of the views is awaited, which asks for the member `then`.
    get: (_views, name) => (name === "then" ? undefined : choose(name as keyof OperatorViews)),
  });

const MAX_CHECKS = 6; // of the record, by one address in a minute

/** Lists by name, each with the member that is the key of a row. */
const LISTS = {
  events: { key: "id", row: answers.event, summary: "Every known event, the newest start first." },
  chargers: {
    key: "charger",
    row: answers.charger,
    summary: "Every charger: its setpoint, limits, readings and the reason.",
  },
  vehicles: {
    key: "id",
    row: answers.vehicle,
    summary: "Every vehicle: its charger, its planned setpoints and its departure.",
  },
  prices: { key: "id", row: answers.priceSeries, summary: "Every configured price series." },
  reports: {
    key: "name",
    row: answers.report,
    summary: "Reports to the partner: planned, waiting, sent, flagged.",
  },
} as const;

/** Probes and Prometheus may add parameters of their own. */
const ANY_QUERY = z.looseObject({});

/** Health, metrics and the lists of the site. */
export const viewRoutes = (views: Promise<OperatorViews>): readonly Route[] => [
  route({
    method: "GET",
    path: "/healthz",
    role: null,
    summary: "Health of the process as text. 503 only if a restart may help.",
    query: ANY_QUERY,
    answerType: "text/plain",
    handle: async ({ reply }) => {
      const { fit, status } = (await views).health();
      return reply
        .code(fit ? 200 : 503)
        .type("text/plain")
        .send(`${status}\n`);
    },
  }),
  route({
    method: "GET",
    path: "/readyz",
    role: null,
    summary: "200 once the state is open, the listeners are up and the events were evaluated.",
    query: ANY_QUERY,
    answerType: "text/plain",
    handle: async ({ reply }) => {
      const ready = (await views).ready();
      return reply
        .code(ready ? 200 : 503)
        .type("text/plain")
        .send(ready ? "ready\n" : `${(await views).health().status}\n`);
    },
  }),
  route({
    method: "GET",
    path: "/metrics",
    role: "viewer",
    summary: "Metrics for Prometheus.",
    query: ANY_QUERY,
    answerType: "text/plain",
    handle: async ({ reply }) => {
      const { metrics } = await views;
      return reply.type(metrics.contentType).send(await metrics.text());
    },
  }),
  route({
    method: "GET",
    path: "/api/v1/status",
    role: "viewer",
    summary: "The state of the site, with every open problem and its remedy. Of a stand-in: the leader.",
    answer: z.union([answers.status, answers.standIn]),
    handle: async () => (await views).status(),
  }),
  route({
    method: "GET",
    path: "/api/v1/site",
    role: "viewer",
    summary:
      "What does not change while the daemon runs: the version, the lanes of the yard, the main fuse, the make and the ratings of each charger.",
    answer: answers.site,
    handle: async () => (await views).site(),
  }),
  ...(["events", "chargers", "vehicles", "prices", "reports"] as const).map((name) =>
    route({
      method: "GET",
      path: `/api/v1/${name}`,
      role: "viewer",
      summary: LISTS[name].summary,
      query: pageQuery,
      answer: z.array(LISTS[name].row),
      handle: async ({ query, reply }) => {
        const all = await page(await (await views)[name](), LISTS[name].key, query);
        if (Array.isArray(all)) return all;
        return reply.type("application/json; charset=utf-8").send(Readable.from(jsonList(all)));
      },
    }),
  ),
  route({
    method: "GET",
    path: "/api/v1/audit",
    role: "viewer",
    summary: "Rows of the record, the oldest first unless newest is set.",
    query: auditQuery,
    answer: z.array(answers.auditRow),
    handle: async ({ query }) => (await views).audit(auditQueryOf(query)),
  }),
  route({
    method: "GET",
    path: "/api/v1/audit/check",
    role: "viewer",
    summary: "Verifies the hash chain of the record, and all that an HMAC protects.",
    answer: answers.recordCheck,
    rateLimit: MAX_CHECKS,
    handle: async () => (await views).verify(),
  }),
  streamRoute(views),
  route({
    method: "GET",
    path: "/api/v1/explain",
    role: "viewer",
    summary: "Why a charger has its setpoint: every claim, the winner first.",
    query: explainQuery,
    answer: answers.explanation,
    handle: async ({ query }) => valueOf(await (await views).explain(query)),
  }),
  route({
    method: "GET",
    path: "/api/v1/handover",
    role: "viewer",
    summary:
      "What the next shift has to know: events with their results, holds, alarms, who leaves short, what is due next.",
    query: handoverQuery,
    answer: answers.handover,
    rateLimit: MAX_CHECKS,
    handle: async ({ query }) => valueOf(await (await views).handover(query)),
  }),
];

const handoverQuery = z.strictObject({
  since: z
    .string()
    .exactOptional()
    .describe(
      "Beginning of the shift: 22:00 at the site, 8h before now, or ISO 8601; at most 24 h back. Absent: 12h.",
    ),
});

const explainQuery = z.strictObject({
  charger: z.string().exactOptional().describe("Id of a charger. Either this or vehicle."),
  vehicle: z.string().exactOptional().describe("Id or name of a vehicle."),
  at: z
    .string()
    .exactOptional()
    .describe("A moment, ISO 8601: behind by the record, ahead by the plan. Absent: now."),
});

/** Headers of the answer. A reverse proxy must pass each event on at once. */
const HEADERS = {
  "content-type": `${EVENT_STREAM}; charset=utf-8`,
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** Event streams of browsers (EventSource) and programs. */
const streamRoute = (views: Promise<OperatorViews>): Route =>
  route({
    method: "GET",
    path: "/api/v1/stream",
    role: "viewer",
    summary:
      "Server-sent events status, charger, vehicle, event, hold, alarm and audit, each with the object as its list shows it. Last-Event-ID resumes; reset asks the client to load the lists.",
    answerType: EVENT_STREAM,
    handle: async ({ request, reply, mayStay }) => {
      const { stream } = await views;
      const { "last-event-id": last } = request.headers;
      if (stream.isFull)
        throw new Refusal(503, "too many streams are open", { headers: { "retry-after": "30" } });
      if (request.method === "HEAD") return reply.headers(HEADERS).send();
      reply.hijack();
      for (const [name, value] of Object.entries({ ...reply.getHeaders(), ...HEADERS }))
        if (value !== undefined) reply.raw.setHeader(name, value);
      stream.join(reply.raw, typeof last === "string" ? last : null, mayStay);
      return undefined;
    },
  });
