import * as z from "zod";

import { parseDuration } from "../../domain/units.ts";

const PATTERN = "a regular expression for the whole value, e.g. [0-9]{6,8}";

const pattern = z.string({ error: PATTERN }).refine(
  (source) => {
    try {
      return new RegExp(source, "u") instanceof RegExp;
    } catch {
      return false;
    }
  },
  { error: PATTERN },
);

/** A parameter that is part of another one. */
const found = z.strictObject({
  in: z.string().min(1).describe("The parameter that contains it. Required."),
  match: pattern.describe("A regular expression. Its first group is the value. Required."),
});

/** A parameter of one charger. Required, unless it has a default or is optional. */
export const parameter = z.strictObject({
  about: z.string().min(1).describe("What it is and where it is found, for people. Required."),
  default: z
    .union([z.string(), z.number()])
    .optional()
    .describe("Its value if the charger's params lack it. Left out: required."),
  optional: z
    .boolean()
    .prefault(false)
    .describe(
      "Whether it may be left out. Topics with it are then not read, and a JSON value of it alone is null. Default false.",
    ),
  found: found.optional().describe("Its value where the params leave it out. Left out: see default."),
  type: z
    .enum(["text", "integer"])
    .prefault("text")
    .describe("An integer stays a number where it is a whole JSON value. Default text."),
  values: z.array(z.string()).min(1).optional().describe("The only values it may have. Left out: any."),
  pattern: pattern
    .optional()
    .describe("What the whole value has to match, as a regular expression. Left out: any."),
  form: z
    .string()
    .min(1)
    .optional()
    .describe("The meaning of pattern for people, e.g. 6 or 8 digits. Left out: the pattern is shown."),
  levels: z
    .enum(["one", "many"])
    .prefault("one")
    .describe(
      "Whether it may hold several topic levels with / between them, as prefixes do. Default one. Wildcards and control characters are refused always.",
    ),
});

export type Parameter = z.output<typeof parameter>;

/** A name for topics and payloads, selected by the value of a parameter. */
export const derivedName = z.strictObject({
  of: z.string().min(1).describe("The parameter whose value chooses. Required."),
  is: z
    .record(z.string(), z.union([z.string(), z.number()]))
    .describe("For each of its values, what to put in. Required."),
});

const SPAN = "a duration: a whole number with its unit, e.g. 500ms, 30s or 10m";

/** A duration as in the configuration. Output: ms. */
export const span = z.string({ error: SPAN }).transform((text, context) => {
  const ms = parseDuration(text);
  if (ms !== null) return ms;
  context.addIssue({ code: "custom", message: SPAN });
  return z.NEVER;
});

const RECURRING = "a duration from 1s to 1d, e.g. 30s or 10m";

/** An interval. A shorter one floods the charger, and a timer for a much longer one fires at once. */
export const recurring = span.refine((ms) => ms >= 1000 && ms <= 86_400_000, { error: RECURRING });

const PLACEHOLDERS = "{name} inserts a parameter or a value of the action";

const topic = z.string().min(1).describe(`Topic; ${PLACEHOLDERS}. Required.`);
const text = z.string().optional().describe(`Payload as text; ${PLACEHOLDERS}. Either text or json.`);
const json = z
  .json()
  .optional()
  .describe(`Payload as JSON; ${PLACEHOLDERS}, and a value that is one placeholder keeps its type.`);

const onePayload = ({ text: asText, json: asJson }: { text?: unknown; json?: unknown }): boolean =>
  (asText === undefined) !== (asJson === undefined);
const ONE_PAYLOAD = { error: "either text or json, one of them" };

/** A message to a charger. There is no retain: a charger that reboots must not receive an old setpoint. */
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

/** A message that is repeated while the gateway runs. */
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
        "Whether it only requests telemetry and does not keep the charger obeying. It is then sent in mode observe too. Default false.",
      ),
  })
  .refine(onePayload, ONE_PAYLOAD);

export type PublishTemplate = z.output<typeof publishTemplate>;

const publishes = z.array(publishTemplate);

/** Publishes of each action, in order. An absent action needs no message, or cannot be done. */
export const actions = z.strictObject({
  acquire: publishes
    .prefault([])
    .describe("Taking control, once before the first setpoint. Default []: no message is needed."),
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
    .describe("Charging again after a pause, at {current}. Default []: no message is needed."),
  release: publishes
    .prefault([])
    .describe("Control given back; {maxCurrent} is the charger's own maximum. Default []: see cannot."),
  setPhases: publishes
    .optional()
    .describe("How many phases; {phases} is what the map phases says. Left out: it cannot switch phases."),
  reboot: publishes
    .prefault([])
    .describe("A reboot of the charger, when a person asks for it. Default []: it cannot be rebooted."),
});

export type ActionName = keyof z.output<typeof actions>;

const PATH = "a path such as $, $.power_W.total, $[11] or $[#].name";

/** A JSON path of members and indexes. `[#]` is the place that `index` found. */
export const path = z.string({ error: PATH }).regex(/^\$(\.[A-Za-z_][\w-]*|\[(\d+|#)\])*$/, { error: PATH });

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** A value from the payloads of a topic. The id keeps the JSON Schema small. */
const reading = z
  .strictObject({
    topic: z.string().min(1).describe("The topic; {name} inserts a parameter. Required."),
    path: path
      .optional()
      .describe("Path of the value in the JSON payload. Left out: the payload is the value, as plain text."),
    index: z
      .strictObject({
        topic: z.string().min(1).describe("The topic that holds the place. Required."),
        path: path.prefault("$").describe("Where in its JSON payload. Default $."),
        find: scalar.optional().describe("The place is where this stands in a list of ids."),
        add: z.int().prefault(0).describe("The place is the number there plus this. Default 0."),
      })
      .optional()
      .describe("The place for [#] in path, from another topic. Left out: path has no [#]."),
    map: z
      .record(z.string(), scalar)
      .optional()
      .describe(
        "Meaning of each value on the wire. null: unknown; a final * stands for any rest. Numbers that are not listed stay numbers; other values are ignored.",
      ),
    otherwise: scalar
      .optional()
      .describe(
        "Meaning of values that map does not list, except null, nil, none, nan and -, which mean unknown. Left out: see map.",
      ),
    scale: z
      .union([z.number(), z.string()])
      .prefault(1)
      .describe("What numbers are multiplied with, e.g. 0.001 for mA; or {name}. Default 1."),
    rescale: z
      .strictObject({
        from: z.number().describe("The first number in the other unit. Required."),
        by: z.number().describe("What such numbers are multiplied with. Required."),
      })
      .optional()
      .describe("For charger generations that send large numbers in another unit. Left out: there are none."),
    kind: z
      .enum(["rfid", "mac", "evccid", "vin", "name", "rfid or mac"])
      .optional()
      .describe("For vehicleId: the kind of identity; rfid or mac is decided by its form."),
    nullIsNobody: z
      .boolean()
      .prefault(false)
      .describe(
        "For vehicleId: null means no vehicle, and later readings are ignored. Default false: they are used.",
      ),
  })
  .meta({ id: "reading" });

const composed = z.union([
  reading,
  z.strictObject({
    each: z.array(reading).min(1).max(3).describe("One reading for each phase, L1 first. Required."),
  }),
  z.strictObject({
    minus: z.array(reading).length(2).describe("The first reading less the second. Required."),
  }),
]);

/** A source of a signal, or several in order of preference: firmware generations differ. */
const signal = z.union([composed, z.array(composed).min(1)]).meta({ id: "signal" });

export type Reading = z.output<typeof reading>;
export type Composed = z.output<typeof composed>;

/** Signals of a charger. */
export const telemetry = z.strictObject({
  powerW: signal.optional().describe("Power drawn, W."),
  energyWh: signal.optional().describe("Meter reading, Wh."),
  sessionEnergyWh: signal.optional().describe("Energy of this session, Wh."),
  currentA: signal.optional().describe("Current drawn where one number is all there is, A."),
  currentsA: signal.optional().describe("Currents drawn by phase, A."),
  voltagesV: signal.optional().describe("Voltages by phase, V."),
  limitA: signal.optional().describe("The active limit as the charger reports it, A per phase."),
  requestedA: signal.optional().describe("The commanded limit as the charger repeats it, A per phase."),
  plugged: signal.optional().describe("Whether a vehicle is plugged in."),
  charging: signal.optional().describe("Whether it charges."),
  paused: signal.optional().describe("Whether it is paused by a command."),
  error: signal.optional().describe("Whether the charger has a fault."),
  state: signal.optional().describe("Its state, as in the native profile."),
  vehicleId: signal.optional().describe("Identity of the vehicle, or of the user of the session."),
  socPct: signal.optional().describe("State of charge of the vehicle, %."),
  phases: signal
    .optional()
    .describe(
      "Phases in use, or those it was switched to. A switch is sent once more where they do not show it.",
    ),
  firmware: signal.optional().describe("Version of its firmware."),
  bootCount: signal.optional().describe("Its own count of starts: another number shows a restart."),
  online: signal.optional().describe("Whether the charger is connected, from its last will."),
});

export type SignalName = keyof z.output<typeof telemetry>;
