import * as z from "zod";

import { actions, keepalive, recurring, span, derivedName, parameter, telemetry } from "./sections.ts";

/** A value that the charger reports and that is sent back to it. Templates use its name. */
const report = z.strictObject({
  topic: z
    .string()
    .min(1)
    .describe("Where it is reported, as plain text; {name} puts in a parameter. Required."),
  pattern: z
    .string()
    .min(1)
    .describe("What the whole value has to match; other values are not kept. Required."),
  when: z
    .enum(["now", "taken"])
    .prefault("now")
    .describe(
      "The latest value, or the one that held when the first command after a release took control. Default now.",
    ),
  otherwise: z
    .string()
    .optional()
    .describe(
      "The value where none is known; {name} puts in a parameter, {maxCurrent} the maximum. Left out: what has it is not sent.",
    ),
  keeps: z
    .string()
    .optional()
    .describe(
      "For taken: a value that counts as the owner's also when it is reported during a level, and is then not overwritten. Left out: none.",
    ),
});

/** A topic that shows a command of another topic. */
const shownCommand = z.strictObject({
  told: z.string().min(1).describe("The topic of the command. Required."),
  shown: z.string().min(1).describe("The topic that reports it as it stands. Required."),
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
    .describe("Its name, which is the file's too. Required."),
  title: z.string().min(1).describe("The make and what of it is spoken to. Required."),
  experimental: z.boolean().prefault(false).describe("Not yet tried on enough chargers. Default false."),
  params: z
    .record(z.string().regex(/^[A-Za-z][A-Za-z0-9]*$/), parameter)
    .prefault({})
    .describe("What has to be known of one charger, by name. Default {}."),
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
          "What a 0 would mean to the charger. It is never sent as a level: a level of 0 is a pause. Required.",
        ),
      belowMinimum: z
        .enum(["pause", "ignored", "minimum", "obeyed"])
        .describe(
          "What less than its minimum would mean to the charger. It is never sent: it is a pause. Required.",
        ),
    })
    .describe("What it can be told. Required."),
  phases: z
    .record(z.enum(["1", "3"]), z.union([z.string(), z.number()]))
    .optional()
    .describe("How it spells a number of phases. Left out: it cannot switch phases."),
  actions: actions.describe("What is published. Required."),
  cannot: z
    .partialRecord(z.enum(["pause", "resume", "release", "setPhases"]), z.string())
    .prefault({})
    .describe("Why an action cannot be done, for people. Default {}."),
  acquireCharges: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether taking control starts charging: then it is done behind the limit, and for no pause. Default false.",
    ),
  resumeSetsLimit: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether what ends a pause brings back an old limit: then the limit comes behind it. Default false.",
    ),
  levelEndsPause: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether each level, in A or W, replaces the one before and so ends a pause by itself: then resume is not sent beside it. Default false.",
    ),
  releaseEndsPause: z
    .boolean()
    .prefault(true)
    .describe("Whether release also ends a pause; else resume is sent before it. Default true."),
  releaseKeepsLimit: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether the last limit stays after a release: then it is raised to the charger's maximum behind it. Default false.",
    ),
  ownLimit: z
    .string()
    .optional()
    .describe(
      "The name in reports of the limit from before the event: where it is known, release puts it back, and the limit is not raised. Left out: none.",
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
        told: z.string().min(1).describe("The topic that it is told something on. Required."),
        shown: z.string().min(1).describe("The topic that shows it, one that telemetry reads. Required."),
      }),
    )
    .prefault([])
    .describe("Where it shows live what it was told: what is shown there is not told again. Default []."),
  keepalive: z.array(keepalive).prefault([]).describe("What has to be repeated. Default []."),
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
          "Whether a release is sent again too, since the charger stands still when nobody tells it a level. Default false.",
        ),
    })
    .prefault({})
    .describe("When the setpoint is sent again although nothing changed."),
  deviceTimeout: z
    .strictObject({
      after: span.describe("How long without us. Required."),
      effect: z.enum(["pause", "own limits"]).describe("What the charger does then. Required."),
    })
    .optional()
    .describe("What the charger does by itself when it hears no more of us. Left out: it holds the last."),
  rate: z
    .strictObject({
      minInterval: span.prefault("0s").describe("Least time between two different setpoints. Default 0s."),
      writesPerHour: z.int().positive().optional().describe("Most setpoints in an hour. Left out: any."),
      wear: z
        .enum(["none", "flash", "database"])
        .prefault("none")
        .describe(
          "What each write wears: such setpoints are sent when they change or were not taken, not to refresh. Default none.",
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
    .describe("With which pauses phases are switched, for chargers that can."),
  telemetry: telemetry.prefault({}).describe("What it tells. Default {}."),
  nativePayloads: z
    .boolean()
    .prefault(false)
    .describe("It tells everything as the native topics do, so telemetry is left out. Default false."),
  alive: z
    .strictObject({
      topic: z.string().min(1).describe("A topic with a message every so often. Required."),
      silentAfter: recurring.describe("Silence that means offline. Required."),
    })
    .optional()
    .describe("How it shows that it is there without a last will. Left out: by anything it says."),
  ready: z
    .strictObject({ topic: z.string().min(1).describe("The topic. Required.") })
    .optional()
    .describe(
      "A topic whose first live message after its last will says online shows that it obeys again. Left out: with online.",
    ),
  burst: recurring
    .optional()
    .describe(
      "Its measured values come one by one within this time, and are judged together. Left out: each as it comes.",
    ),
  retained: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether its telemetry is retained, so that what a subscription brings may be old. Default false.",
    ),
  confirmedBy: z
    .strictObject({
      signal: z.enum(["requestedA", "limitA"]).describe("The signal that repeats it. Required."),
      tolerance: z.number().min(0).prefault(0).describe("In A. Default 0."),
      within: recurring.prefault("10s").describe("How soon. Default 10s."),
      release: z
        .string()
        .optional()
        .describe("The name in reports whose topic shows a release by its value. Left out: by signal."),
    })
    .optional()
    .describe(
      "How the charger shows that it took a setpoint; where it never told this signal, limitA shows it too. Left out: it does not.",
    ),
  results: z
    .array(
      z.strictObject({
        topic: z.string().min(1).describe("The topic; + stands for any one level. Required."),
        ok: z
          .array(z.string())
          .min(1)
          .describe("Payloads that mean yes; all others are a refusal. Required."),
      }),
    )
    .prefault([])
    .describe("Topics where it answers a command with yes or no. Default []."),
  setup: sentences.prefault([]).describe("What has to be set on the charger before, for people. Default []."),
  ifWeDie: z.string().min(1).describe("What happens when the gateway dies, for people. Required."),
  uncertain: sentences.prefault([]).describe("What no source confirms yet, for people. Default []."),
});

export type Profile = z.output<typeof fields>;
