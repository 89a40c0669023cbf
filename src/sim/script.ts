import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { z } from "zod";

import { millis, after, between, type Instant } from "../domain/units.ts";
import { wireEvent, type EventPlan, type WireEvent } from "./events.ts";
import type { Operation, SimulatedPartner } from "./partner.ts";
import { messageOf } from "../platform/text.ts";

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

/** Members that a change can alter. `startIn` counts from its own step. */
const eventMembers = {
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
  .strictObject({ ...eventMembers, key: z.string().min(1), duration })
  .refine((event) => (event.amperes === undefined) !== (event.kilowatts === undefined), {
    error: "an event asks for either amperes or kilowatts",
  });
const changedEvent = z
  .strictObject({ ...eventMembers, key: z.string().min(1) })
  .refine((event) => event.amperes === undefined || event.kilowatts === undefined, {
    error: "an event asks for either amperes or kilowatts",
  });
const knownEvent = z.strictObject({ key: z.string().min(1) });

const step = z.discriminatedUnion("do", [
  /** A new event. `poll`: no webhook is sent, the gateway finds the event in the list. */
  z.strictObject({ at: duration, do: z.literal("put"), event: newEvent, via: z.enum(["webhook", "poll"]) }),
  /** Omitted members stay unchanged. */
  z.strictObject({
    at: duration,
    do: z.literal("change"),
    event: changedEvent,
    via: z.enum(["webhook", "poll"]),
  }),
  /** Sends a known event again: a duplicate. */
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
    /** Start of each event id, e.g. EV-1001. Numbers continue over all rounds. */
    idPrefix: z.string().min(1).default("EV-"),
    firstId: z.int().default(1001),
    /** Length of one round. Absent: one round only. */
    repeatEvery: duration.optional(),
    steps: z.array(step).min(1),
  })
  .superRefine(({ steps, repeatEvery }, issues) => {
    const known = new Set<string>();
    let last = 0;
    for (const [index, { at, do: verb, event }] of steps.entries()) {
      const addIssue = (member: string, message: string) =>
        issues.addIssue({ code: "custom", path: ["steps", index, ...member.split(".")], message });
      if (at < last) addIssue("at", "steps are written in the order in which they happen");
      last = at;
      if (verb === "put") {
        if (known.has(event.key)) addIssue("event.key", `${event.key} was put before; use change`);
        known.add(event.key);
      } else if (!known.has(event.key)) addIssue("event.key", `no earlier step puts ${event.key}`);
    }
    if (repeatEvery !== undefined && repeatEvery <= last)
      issues.addIssue({ code: "custom", path: ["repeatEvery"], message: "shorter than the steps take" });
  });

/** Actions of a partner, each at a time relative to the start of a round. */
export type Script = z.output<typeof script>;
type ScriptStep = z.output<typeof step>;
/** The event of a `put` or `change` step. */
type ScriptEvent = z.output<typeof newEvent> | z.output<typeof changedEvent>;

/** A script, or all its mistakes: one per line, with the path. */
export type ScriptRead =
  | { readonly ok: true; readonly script: Script }
  | { readonly ok: false; readonly reason: string };

/** Parses YAML text. */
export function readScript(text: string): ScriptRead {
  let tree: unknown;
  try {
    tree = parse(text);
  } catch (error) {
    return { ok: false, reason: messageOf(error) };
  }
  const read = script.safeParse(tree);
  if (read.success) return { ok: true, script: read.data };
  const lines = read.error.issues.map((issue) => `${issue.path.join(".") || "script"}: ${issue.message}`);
  return { ok: false, reason: lines.join("\n") };
}

/** Reads a script file. Does not throw for an unreadable file. */
export async function loadScript(path: string): Promise<ScriptRead> {
  try {
    return readScript(await readFile(path, "utf8"));
  } catch (error) {
    return { ok: false, reason: messageOf(error) };
  }
}

/** Clock, stop signal and output of a running script. `log` receives one sentence per step. */
export interface ScriptStage {
  readonly now: () => Instant;
  readonly signal: AbortSignal;
  readonly log: (sentence: string) => void;
}

const describe = (plan: EventPlan): string => {
  const level = "amperes" in plan.ask ? `${plan.ask.amperes} A` : `${plan.ask.kilowatts} kW`;
  return `${plan.id} "${plan.name ?? plan.id}", ${level} for ${plan.vehicles?.join(", ") ?? "all vehicles"}, priority ${plan.priority ?? 5}`;
};

const askOf = (event: ScriptEvent): EventPlan["ask"] | null => {
  if (event.amperes !== undefined) return { amperes: event.amperes };
  return event.kilowatts === undefined ? null : { kilowatts: event.kilowatts };
};

/** The previous plan with the members of a step. */
function planned(id: string, event: ScriptEvent, before: EventPlan | undefined, now: Instant): EventPlan {
  const start = event.startIn === undefined ? (before?.start ?? now) : after(now, event.startIn);
  return {
    ...before,
    id,
    start,
    durationMs: event.duration ?? before?.durationMs ?? 0,
    ask: askOf(event) ?? before?.ask ?? { amperes: 0 },
    ...(event.name !== undefined && { name: event.name }),
    ...(event.randomizeStart !== undefined && { randomizeStartMs: event.randomizeStart }),
    ...(event.priority !== undefined && { priority: event.priority }),
    ...(event.vehicles !== undefined && { vehicles: event.vehicles }),
    ...(event.programId !== undefined && { programId: event.programId }),
    ...(event.reports !== undefined && { reportDescriptors: event.reports }),
  };
}

/** Runs a script on a partner until it ends or `signal` aborts, then waits for deliveries in progress. */
export async function runScript(
  script: Script,
  partner: SimulatedPartner,
  stage: ScriptStage,
): Promise<void> {
  const deliveries = new Set<Promise<void>>();
  let number = script.firstId;

  const send = (sent: string | WireEvent, operation: Operation, id: string): void => {
    // Not awaited: a daemon that does not answer must not delay the next step.
    const delivery = partner.deliver(sent, { operation }).then(({ status, attempts }) => {
      deliveries.delete(delivery);
      if (stage.signal.aborted) return;
      const answer = status === null ? "no answer" : `HTTP ${status}`;
      if (status === null || status >= 300)
        stage.log(`${id} was not accepted: ${answer} after ${attempts} attempts`);
    });
    deliveries.add(delivery);
  };

  const play = (step: ScriptStep, round: Map<string, EventPlan>): void => {
    const now = stage.now();
    const { key } = step.event;
    const before = round.get(key);
    const id = before?.id ?? `${script.idPrefix}${number++}`;
    switch (step.do) {
      case "put":
      case "change": {
        const plan = planned(id, step.event, before, now);
        round.set(key, plan);
        const stored = partner.put(wireEvent(plan, now));
        const verb = step.do === "put" ? "new" : "changed";
        const way = step.via === "webhook" ? "sent by webhook" : "available by polling only";
        stage.log(`${verb}: ${describe(plan)}; ${way}`);
        if (step.via === "webhook") send(stored, step.do === "put" ? "CREATE" : "UPDATE", id);
        return;
      }
      case "deliver":
        stage.log(`${id} is sent again`);
        return send(id, "UPDATE", id);
      case "withdraw":
        partner.withdraw(id);
        stage.log(
          `${id} is withdrawn; ${step.via === "webhook" ? "sent by webhook" : "noticed by polling only"}`,
        );
        if (step.via === "webhook") send(id, "DELETE", id);
        return;
    }
  };

  const until = async (due: Instant): Promise<void> => {
    await sleep(Math.max(0, between(stage.now(), due)), undefined, { signal: stage.signal }).catch(
      () => undefined,
    );
  };

  let previous: ReadonlyMap<string, EventPlan> = new Map();
  for (;;) {
    // The actual moment, not the planned one: rounds missed during a suspend are skipped.
    const begun = stage.now();
    const round = new Map<string, EventPlan>();
    for (const step of script.steps) {
      await until(after(begun, step.at));
      if (stage.signal.aborted) break;
      play(step, round);
    }
    if (script.repeatEvery === undefined || stage.signal.aborted) break;
    await until(after(begun, script.repeatEvery));
    // Keep each round for one more, then forget it: a demo has no end.
    for (const { id } of previous.values()) partner.forget(id);
    previous = round;
  }
  await Promise.all(deliveries);
}
