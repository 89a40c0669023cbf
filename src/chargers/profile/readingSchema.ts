import * as z from "zod";

const PATH = "a path such as $, $.power_W.total, $[11] or $[#].name";

/** A JSON path of members and indexes only; `[#]` is the place that `index` found. */
const path = z.string({ error: PATH }).regex(/^\$(\.[A-Za-z_][\w-]*|\[(\d+|#)\])*$/, { error: PATH });

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** One value out of the payloads of one topic. The id names it in the JSON Schema, which would be huge otherwise. */
const reading = z
  .strictObject({
    topic: z.string().min(1).describe("The topic; {name} puts in a parameter. Required."),
    path: path
      .optional()
      .describe("Where it stands in the JSON payload. Left out: the payload is the value, as plain text."),
    index: z
      .strictObject({
        topic: z.string().min(1).describe("The topic that tells the place. Required."),
        path: path.prefault("$").describe("Where in its JSON payload. Default $."),
        find: scalar.optional().describe("The place is where this stands in a list of ids."),
        add: z.int().prefault(0).describe("The place is the number there plus this. Default 0."),
      })
      .optional()
      .describe("The place that [#] in path stands for, told by another topic. Left out: path has no [#]."),
    map: z
      .record(z.string(), scalar)
      .optional()
      .describe(
        "What each spelling on the wire means; null means unknown, an ending * any rest. Of what is not listed numbers stay numbers, the rest tells nothing.",
      ),
    otherwise: scalar
      .optional()
      .describe(
        "What spellings mean that map does not list, but for null, nil, none, nan and -, which mean unknown. Left out: see map.",
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
      .describe("For vehicleId: what kind of identity it is; rfid or mac is told by its looks."),
    nullIsNobody: z
      .boolean()
      .prefault(false)
      .describe(
        "For vehicleId: null here is nobody, whatever the ways after it still say. Default false: they are asked.",
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

/** One way to learn a signal, or several in order of preference: firmware generations tell it differently. */
const signal = z.union([composed, z.array(composed).min(1)]).meta({ id: "signal" });

export type Reading = z.output<typeof reading>;
export type Composed = z.output<typeof composed>;

/** What a charger tells, by the words of DESIGN 6.5. */
export const telemetry = z.strictObject({
  powerW: signal.optional().describe("Power drawn, W."),
  energyWh: signal.optional().describe("Meter reading, Wh."),
  sessionEnergyWh: signal.optional().describe("Energy of this session, Wh."),
  currentA: signal.optional().describe("Current drawn where one number is all there is, A."),
  currentsA: signal.optional().describe("Currents drawn by phase, A."),
  voltagesV: signal.optional().describe("Voltages by phase, V."),
  limitA: signal.optional().describe("The limit in force by the charger's own word, A per phase."),
  requestedA: signal
    .optional()
    .describe("The limit that was asked for, as the charger repeats it, A per phase."),
  plugged: signal.optional().describe("Whether a vehicle is plugged in."),
  charging: signal.optional().describe("Whether it charges."),
  paused: signal.optional().describe("Whether it was told not to charge."),
  error: signal.optional().describe("Whether the charger has a fault."),
  state: signal.optional().describe("Its state in the words of the native profile."),
  vehicleId: signal.optional().describe("What names the vehicle or the session's user."),
  socPct: signal.optional().describe("State of charge of the vehicle, %."),
  phases: signal.optional().describe("Phases in use."),
  online: signal.optional().describe("Whether the charger is connected, from its last will."),
});

export type SignalName = keyof z.output<typeof telemetry>;
