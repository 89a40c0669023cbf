import * as z from "zod";

import { AUDIT_KINDS } from "../../domain/audit.ts";
import { binding, bound, brokerTrial, rebootAnswer, reportedFacts, resent, trial } from "./chargerAnswers.ts";
import { changedConfiguration, configuration } from "./configurationAnswers.ts";
import {
  alarm,
  count,
  departure,
  hold,
  holdFacts,
  level,
  modeMembers,
  moment,
  named,
  holdPreview,
  openedHold,
  period,
  progress,
  sitePower,
} from "./holdAnswers.ts";
import { eventPlan, handover, priceSeries, report, site, standIn, status } from "./siteAnswers.ts";

/*
 * Answers of the API, member by member. docs/openapi.json is made from them, and tests hold the answers of a daemon
 * against them.
 */

const ask = z
  .union([
    z.strictObject({ kind: z.enum(["current", "power"]), level: z.number() }),
    z.strictObject({ kind: z.literal("unknown"), payloadType: z.string() }),
  ])
  .meta({ id: "Ask" });

const event = z
  .union([
    z.strictObject({
      id: z.string(),
      name: z.string(),
      programId: z.string(),
      state: z.enum(["planned", "active", "ended"]),
      priority: z.number().nullable(),
      start: moment,
      end: moment.describe("Without the random start."),
      randomizeStartMs: z.number(),
      ask,
      vehicles: z.array(z.string()),
      foreignVehicles: count,
      unknownVehicles: z
        .array(z.strictObject({ id: z.string(), didYouMean: z.string().nullable() }))
        .describe("Some of the foreign vehicles, each with the vehicle of ours that was probably meant."),
      odd: z.array(z.string()).describe("Warnings about the event."),
      reportDescriptors: count,
      source: z.string(),
      receivedAt: moment,
      modified: moment,
    }),
    z.strictObject({ id: z.string(), state: z.literal("withdrawn"), withdrawnAt: moment }),
  ])
  .meta({ id: "EnergyEvent" });

const claimOf = {
  event: z.string(),
  priority: z.number().nullable(),
  asked: z.string(),
  from: moment,
  until: moment,
  offsetMs: z.number(),
  spreadMs: z.number(),
  cutAt: moment.nullable(),
};

const reason = named("Reason", {
  words: z.string().describe("A sentence for people."),
  cause: z.string(),
  until: moment.nullable(),
  held: z
    .strictObject({ by: z.string(), until: moment })
    .nullable()
    .describe("Rule that delays an increase."),
  winner: z.strictObject(claimOf).nullable(),
  overruled: z.array(z.strictObject(claimOf)).describe("At most 5, the best first."),
  overruledCount: count,
  limits: z.array(z.strictObject({ by: z.string(), asked: z.string(), allowed: z.string() })),
  occupant: z
    .union([
      z.strictObject({ kind: z.literal("vehicle"), vehicle: z.string(), source: z.string() }),
      z.strictObject({ kind: z.literal("unknown"), said: z.string() }),
      z.strictObject({ kind: z.literal("nobody") }),
    ])
    .nullable(),
  hold: holdFacts.nullable(),
});

const setpoint = {
  kind: z.enum(["current", "power", "pause", "release"]),
  value: z.number().nullable().describe("null: a pause or a release."),
  unit: z.enum(["A", "W"]).nullable(),
};

const levelSent = named("Setpoint", setpoint);

const charger = named("Charger", {
  charger: z.string(),
  broker: z.string().describe("Name of its broker in the configuration. Empty: the site's own."),
  vehicle: z.string().nullable(),
  occupant: z.enum(["vehicle", "unknown", "nobody"]),
  asked: z.strictObject({ ...setpoint, event: z.string() }).nullable(),
  allowed: levelSent.nullable().describe("Level of the last command, within all limits."),
  measured: z
    .strictObject({
      at: moment,
      state: z.string().nullable(),
      powerW: z.number().nullable(),
      currentsA: z.array(z.number()).nullable(),
      limitA: z.number().nullable(),
    })
    .nullable(),
  hold: holdFacts.nullable(),
  online: z.boolean().nullable(),
  reachable: z.boolean().nullable().describe("null: no message so far."),
  heardAt: moment.nullable(),
  verdict: progress,
  command: z.string().nullable().describe("Id of the last command: epoch-seq."),
  reason: reason.nullable(),
  until: moment.nullable(),
  ...reportedFacts,
  writes: z
    .strictObject({ lastHour: count, most: count })
    .nullable()
    .describe("null: writes are not limited."),
  commissioning: z.boolean(),
  binding: binding.nullable().describe("The vehicle that a person named. null: nobody did."),
});

const vehicle = named("Vehicle", {
  id: z.string(),
  name: z.string(),
  charger: z.string().nullable(),
  command: z.string().nullable().describe("Id of the last command of its charger."),
  planned: z.array(
    z.strictObject({
      event: z.string(),
      from: moment,
      until: moment,
      offsetMs: z.number(),
      asked: z.union([
        z.strictObject({ kind: z.literal("current"), amperes: z.number() }),
        z.strictObject({ kind: z.literal("power"), watts: z.number() }),
      ]),
    }),
  ),
  departure: departure.nullable(),
});

const auditRow = named("AuditRow", {
  seq: count,
  at: moment,
  kind: z.enum(AUDIT_KINDS),
  charger: z.string().nullable(),
  vehicle: z.string().nullable(),
  event: z.string().nullable(),
  command: z.string().nullable(),
  words: z.string(),
  facts: z
    .unknown()
    .describe(
      "The same as words for programs; its members depend on the row. observed: true: a decision of a site that only observes, which is not sent.",
    ),
  hash: z.string(),
  part: count.exactOptional().describe("Entries of a shared row up to this one: after=seq.part goes on."),
});

const recordCheck = named("RecordCheck", {
  ok: z.boolean(),
  rows: count.exactOptional().describe("Rows of the record, all of them whole."),
  head: z.string().exactOptional().describe("Hash of the last row."),
  readings: count.exactOptional(),
  unsigned: count.exactOptional(),
  seq: count
    .nullable()
    .exactOptional()
    .describe("The first wrong row. null: the fault lies outside the record."),
  reason: z.string().exactOptional(),
});

const claim = named("Claim", {
  kind: z.enum(["event", "hold", "limit", "default"]),
  source: z.string().describe("Id of the event or hold, or the name of the limit."),
  level: level.nullable(),
  since: moment.nullable(),
  until: moment.nullable(),
  status: z.enum(["wins", "overruled", "limits", "waits", "over"]),
  because: z.string(),
});

const explanation = named("Explanation", {
  sentence: z.string(),
  charger: z.string().nullable(),
  vehicle: z.string().nullable(),
  at: moment,
  claims: z.array(claim).describe("The winner first."),
  without: z
    .strictObject({ level, most: level.nullable().describe("null: no limit is configured.") })
    .describe("The level without any event."),
  departure: departure.nullable(),
});

const points = z.array(
  z.tuple([z.number(), z.number()]).meta({ id: "Point", description: "Ms since 1970, and the value then." }),
);

const readings = named("Readings", {
  charger: z.string().nullable(),
  vehicle: z.string().nullable(),
  from: moment,
  until: moment,
  current: points.describe("A, of the most loaded phase."),
  power: points.describe("W."),
  soc: points.describe("Percent."),
  limit: points.describe("A, as the charger reports it."),
  setpoints: z.array(z.strictObject({ at: moment, level, event: z.string().nullable() })),
});

const proofFact = named("ProofFact", {
  section: z.enum(["proof", "asked", "summary", "vehicle", "site", "report", "record", "seal"]),
  what: z.string(),
  vehicle: z.string().exactOptional(),
  charger: z.string().exactOptional(),
  command: z.string().exactOptional(),
  from: moment.exactOptional(),
  until: moment.exactOptional(),
  value: z.number().exactOptional(),
  unit: z.string().exactOptional(),
  words: z.string().exactOptional(),
  seq: count.exactOptional().describe("Row of the record that holds this fact."),
  previous: z.string().exactOptional().describe("Hash of the row before."),
  hash: z.string().exactOptional(),
  print: z.string().describe("Hash over this fact and all before it."),
});

/** Schemas of the answers, by the object that they show. */
export const answers = {
  status,
  standIn,
  site,
  configuration,
  changedConfiguration,
  handover,
  event,
  charger,
  vehicle,
  priceSeries,
  report,
  auditRow,
  recordCheck,
  explanation,
  eventPlan,
  readings,
  sitePower,
  proofFact,
  hold,
  holdPreview,
  openedHold,
  mode: named("Mode", modeMembers),
  changedMode: named("ChangedMode", {
    ...modeMembers,
    replaced: period.nullable().describe("The period that was open before."),
    limited: z.array(z.string()).describe("Chargers that were limited."),
  }),
  resent,
  reboot: rebootAnswer,
  bound,
  trial,
  brokerTrial,
  alarm,
  departure,
  clearedDeparture: named("ClearedDeparture", { vehicle: z.string(), next: departure.nullable() }),
  skippedDeparture: named("SkippedDeparture", {
    vehicle: z.string(),
    date: z.string(),
    next: departure.nullable(),
  }),
  importedDepartures: named("ImportedDepartures", { departures: count, vehicles: count }),
};
