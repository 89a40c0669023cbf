import * as z from "zod";
import { parseDuration } from "../../core/duration.ts";

const SPAN = "a duration: a whole number with its unit, e.g. 500ms, 30s or 10m";

/** A duration as the configuration spells it; milliseconds inside. */
export const span = z.string({ error: SPAN }).transform((text, context) => {
  const ms = parseDuration(text);
  if (ms !== null) return ms;
  context.addIssue({ code: "custom", message: SPAN });
  return z.NEVER;
});

const RECURRING = "a duration from 1s to 1d, e.g. 30s or 10m";

/** How often, or how soon: much less is a flood, and a timer for much longer fires at once. */
export const recurring = span.refine((ms) => ms >= 1000 && ms <= 86_400_000, { error: RECURRING });

const PLACEHOLDERS = "{name} puts in a parameter or one of the values of the action";

const topic = z.string().min(1).describe(`Topic; ${PLACEHOLDERS}. Required.`);
const text = z.string().optional().describe(`Payload as text; ${PLACEHOLDERS}. Either text or json.`);
const json = z
  .json()
  .optional()
  .describe(`Payload as JSON; ${PLACEHOLDERS}, and a value that is one placeholder keeps its type.`);

const onePayload = ({ text: asText, json: asJson }: { text?: unknown; json?: unknown }): boolean =>
  (asText === undefined) !== (asJson === undefined);
const ONE_PAYLOAD = { error: "either text or json, one of them" };

/** One message to a charger. There is no retain: a charger that reboots must not find an old setpoint waiting. */
const publishTemplate = z
  .strictObject({
    topic,
    text,
    json,
    needs: z
      .string()
      .optional()
      .describe(
        "An optional parameter: where it is left out, this is not sent. An action of which nothing is left cannot be done. Left out: sent always.",
      ),
    unless: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        "Names of reports with a value each: where one has it, this is not sent. Left out: sent always.",
      ),
  })
  .refine(onePayload, ONE_PAYLOAD);

/** A message that is repeated as long as the gateway lives. */
export const keepalive = z
  .strictObject({
    every: recurring.describe("How often. Required."),
    topic,
    text,
    json,
    first: z
      .string()
      .optional()
      .describe("Payload as text of the first one after a connection. Left out: as the others."),
    asksOnly: z
      .boolean()
      .prefault(false)
      .describe(
        "Whether it only asks for telemetry, and keeps nobody obeying: such are sent in mode observe too. Default false.",
      ),
  })
  .refine(onePayload, ONE_PAYLOAD);

export type PublishTemplate = z.output<typeof publishTemplate>;

const publishes = z.array(publishTemplate);

/** What is published for each action, in order. An action that is left out needs nothing, or cannot be done. */
export const actions = z.strictObject({
  acquire: publishes
    .prefault([])
    .describe("Taking control, once before the first setpoint. Default []: nothing has to be said."),
  setCurrent: publishes
    .min(1)
    .describe("A limit; {current} is it in A per phase, times limits.current.scale. Required."),
  setPower: publishes
    .optional()
    .describe(
      "A limit in W for chargers that take watts: {power} is it with its sign, {import} and {export} its two sides. Left out: W become A.",
    ),
  pause: publishes.prefault([]).describe("No charging. Default []: see cannot."),
  resume: publishes
    .prefault([])
    .describe("Charging again after a pause, at {current}. Default []: nothing has to be said."),
  release: publishes
    .prefault([])
    .describe("Control given back; {maxCurrent} is the charger's own maximum. Default []: see cannot."),
  setPhases: publishes
    .optional()
    .describe("How many phases; {phases} is what the map phases says. Left out: it cannot switch phases."),
});

export type ActionName = keyof z.output<typeof actions>;
