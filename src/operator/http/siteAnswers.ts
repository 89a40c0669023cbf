import * as z from "zod";

import { PROBLEM_KINDS } from "../siteProblems.ts";
import {
  alarm,
  openAlarms,
  count,
  departure,
  hold,
  holdMembers,
  level,
  maintenance,
  mode,
  modeMembers,
  moment,
  named,
  period,
} from "./holdAnswers.ts";

const names = z.array(z.string());
const problem = named("SiteProblem", {
  since: moment.nullable(),
  kind: z.enum(PROBLEM_KINDS),
  subject: z.string().nullable().describe("null: the whole site."),
  message: z.string(),
  action: z.string().describe("The remedy."),
});

const certificate = z.strictObject({
  certificate: z.string(),
  subject: z.string(),
  notAfter: moment,
  alarm: z.string().nullable().describe("null: it does not end soon."),
});

const leader = z.strictObject({
  self: z.boolean().describe("This process may command the site now."),
  process: z.string().describe("Host and process id."),
  epoch: count,
  since: moment,
  leaseUntil: moment,
  page: z.string().nullable().describe("Address of its page. null: no other machine reaches it."),
});

export const standIn = named("StandInStatus", {
  site: z.string(),
  timezone: z.string().describe("IANA name."),
  startedAt: moment.describe("Since when this process stands by."),
  now: moment,
  ready: z.literal(false),
  sentence: z.string(),
  leader: leader.nullable().describe("null: no process leads the site now."),
  database: z.string().nullable().describe("Reason why the database does not answer. null: it does."),
});

export const status = named("Status", {
  site: z.string(),
  timezone: z.string().describe("IANA name."),
  startedAt: moment,
  mode,
  observing: period.nullable().describe("null: the mode is as configured."),
  ready: z.boolean(),
  now: moment,
  epoch: count,
  leader: leader.optional().describe("Only where the state is in a database."),
  lookedAt: moment.nullable().describe("Last evaluation."),
  next: moment.nullable().describe("Next moment at which something changes by itself."),
  partner: z.strictObject({
    ok: z.boolean(),
    answeredAt: moment.nullable(),
    webhookAt: moment.nullable().describe("Last webhook delivery. null: none since the start."),
    polledAt: moment.nullable().describe("Last answered poll of the list. null: none since the start."),
    failures: count.describe("Since the last answer."),
    lastFailure: z.string().nullable(),
    stale: z.boolean(),
    skewMs: z.number().nullable(),
    tokenUntil: moment.nullable().describe("End of the access token in use. null: no token."),
  }),
  broker: z
    .strictObject({ connected: z.boolean(), reason: z.string().nullable(), away: names })
    .describe("connected: every broker is. away: names of the others, an empty one for the site's own."),
  problems: z.array(problem),
  alarms: openAlarms,
  chargers: z.strictObject({
    total: count,
    online: count,
    unreachable: count,
    limited: count,
    notSent: count,
    followed: count,
    notFollowed: count,
    refused: count,
  }),
  holds: z.strictObject({
    open: count,
    list: z.array(z.strictObject({ ...holdMembers, sentence: z.string() })).describe("At most 20."),
  }),
  events: z.strictObject({
    known: count,
    dispatches: count,
    active: z
      .array(
        z.strictObject({
          id: z.string(),
          name: z.string(),
          asked: z.string(),
          vehicles: count,
          start: moment,
          end: moment,
          modified: moment,
        }),
      )
      .describe("At most 20, the first to end first."),
  }),
  certificates: z.array(certificate),
  configuration: z
    .strictObject({
      fingerprint: z.string().describe("First 12 digits of the SHA-256 of its text."),
      since: moment.describe("The configuration runs since then."),
      file: z.enum(["same", "differs", "unreadable"]).describe("The file, compared by its text."),
      sentence: z.string().describe("Configuration that runs, and the one that a restart takes."),
    })
    .nullable()
    .describe("null: the site has no file of its own."),
  webhook: z
    .strictObject({
      refused: z.record(
        z.string(),
        z.strictObject({ count, lastAt: moment, lastFrom: z.string(), explanation: z.string() }),
      ),
    })
    .nullable()
    .describe("null: no webhook listener."),
  store: z.strictObject({
    commits: count,
    failures: count,
    longestCommitMs: z.number(),
    failing: z.strictObject({ reason: z.string(), forMs: z.number() }).nullable(),
    bytes: z.number(),
    free: z.number().nullable().describe("Bytes that the disk of the state has left. null: not known."),
  }),
  quarantine: z
    .array(
      z.strictObject({
        at: moment,
        source: z.string(),
        event: z.string().nullable(),
        path: z.string(),
        reason: z.string(),
        raw: z.string(),
      }),
    )
    .describe("Newest input that could not be read."),
});

export const site = named("Site", {
  site: z.string(),
  timezone: z.string().describe("IANA name."),
  version: z.string(),
  board: z.array(z.array(z.string())).describe("Lanes of the yard, each with its chargers in order."),
  maintenance: z.array(maintenance).describe("Planned work."),
  makes: z.record(z.string(), z.string()).describe("Profile of each charger."),
  ratings: z
    .record(
      z.string(),
      named("Rating", {
        phases: count,
        voltage: z.number().describe("V, phase to neutral."),
        maxCurrentA: z.number().nullable().describe("Per phase. null: not configured."),
        maxPowerW: z.number().nullable().describe("null: not configured."),
      }),
    )
    .describe("Electrical facts of each charger."),
  fuseA: z.number().nullable().describe("Main fuse, in A per phase. null: not configured."),
});

const price = z.strictObject({
  start: moment,
  end: moment,
  value: z.number(),
  currency: z.string().nullable(),
  perUnit: z.string().nullable().describe("Amount of energy, e.g. kWh."),
  region: z.string(),
  vat: z
    .strictObject({ rate: z.number().nullable(), hasVAT: z.boolean().nullable() })
    .nullable()
    .describe("As the partner sends it. rate 0.25 is 25 %."),
});

export const priceSeries = named("PriceSeries", {
  id: z.string().describe("The region, and for a forecast /forecast behind it."),
  region: z.string(),
  kind: z.enum(["actual", "forecast"]),
  fetchedAt: moment.nullable().describe("null: never."),
  outcome: z.string().nullable().describe("Result of the last request. null: none since the start."),
  reason: z.string().nullable(),
  doubts: names,
  prices: z.array(price),
  raw: z.string().nullable().describe("Beginning of the answer."),
});

export const report = named("Report", {
  name: z.string(),
  event: z.string(),
  descriptor: count,
  payloadType: z.string().nullable(),
  state: z.enum(["planned", "waiting", "sent", "flagged"]),
  from: moment.nullable(),
  until: moment.nullable(),
  due: moment.nullable().describe("null: it is composed, or never will be."),
  summary: z.string().nullable(),
  flags: names,
  composedAt: moment.nullable(),
  sentAt: moment.nullable(),
  nextTry: moment.nullable(),
  attempts: count,
  status: count.nullable(),
  reason: z.string().nullable(),
  receipt: z.string().nullable(),
});

export const eventPlan = named("EventPlan", {
  event: z.string(),
  now: moment,
  vehicles: count.describe("Vehicles of this site whose window has not ended."),
  mode: modeMembers.mode.describe("observe: nothing of it is sent."),
  rows: z
    .array(
      named("PlannedVehicle", {
        vehicle: z.string(),
        charger: z.string().nullable().describe("null: at no charger now."),
        from: moment,
        until: moment,
        offsetMs: z.number(),
        asked: level,
        outcome: z
          .enum(["asked", "limited", "overruled", "held", "absent"])
          .describe("At the start. limited: charger or vehicle allow another level. overruled: by winner."),
        gets: level.nullable().describe("null: at no charger now."),
        winner: z.string().nullable().describe("Event whose level it gets. null: none."),
        hold: z.string().nullable().describe("Hold that applies. null: none."),
        limits: names,
        interrupted: z
          .array(z.strictObject({ event: z.string(), from: moment, until: moment }))
          .describe("Events that take over while this one lasts."),
      }),
    )
    .describe("At most 1000, the first to start first."),
});

const vehicles = z.strictObject({ count, vehicles: z.array(z.string()).describe("At most 100.") });

export const handover = named("Handover", {
  site: z.string(),
  since: moment,
  now: moment,
  sentence: z.string(),
  mode: z.strictObject({
    ...modeMembers,
    changes: z
      .array(z.strictObject({ at: moment, message: z.string() }))
      .describe("Beginnings and ends of observe periods in the shift."),
  }),
  events: z
    .array(
      z.strictObject({
        id: z.string(),
        name: z.string(),
        state: z.enum(["active", "ended"]),
        asked: z.string(),
        start: moment,
        end: moment.describe("With the largest random start."),
        modified: moment,
        vehicles: count.describe("Number of vehicles of this site."),
        followed: vehicles,
        notFollowed: vehicles.describe("Refused, or measured as not followed."),
        held: vehicles.describe("Freed from the event by a hold."),
        missed: vehicles.describe("The window passed without action."),
        notJudged: count.describe("No verdict: too short, not begun, or at no charger."),
      }),
    )
    .describe("Events with a window in the shift, the newest start first, at most 20."),
  withdrawn: z
    .array(z.strictObject({ id: z.string(), at: moment }))
    .describe("By the partner, in the shift."),
  holds: z.array(hold).describe("Opened or ended in the shift, or still open."),
  alarms: z.array(alarm).describe("Open, or cleared in the shift; the newest first."),
  short: z.array(departure).describe("Vehicles that will leave short."),
  unreachable: z.array(problem).describe("Chargers and brokers."),
  due: z
    .array(
      z.strictObject({
        at: moment,
        kind: z.enum(["eventStarts", "eventEnds", "holdEnds", "observeEnds", "departure"]),
        subject: z.string().describe("Id of the event, hold or vehicle; mode for observeEnds."),
        message: z.string(),
      }),
    )
    .describe("Within the next 12 hours, the next first, at most 100."),
});
