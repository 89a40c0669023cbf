import * as z from "zod";

import { actions, keepalive, path, recurring, span, derivedName, parameter, telemetry } from "./sections.ts";

/** A value that the charger reports and that is sent back to it. Templates use its name. */
const report = z.strictObject({
  topic: z.string().min(1).describe("Topic of the report; {name} inserts a parameter. Required."),
  path: path.optional().describe("Where in its JSON payload. Left out: the payload is plain text."),
  pattern: z
    .string()
    .min(1)
    .describe(
      "Regular expression for the whole value; after any other value none is known. A group in it is the value. Required.",
    ),
  when: z
    .enum(["now", "taken"])
    .prefault("now")
    .describe("now: the latest value; taken: the value at the first command after a release. Default now."),
  otherwise: z
    .string()
    .optional()
    .describe(
      "The value if none is known; {name} inserts a parameter, {maxCurrent} the maximum. Left out: a message with it is not sent.",
    ),
  keeps: z
    .string()
    .optional()
    .describe(
      "For taken: a value that belongs to the owner even if it is reported during a level; it is then not overwritten. Left out: none.",
    ),
});

/** A topic that shows a command of another topic. */
const shownCommand = z.strictObject({
  told: z.string().min(1).describe("The topic of the command. Required."),
  shown: z.string().min(1).describe("The topic that reports the present value. Required."),
});

const sentences = z.array(z.string().min(1));
const positive = z.number().positive();

const currentLimits = z.strictObject({
  min: z
    .number()
    .min(0)
    .describe("Least current that it charges with, A per phase; less is a pause. Required."),
  max: positive.describe("Largest current sent where the charger's own is not configured, A. Required."),
  ceiling: positive.optional().describe("Largest current sent whatever is configured, A. Left out: as max."),
  step: positive.prefault(1).describe("Currents are rounded down to a multiple of this, A. Default 1."),
  stepBy: z
    .string()
    .min(1)
    .optional()
    .describe("A name, chosen by a parameter, that stands for the step. Left out: step."),
  scale: positive.prefault(1).describe("Units on the wire in one A, e.g. 1000 for mA. Default 1."),
  allOrNothing: z
    .boolean()
    .prefault(false)
    .describe(
      "A relay: it is on at its full current or off, so less than its maximum is a pause. Default false.",
    ),
});

const powerLimits = z.strictObject({
  min: z.number().min(0).prefault(0).describe("Least power that it charges with, W. Default 0."),
  max: positive.describe("Largest power sent, W. Required."),
  discharge: positive
    .optional()
    .describe("Largest power fed back, W, as a positive number. Left out: negative power is a pause."),
  step: positive.prefault(1).describe("Powers are rounded down to a multiple of this, W. Default 1."),
});

export const fields = z.strictObject({
  profile: z
    .string({ error: "a name as the file has it: lower case letters, digits, - and ." })
    .regex(/^[a-z0-9][a-z0-9.-]{0,63}$/)
    .describe("Name of the profile, and of its file. Required."),
  title: z.string().min(1).describe("The charger make, and its interface. Required."),
  experimental: z.boolean().prefault(false).describe("Not yet tried on enough chargers. Default false."),
  params: z
    .record(z.string().regex(/^[A-Za-z][A-Za-z0-9]*$/), parameter)
    .prefault({})
    .describe("Parameters of one charger, by name. Default {}."),
  names: z
    .record(z.string().regex(/^[A-Za-z][A-Za-z0-9]*$/), derivedName)
    .prefault({})
    .describe("Further names for topics, payloads and scales, chosen by a parameter. Default {}."),
  limits: z
    .strictObject({
      current: currentLimits.describe("In A per phase. Required."),
      power: powerLimits.optional().describe("In W, for chargers that take watts. Left out: W become A."),
      zero: z
        .enum(["pause", "ignored", "minimum", "release", "unsupported"])
        .describe(
          "What the charger does at a level of 0. It is never sent: a level of 0 is a pause. Required.",
        ),
      belowMinimum: z
        .enum(["pause", "ignored", "minimum", "obeyed"])
        .describe(
          "What the charger does at a level below its minimum. It is never sent: such a level is a pause. Required.",
        ),
    })
    .describe("Levels that it accepts. Required."),
  phases: z
    .record(z.enum(["1", "3"]), z.union([z.string(), z.number()]))
    .optional()
    .describe("Payload for each number of phases. Left out: it cannot switch phases."),
  actions: actions.describe("Messages of each action. Required."),
  cannot: z
    .partialRecord(z.enum(["pause", "resume", "release", "setPhases", "reboot"]), z.string())
    .prefault({})
    .describe("Why an action cannot be done, for people. Default {}."),
  acquireCharges: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether taking control starts charging. It then follows the limit, and is left out for a pause. Default false.",
    ),
  resumeSetsLimit: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether the end of a pause restores an old limit. The limit is then sent after it. Default false.",
    ),
  levelEndsPause: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether each level, in A or W, ends a pause by itself. resume is then not sent with it. Default false.",
    ),
  releaseEndsPause: z
    .boolean()
    .prefault(true)
    .describe("Whether release also ends a pause. Otherwise resume is sent before it. Default true."),
  releaseKeepsLimit: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether the last limit stays after a release. It is then raised to the charger's maximum after the release. Default false.",
    ),
  ownLimit: z
    .string()
    .optional()
    .describe(
      "Name in reports of the limit from before the event. If it is known, release restores it and the limit is not raised. Left out: none.",
    ),
  reports: z
    .record(z.string().regex(/^[A-Za-z][A-Za-z0-9]*$/), report)
    .prefault({})
    .describe("Further names for payloads: what the charger itself reported. Default {}."),
  overwritten: z
    .array(shownCommand)
    .prefault([])
    .describe(
      "Commands that the charger reports back, and that others may overwrite: the command is sent again at once, at most once a minute. Default [].",
    ),
  echoes: z
    .array(
      z.strictObject({
        told: z.string().min(1).describe("The topic of the command. Required."),
        shown: z.string().min(1).describe("The topic that shows it, one of telemetry. Required."),
      }),
    )
    .prefault([])
    .describe(
      "Topics that show commands live. A command that is shown already is not sent again. Default [].",
    ),
  keepalive: z.array(keepalive).prefault([]).describe("Messages that must be repeated. Default []."),
  refresh: z
    .strictObject({
      every: recurring.prefault("60s").describe("How often the setpoint is sent again. Default 60s."),
      onPlugIn: z
        .boolean()
        .prefault(false)
        .describe("Whether it is sent again when a vehicle is plugged in. Default false."),
      released: z
        .boolean()
        .prefault(false)
        .describe(
          "Whether a release is sent again too, because the charger stops without a level. Default false.",
        ),
    })
    .prefault({})
    .describe("When the setpoint is sent again although nothing changed."),
  deviceTimeout: z
    .strictObject({
      after: span.describe("Time without a message from the gateway. Required."),
      effect: z.enum(["pause", "own limits"]).describe("What the charger does then. Required."),
    })
    .optional()
    .describe("What the charger does without messages from the gateway. Left out: it keeps the last level."),
  rate: z
    .strictObject({
      minInterval: span.prefault("0s").describe("Least time between two different setpoints. Default 0s."),
      writesPerHour: z.int().positive().optional().describe("Most setpoints in an hour. Left out: any."),
      wear: z
        .enum(["none", "flash", "database"])
        .prefault("none")
        .describe(
          "What each write wears. Such setpoints are sent when they change or were not accepted, not as a refresh. Default none.",
        ),
    })
    .prefault({})
    .describe("How often it may be written to."),
  phaseSwitch: z
    .strictObject({
      every: span.prefault("5m").describe("Least time between two switches. Default 5m."),
      settle: span.prefault("10s").describe("How long it is paused before a switch. Default 10s."),
      deadTime: span.prefault("60s").describe("How long it stays paused after a switch. Default 60s."),
    })
    .prefault({})
    .describe("Pauses around a switch of phases, for chargers that can switch."),
  telemetry: telemetry.prefault({}).describe("Signals that it reports. Default {}."),
  nativePayloads: z
    .boolean()
    .prefault(false)
    .describe("Whether it uses the native payloads, so that telemetry is left out. Default false."),
  alive: z
    .strictObject({
      topic: z.string().min(1).describe("A topic with a message every so often. Required."),
      silentAfter: recurring.describe("Silence that means offline. Required."),
    })
    .optional()
    .describe("Topic that shows life, for chargers without a last will. Left out: any message."),
  ready: z
    .strictObject({ topic: z.string().min(1).describe("The topic. Required.") })
    .optional()
    .describe(
      "Topic whose first live message after online shows that the charger obeys. Left out: it obeys at online.",
    ),
  burst: recurring
    .optional()
    .describe(
      "Measured values arrive one by one within this time, and are judged together. Left out: each at once.",
    ),
  retained: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether its telemetry is retained, so that the first messages of a subscription may be old. Default false.",
    ),
  confirmedBy: z
    .strictObject({
      signal: z.enum(["requestedA", "limitA"]).describe("The signal that repeats the setpoint. Required."),
      tolerance: z.number().min(0).prefault(0).describe("In A. Default 0."),
      within: recurring.prefault("10s").describe("How soon. Default 10s."),
      release: z
        .string()
        .optional()
        .describe("The name in reports whose topic shows a release by its value. Left out: by signal."),
    })
    .optional()
    .describe(
      "How the charger confirms a setpoint. If it never reported this signal, limitA confirms as well. Left out: it does not.",
    ),
  results: z
    .array(
      z.strictObject({
        topic: z.string().min(1).describe("The topic; + stands for any one level. Required."),
        ok: z
          .array(z.string())
          .min(1)
          .describe("Payloads that mean yes; all others are a refusal. Required."),
        within: recurring
          .optional()
          .describe(
            "How soon it answers, for chargers without confirmedBy. A setpoint without an answer counts as refused. Shorter than control.verdict.ramp, after which the draw counts. Left out: an answer may be missing.",
          ),
      }),
    )
    .prefault([])
    .describe("Topics with the charger's answers to commands. Default []."),
  setup: sentences.prefault([]).describe("Settings on the charger, for people. Default []."),
  ifWeDie: z.string().min(1).describe("What happens when the gateway dies, for people. Required."),
  uncertain: sentences.prefault([]).describe("What no source confirms yet, for people. Default []."),
});

export type Profile = z.output<typeof fields>;
