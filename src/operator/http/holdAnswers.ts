import * as z from "zod";

import { SEVERITIES } from "../../domain/alarm.ts";

/** An object of the API. An id makes it a named schema of `docs/openapi.json`. */
export const named = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.strictObject(shape).meta({ id });

export const moment = z.string().describe("ISO 8601, UTC.");
export const count = z.int();

/** The level of a charger as the API shows it. */
export const level = named("Level", {
  currentA: z.number().exactOptional(),
  powerW: z.number().exactOptional(),
  pause: z.literal(true).exactOptional(),
  release: z.literal(true).exactOptional().describe("The charger decides by itself."),
});

const scope = z
  .union([
    z.strictObject({ vehicle: z.string() }),
    z.strictObject({ charger: z.string() }),
    z.strictObject({ site: z.literal(true) }),
  ])
  .meta({ id: "Scope" });

export const progress = z
  .enum(["none", "planned", "acknowledged", "accepted", "refused", "followed", "notFollowed", "observed"])
  .describe("Progress of the last command. none: never commanded.")
  .meta({ id: "Progress" });

export const mode = z.enum(["drive", "observe"]);

export const holdMembers = {
  id: z.string(),
  scope,
  kind: z.enum(["exempt", "level"]),
  level: level.nullable(),
  end: z.enum(["at", "unplugged", "energy", "events"]),
  since: moment,
  until: moment.nullable().describe("null: the end has no time."),
  by: z.string(),
  reason: z.string(),
  events: z.array(z.string()).describe("Some of the events that it sets aside."),
  eventCount: count,
};
/** The hold of a reason and of a charger. */
export const holdFacts = named("HoldFacts", holdMembers);

const effect = named("HoldEffect", {
  charger: z.string(),
  vehicle: z.string().nullable(),
  level: level.nullable(),
  applies: z.boolean().exactOptional().describe("false: another hold applies."),
  limits: z.array(z.string()).exactOptional(),
  overrules: z.array(z.string()).exactOptional().describe("Events."),
  waits: z.string().nullable().exactOptional().describe("Condition that keeps the level from the charger."),
  verdict: progress,
});

const costs = z
  .array(
    named("HoldCost", {
      event: z.string(),
      sentence: z.string(),
      estimatedWh: z.number().nullable().describe("By the plan, when the hold opened. null: not known."),
      measured: z
        .strictObject({
          wh: z.number().nullable().describe("null: no vehicle has readings."),
          vehicles: count.describe("Vehicles that the hold freed from the event."),
          unknown: count.describe("Vehicles of these without readings."),
        })
        .nullable()
        .describe("By the meters, two minutes after the end of the hold. null: not yet."),
    }),
  )
  .describe("Energy that the hold takes from each event: drawn above the level of the event.");

export const hold = named("Hold", {
  ...holdMembers,
  sentence: z.string(),
  energyWh: z.number().nullable(),
  deliveredWh: z.number().nullable(),
  state: z.enum(["open", "ended"]),
  ended: z.strictObject({ at: moment, by: z.string(), why: z.string() }).nullable(),
  costs: costs.nullable().describe("null: not computed yet."),
  chargers: count,
  effect: z.array(effect).describe("At most 100 in a list."),
});

const others = z
  .array(z.strictObject({ id: z.string(), scope, sentence: z.string() }))
  .describe("Open holds that apply to the same chargers.");

export const openedHold = named("OpenedHold", { ...hold.shape, others });

export const departure = named("Departure", {
  vehicle: z.string(),
  name: z.string(),
  charger: z.string().nullable().describe("null: the vehicle is at no charger."),
  at: moment,
  need: z.union([z.strictObject({ energyWh: z.number() }), z.strictObject({ soc: z.number() })]),
  source: z.enum(["weekly", "api", "csv"]),
  by: z.string().nullable().describe("null: from the configuration."),
  state: z
    .enum(["ready", "onTime", "short", "unknown"])
    .describe("ready: it has what it needs. unknown: missing names what is not known."),
  leavesInS: count,
  deliveredWh: z.number().nullable(),
  soc: z.number().nullable(),
  remainingWh: z.number().nullable().describe("Energy that is missing until the need is met."),
  powerW: z.number().nullable(),
  readyAt: moment.nullable().describe("By the plan and the measured power. null: never, or not known."),
  slackS: z.number().nullable().describe("Seconds from readyAt to the departure; negative: late."),
  short: z.strictObject({ energyWh: z.number() }).nullable(),
  cause: z.enum(["event", "hold", "charger", "vehicle", "time", "notPluggedIn"]).nullable(),
  because: z.string(),
  missing: z.array(z.string()),
  assumed: z.array(z.string()).describe("Assumptions, such as a slower end of the charge."),
  guardFrom: moment
    .nullable()
    .describe("From then on the departure guard frees the vehicle from events. null: it does not."),
});

export const holdPreview = named("HoldPreview", {
  sentence: z.string(),
  until: moment,
  chargers: count,
  costs,
  departures: z
    .array(departure)
    .describe("Departures of the vehicles at these chargers, as they would be under the hold."),
  others,
});

export const period = named("ObservePeriod", {
  since: moment,
  until: moment,
  by: z.string(),
  reason: z.string(),
  sentence: z.string(),
});

export const modeMembers = {
  mode,
  configured: mode,
  onObserve: z
    .enum(["release", "keep"])
    .nullable()
    .describe("Effect of observe on limited chargers. null: in the answer to drive."),
  observing: period.nullable().describe("null: the mode is as configured."),
  sentence: z.string(),
};

export const alarm = named("Alarm", {
  key: z.string(),
  kind: z.string(),
  severity: z.enum(SEVERITIES),
  state: z.enum(["open", "acknowledged", "cleared"]),
  since: moment,
  lastSeen: moment,
  goneSince: moment
    .nullable()
    .describe("End of the fact, also while the alarm stays open for its quiet time. null: the fact holds."),
  clearedAt: moment.nullable(),
  count: count.describe("Beginnings of the fact within this alarm."),
  subject: z.string().nullable().describe("null: the whole site."),
  message: z.string(),
  action: z.string().describe("The remedy."),
  acknowledged: z.strictObject({ at: moment, by: z.string(), note: z.string() }).nullable(),
});

/** Alarms that are not cleared. */
export const openAlarms = z.strictObject({
  open: count,
  acknowledged: count,
  list: z.array(alarm).describe("At most 20, the open ones first, the gravest first."),
});

export const sitePower = named("SitePower", {
  from: moment,
  until: moment,
  samples: z.array(
    named("PowerSample", {
      at: moment,
      measuredW: z.number().nullable().describe("null: nothing is on record."),
      atMostW: z.number().nullable().describe("The most that the setpoints of then allowed."),
    }),
  ),
});

/** Planned work, by the configuration. */
export const maintenance = named("Maintenance", {
  name: z.string(),
  from: moment,
  until: moment,
  bays: z.array(z.string()).describe("[]: the whole site."),
});
