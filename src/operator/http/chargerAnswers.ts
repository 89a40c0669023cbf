import * as z from "zod";

import { count, level, moment, named } from "./holdAnswers.ts";

/* Answers about one charger: trial, reboot, sending again, binding; and the trial of the brokers. */

export const trial = named("Trial", {
  charger: z.string(),
  plan: z.strictObject({
    levels: z.array(level).describe("Sent one after the other. Empty: the charger has no maximum to try."),
    waitS: z.number().describe("Longest wait for the effect of each level."),
    silence: z.strictObject({
      effect: z.string().describe("Promise of its profile, without messages."),
      afterS: z.number(),
    }),
  }),
  hindrance: z.string().nullable().describe("Reason why it cannot be tried now. null: it can."),
  run: named("TrialRun", {
    since: moment,
    by: z.string(),
    reason: z.string(),
    silence: z.boolean().describe("Its silence is tried as well."),
    steps: z.array(z.strictObject({ at: moment, message: z.string() })),
    endedAt: moment.nullable().describe("null: it runs."),
    result: z
      .strictObject({
        good: z.boolean(),
        sentence: z.string().nullable().describe("null: nothing was tried."),
        complaint: z.string().nullable().describe("A failure outside of the trial."),
        levels: z.array(
          z.strictObject({
            asked: z.string(),
            drawnA: z.number().nullable().describe("Per phase. null: not reported."),
            effect: z.enum(["followed", "notFollowed", "unmeasured"]),
            confirmedAfterMs: z.number().nullable(),
            trouble: z.string().nullable().describe("Not sent, refused, or why it cannot be measured."),
          }),
        ),
      })
      .nullable(),
  })
    .nullable()
    .describe("The last trial that was asked for over the API since the start. null: none."),
});

const topics = z
  .array(
    named("TopicFinding", {
      access: z.enum(["write", "read"]).describe("write: a publish. read: a subscription."),
      topic: z.string(),
      found: z.string(),
    }),
  )
  .describe("At most 50.");

export const brokerTrial = named("BrokerTrials", {
  at: moment,
  by: z.string(),
  reason: z.string(),
  passed: z.boolean().describe("Every broker passed."),
  brokers: z.array(
    named("BrokerTrial", {
      broker: z.string().describe("Section of the configuration: mqtt, or brokers.NAME."),
      passed: z.boolean().describe("Connected, and no topic is refused."),
      isEmbedded: z.boolean().describe("The broker runs inside setpointd, and has its access list."),
      connectedSince: moment.nullable().describe("null: not connected."),
      trouble: z.string().nullable().describe("Why it is not connected."),
      mqtt: z.enum(["5", "3.1.1"]).nullable(),
      clientId: z.string().describe("Its secret part is masked."),
      username: z.string().nullable().describe("User name of the login. null: none is sent."),
      topics: z
        .strictObject({
          allowed: count,
          refused: count,
          untold: count.describe("The broker does not tell."),
          unused: count.describe("Nothing was published there since it connected."),
        })
        .describe("Counts of topics of the access list."),
      refused: topics,
      untold: topics,
      unheard: z.array(z.string()).describe("Topics of chargers on which no client listens, at most 50."),
      acl: z.array(z.string()).describe("Lines of the broker's access list that allow what is refused."),
    }),
  ),
});

/** A reboot that a person asked for. */
const reboot = named("Reboot", {
  id: z.string(),
  by: z.string(),
  reason: z.string(),
  at: moment,
  progress: z
    .enum(["asked", "sent", "accepted", "away", "back", "refused", "failed", "missing", "unnoticed"])
    .describe(
      "missing: not heard again within withinS. unnoticed: never away within withinS. failed: no broker took it.",
    ),
  changedAt: moment.describe("Time of this progress."),
  withinS: z.number().describe("Time for the reboot, in s."),
  sentence: z.string(),
});

export const rebootAnswer = named("RebootPreview", {
  charger: z.string(),
  vehicle: z.string().nullable(),
  hindrance: z.string().nullable().describe("Reason why it cannot be rebooted now. null: it can."),
  will: z.array(z.string()).describe("Consequences of a reboot now."),
  last: reboot.nullable().describe("The last one since the start of setpointd. null: none."),
});

export const resent = named("Resent", {
  charger: z.string(),
  vehicle: z.string().nullable(),
  command: z.string().describe("Id of the command that is sent again."),
  level,
  sentence: z.string(),
});

/** Reports of a charger about itself. */
export const reportedFacts = {
  soc: z.number().nullable().describe("Percent."),
  firmware: z.string().nullable().describe("null: not reported."),
  restarts: z
    .strictObject({
      counted: z
        .enum(["starts", "returns"])
        .describe(
          "starts: those that it reports itself. returns: it reports none, so each return counts, also after a lost connection.",
        ),
      count: count.describe("Since the start of setpointd."),
      lastAt: moment.nullable(),
    })
    .describe("Restarts that setpointd noticed."),
  reboot: reboot.nullable().describe("The last one that a person asked for. null: none since the start."),
};

const bindingMembers = { vehicle: z.string(), by: z.string(), reason: z.string(), since: moment };

/** Binding of a vehicle to a charger, made by a person. */
export const binding = named("Binding", bindingMembers);

export const bound = named("BoundVehicle", {
  ...bindingMembers,
  charger: z.string(),
  from: z.string().nullable().describe("Charger at which the vehicle counted before."),
  level: level.nullable().describe("Level of the charger now."),
  sentence: z.string(),
});
