import { IANAZone } from "luxon";
import * as z from "zod";

import { FINEST_STEP, type Charger } from "../../domain/charger.ts";
import { amperes, chargerId, millis, vehicleId } from "../../domain/units.ts";
import type { Identity, Vehicle } from "../../domain/vehicle.ts";
import { nearest } from "../explain.ts";
import { duration, kilowatts, quantity, reads, topicName } from "../fields/quantities.ts";
import { atEnd, deadband, minInterval, type controlSection } from "./control.ts";

const timezone = reads(
  (text) => (IANAZone.isValidZone(text) ? text : null),
  (text) => {
    const meant = nearest(text, Intl.supportedValuesOf("timeZone"));
    return `a time zone of the IANA list, e.g. ${meant ?? "Europe/Oslo"} or UTC`;
  },
);

export const siteSection = z.strictObject({
  id: topicName.describe(
    "Name of the site: part of every topic and of the MQTT client id. Required; keep it for good.",
  ),
  timezone: timezone
    .prefault("UTC")
    .describe("Time zone of the site's days and of what people read. Default UTC."),
});

/** The partner's id of a vehicle: any text on one line, in one Unicode form. */
const vehicleName = reads((text) => {
  const id = text.normalize("NFC");
  return id.isWellFormed() && /^\P{Cc}{1,256}$/u.test(id) ? id : null;
}, "a text of 1 to 256 characters on one line; one that looks like a number needs quotes");

const current = (most: string) => quantity(1, 1000, "amperes", 32).describe(most);

const phaseSwitching = z.strictObject({
  every: duration("1m", "24h")
    .prefault("15m")
    .describe(
      "Least time between two switches, 1m to 24h; the make's own is kept too. Meanwhile, and where an event ends sooner, it does what the phases that it has can do, and never more than is asked. A release switches back: one that comes sooner than planned waits, but not one by hand. Default 15m.",
    ),
});

export const chargerEntry = z.strictObject({
  id: topicName.describe("Name of one outlet: part of its topics. Required, unique; keep it for good."),
  profile: z
    .string()
    .min(1)
    .prefault("native")
    .describe(
      "How this make speaks MQTT: a name of setpointd profile list, or of a file in profiles beside this one. Default native.",
    ),
  params: z
    .record(
      z.string(),
      z.union([z.string(), z.number(), z.boolean()], { error: "a text, a number, or true or false" }),
    )
    .prefault({})
    .describe(
      "What the profile needs to know of this charger, e.g. its serial; setpointd profile show NAME tells. Default {}; native needs nothing.",
    ),
  broker: z
    .string()
    .min(1)
    .optional()
    .describe("Name of an entry of brokers that this charger is reached over. Left out: mqtt."),
  current: z
    .strictObject({
      min: quantity(0, 1000, "amperes", 6)
        .prefault(6)
        .describe(
          "Least current that it can charge with, in A per phase. Default 6, which is what IEC 61851 allows.",
        ),
      max: current(
        "Largest current, in A per phase: of the charger, its cable and its fuse. Required within current.",
      ),
    })
    .optional()
    .describe("Limits in A per phase, for AC. A charger needs current, power, or both."),
  power: z
    .strictObject({
      min: kilowatts(0).prefault(0).describe("Least power that it can charge with, in kW. Default 0."),
      max: kilowatts(0.1).describe("Largest power, in kW. Required within power."),
    })
    .optional()
    .describe("Limits in kW, where amperes make no sense (DC)."),
  discharge: z
    .strictObject({
      max: kilowatts(0.1).describe(
        "Largest power fed back, in kW, as a positive number. Required within discharge.",
      ),
    })
    .optional()
    .describe("For chargers that can feed back. Left out: a negative level means pause."),
  phases: z
    .int({ error: "1, 2 or 3" })
    .min(1)
    .max(3)
    .prefault(3)
    .describe("Phases that the outlet is wired with, 1 to 3. Default 3."),
  voltage: quantity(100, 500, "volts", 230)
    .prefault(230)
    .describe("Voltage between phase and neutral, in V, 100 to 500. Default 230."),
  belowMinimum: z
    .enum(["pause", "hold"])
    .prefault("pause")
    .describe("When less than the minimum is asked: pause, or hold the minimum. Default pause."),
  atEnd: atEnd.optional().describe("As control.atEnd, for this charger. Left out: control's."),
  minInterval: minInterval
    .optional()
    .describe("As control.minInterval, for this charger. Left out: control's."),
  minOff: duration("0s", "1h")
    .prefault("0s")
    .describe(
      "Least time that a pause lasts, to protect contactors and vehicles; a pause itself is never delayed. Default 0s.",
    ),
  minOn: duration("0s", "1h")
    .prefault("0s")
    .describe(
      "Least time that it charges before a pause of our own choice, which only phaseSwitching knows: to go back to three phases for more power. A pause that an event asks for, or leaves too little for anything else, never waits. Default 0s.",
    ),
  phaseSwitching: phaseSwitching
    .optional()
    .describe(
      "Lets it be switched to one phase, paused meanwhile, where an event leaves too little for three (2.3 kW is 10 A on one, and less than 6 A on three), and back. A current is asked for each phase, so one phase rarely helps there. Left out: its phases are left alone.",
    ),
  deadband: deadband.optional().describe("As control.deadband, for this charger. Left out: control's."),
  writesPerHour: z
    .int({ error: "a whole number from 1, e.g. 12" })
    .min(1)
    .max(3600)
    .optional()
    .describe(
      "Most commands in an hour, 1 to 3600; beyond it increases wait, a release or the end of a pause for 5 minutes at most, reductions never. Left out: what the make bears, 12 where each write wears it.",
    ),
});

const ONE_KIND =
  'one kind and its value in quotes, e.g. { mac: "02:AA:BB:00:00:01" } or { rfid: "04A2B3C4" }';

const identity = z
  .record(
    z.string({ error: ONE_KIND }).regex(/^[A-Za-z][A-Za-z0-9_-]{0,31}$/),
    z.string({ error: ONE_KIND }).regex(/^\P{Cc}{1,256}$/u),
    { error: ONE_KIND },
  )
  .transform((pair, context): Identity => {
    const [[kind, value] = ["", ""], ...more] = Object.entries(pair);
    if (kind === "" || more.length > 0) context.addIssue({ code: "custom", message: ONE_KIND });
    return { kind: kind.toLowerCase(), value: value.normalize("NFC").toLowerCase() };
  });

export const vehicleEntry = z.strictObject({
  id: vehicleName.describe(
    "What the partner calls the vehicle in the targets of its events. Required, unique.",
  ),
  name: z.string().min(1).max(256).optional().describe("What people call it. Left out: its id."),
  charger: topicName
    .optional()
    .describe(
      "The charger it always uses, where none can say what is plugged in. Left out: telemetry tells.",
    ),
  current: z
    .strictObject({ max: current("Largest current it takes, in A per phase. Required within current.") })
    .optional()
    .describe("Limit of the vehicle in A per phase. Left out: the charger's."),
  power: z
    .strictObject({ max: kilowatts(0.1).describe("Largest power it takes, in kW. Required within power.") })
    .optional()
    .describe("Limit of the vehicle in kW. Left out: the charger's."),
  phases: z
    .int({ error: "1, 2 or 3" })
    .min(1)
    .max(3)
    .optional()
    .describe(
      "Phases it charges on, 1 to 3. Left out: all the charger has. Set it to 1 for single-phase vehicles.",
    ),
  identities: z
    .array(identity)
    .max(16)
    .prefault([])
    .describe(
      "What a charger may say to name it, one kind each: mac, rfid, or any other; upper or lower case is the same. Default [].",
    ),
});

/** The pauses around a switch of phases come from the profile. */
const NONE = millis(0);

/**
 * A charger as control needs it. Settings that it lacks come from `control`. Its profile's limits are added
 * later.
 */
export const chargerOf = (
  entry: z.infer<typeof chargerEntry>,
  control: z.infer<typeof controlSection>,
): Charger => ({
  id: chargerId(entry.id),
  profile: entry.profile,
  params: entry.params,
  broker: entry.broker ?? "",
  minCurrent: entry.current === undefined ? null : amperes(entry.current.min),
  maxCurrent: entry.current === undefined ? null : amperes(entry.current.max),
  minPower: entry.power?.min ?? null,
  maxPower: entry.power?.max ?? null,
  maxDischarge: entry.discharge?.max ?? null,
  phases: entry.phases,
  voltage: entry.voltage,
  belowMinimum: entry.belowMinimum,
  atEnd: entry.atEnd ?? control.atEnd,
  takesWatts: true,
  currentStep: amperes(FINEST_STEP),
  minInterval: entry.minInterval ?? control.minInterval,
  minOff: entry.minOff,
  minOn: entry.minOn,
  phaseSwitching:
    entry.phaseSwitching === undefined ? null : { ...entry.phaseSwitching, settle: NONE, deadTime: NONE },
  writesPerHour: entry.writesPerHour ?? null,
  refresh: control.refresh,
  refreshesRelease: false,
  whenSilent: { kind: "lease" },
  deadband: amperes(entry.deadband ?? control.deadband),
});

export const vehicleOf = (entry: z.infer<typeof vehicleEntry>): Vehicle => ({
  id: vehicleId(entry.id),
  name: entry.name ?? entry.id,
  charger: entry.charger === undefined ? null : chargerId(entry.charger),
  maxCurrent: entry.current === undefined ? null : amperes(entry.current.max),
  maxPower: entry.power?.max ?? null,
  phases: entry.phases ?? null,
  identities: entry.identities,
});
