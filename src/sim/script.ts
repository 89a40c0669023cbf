import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
import { millis } from "../core/units.ts";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

const duration = z
  .string({ error: "a duration such as 500ms, 4s, 2m, 1h" })
  .regex(/^\d+(\.\d+)?(ms|s|m|h)$/, { error: "a duration such as 500ms, 4s, 2m, 1h" })
  .transform((text) => {
    const [, count = "0", unit = "s"] = /^([\d.]+)(\w+)$/.exec(text) ?? [];
    return millis(Math.round(Number(count) * (UNIT_MS[unit] ?? 1000)));
  });

const reportDescriptor = z.strictObject({
  payloadType: z.string().min(1),
  readingType: z.string().default("DIRECT_READ"),
  aggregate: z.boolean().default(false),
  frequency: z.int().default(0),
  historical: z.boolean().default(true),
  numIntervals: z.int().default(0),
  repeat: z.int().default(0),
  startInterval: z.int().default(0),
});

/** Everything that a change may alter; `startIn` counts from the step that says it. */
const asks = {
  name: z.string().min(1).optional(),
  startIn: duration.optional(),
  duration: duration.optional(),
  randomizeStart: duration.optional(),
  priority: z.int().optional(),
  amperes: z.number().optional(),
  kilowatts: z.number().optional(),
  vehicles: z.array(z.string().min(1)).optional(),
  programId: z.string().min(1).optional(),
  reports: z.array(reportDescriptor).optional(),
};

const newEvent = z
  .strictObject({ ...asks, key: z.string().min(1), duration })
  .refine((event) => (event.amperes === undefined) !== (event.kilowatts === undefined), {
    error: "an event asks for either amperes or kilowatts",
  });
const changedEvent = z
  .strictObject({ ...asks, key: z.string().min(1) })
  .refine((event) => event.amperes === undefined || event.kilowatts === undefined, {
    error: "an event asks for either amperes or kilowatts",
  });
const knownEvent = z.strictObject({ key: z.string().min(1) });

const step = z.discriminatedUnion("do", [
  /** A new event. `poll`: nobody is told, it is found in the list. */
  z.strictObject({ at: duration, do: z.literal("put"), event: newEvent, via: z.enum(["webhook", "poll"]) }),
  /** Members that are not named stay as they are. */
  z.strictObject({
    at: duration,
    do: z.literal("change"),
    event: changedEvent,
    via: z.enum(["webhook", "poll"]),
  }),
  /** Sends what is already known once more: a duplicate. */
  z.strictObject({ at: duration, do: z.literal("deliver"), event: knownEvent }),
  z.strictObject({
    at: duration,
    do: z.literal("withdraw"),
    event: knownEvent,
    via: z.enum(["webhook", "poll"]),
  }),
]);

const script = z
  .strictObject({
    /** Events get ids such as EV-1001, counting on over all rounds. */
    idPrefix: z.string().min(1).default("EV-"),
    firstId: z.int().default(1001),
    /** Length of one round; absent: one round only. */
    repeatEvery: duration.optional(),
    steps: z.array(step).min(1),
  })
  .superRefine(({ steps, repeatEvery }, issues) => {
    const known = new Set<string>();
    let last = 0;
    for (const [index, { at, do: verb, event }] of steps.entries()) {
      const say = (member: string, message: string) =>
        issues.addIssue({ code: "custom", path: ["steps", index, ...member.split(".")], message });
      if (at < last) say("at", "steps are written in the order in which they happen");
      last = at;
      if (verb === "put") {
        if (known.has(event.key)) say("event.key", `${event.key} was put before; use change`);
        known.add(event.key);
      } else if (!known.has(event.key)) say("event.key", `no earlier step puts ${event.key}`);
    }
    if (repeatEvery !== undefined && repeatEvery <= last)
      issues.addIssue({ code: "custom", path: ["repeatEvery"], message: "shorter than the steps take" });
  });

/** What a partner does and when: steps relative to the start of a round. */
export type Script = z.output<typeof script>;
export type ScriptStep = z.output<typeof step>;
/** The event of a `put` or `change` step. */
export type ScriptEvent = z.output<typeof newEvent> | z.output<typeof changedEvent>;

/** A script, or every mistake in it with its path, one a line. */
export type ScriptRead =
  | { readonly ok: true; readonly script: Script }
  | { readonly ok: false; readonly reason: string };

/** Reads a script from YAML text. */
export function readScript(text: string): ScriptRead {
  let tree: unknown;
  try {
    tree = parse(text);
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
  const read = script.safeParse(tree);
  if (read.success) return { ok: true, script: read.data };
  const lines = read.error.issues.map((issue) => `${issue.path.join(".") || "script"}: ${issue.message}`);
  return { ok: false, reason: lines.join("\n") };
}

/** Reads a script file; a file that cannot be read is a value too. */
export async function loadScript(path: string): Promise<ScriptRead> {
  try {
    return readScript(await readFile(path, "utf8"));
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
