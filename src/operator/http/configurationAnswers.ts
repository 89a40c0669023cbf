import * as z from "zod";

import { count, moment, named } from "./holdAnswers.ts";

const print = z.string().describe("First 12 digits of the SHA-256 of its text.");

const changeKind = z.enum(["apply", "rollback"]);

export const configuration = named("Configuration", {
  file: z.string().nullable().describe("null: the site has no file of its own, so the rest says same."),
  fingerprint: print.nullable().describe("Fingerprint of the file. null: it cannot be read."),
  state: z
    .enum(["same", "differs", "broken", "unreadable"])
    .describe("differs: it can be applied. broken: it has mistakes, so it cannot."),
  paths: z.array(z.string()).nullable().describe("Differing paths, at most 20. null: not compared."),
  changes: z
    .array(z.strictObject({ path: z.string(), change: z.enum(["added", "removed", "changed"]) }))
    .nullable()
    .describe("The same, with what the file does to each."),
  mistakes: z
    .array(z.strictObject({ path: z.string(), line: count.nullable(), expected: z.string() }))
    .describe("At most 20."),
  needsRestart: z
    .array(z.string())
    .describe("Differing paths that cannot be applied: they need a restart of the process."),
  running: z
    .strictObject({
      fingerprint: print,
      since: moment,
      by: z.string().nullable().describe("null: no person applied it, it was the file at a start."),
      reason: z.string().nullable(),
      because: z
        .enum(["file", "rollback", "fallback"])
        .describe(
          "rollback, fallback: a restart keeps it until the file changes or is applied. fallback: the file did not start.",
        ),
      sentence: z.string().describe("Configuration that runs, and the one that a restart takes."),
    })
    .nullable(),
  kept: z
    .array(
      z.strictObject({
        fingerprint: print,
        at: moment.describe("Moment at which it was put in force."),
        by: z.string().nullable(),
        reason: z.string().nullable(),
        paths: z
          .array(z.string())
          .nullable()
          .describe("Paths that differ from what runs. null: not compared."),
      }),
    )
    .describe("The last ten that ran, the newest first."),
  interrupts: z
    .array(
      z.strictObject({
        kind: z.enum(["event", "trial", "leaving"]),
        subject: z.string().describe("Event or charger."),
        sentence: z.string(),
      }),
    )
    .describe("Reasons against a change now, at most 20. Only force overrides them."),
  onStop: z
    .enum(["keep", "release", "pause"])
    .describe("Behaviour of limited chargers while setpointd starts again: control.onStop."),
  limited: count.describe("Chargers that are limited now."),
  restartMs: z.number().nullable().describe("Ms without control, as measured last. null: not yet."),
  last: z
    .strictObject({
      kind: changeKind,
      fingerprint: print,
      from: print,
      file: print.describe("Fingerprint of the file at that time."),
      result: z.enum(["underWay", "running", "fellBack"]).describe("fellBack: from runs again."),
      failure: z.string().nullable(),
      tookMs: z.number().nullable(),
      at: moment,
      by: z.string(),
      reason: z.string(),
    })
    .nullable()
    .describe("The last change by a person."),
});

export const changedConfiguration = named("ChangedConfiguration", {
  kind: changeKind,
  fingerprint: print.describe("Configuration that setpointd starts with."),
  from: print.describe("Configuration that runs until then, and again if the new one does not start."),
  restartMs: z.number().nullable().describe("Ms without control, as measured last. null: not yet."),
  sentence: z.string(),
});
