import { IANAZone } from "luxon";
import * as z from "zod";

import { FINEST_STEP, NATIVE, type Charger } from "../../domain/charger.ts";
import { amperes, chargerId, instant, millis, vehicleId } from "../../domain/units.ts";
import type { Identity, Vehicle } from "../../domain/vehicle.ts";
import { nearest } from "../explain.ts";
import { duration, kilowatts, quantity, reads, topicName } from "../fields/quantities.ts";
import { departureFields } from "./departures.ts";
import { atEnd, deadband, minInterval, type controlSection } from "./control.ts";

const timezone = reads(
  // Zones are kept: to make one takes longer than to check all else of a small site.
  (text) => (IANAZone.create(text).isValid ? text : null),
  (text) => {
    const meant = nearest(text, Intl.supportedValuesOf("timeZone"));
    return `a time zone of the IANA list, e.g. ${meant ?? "Europe/Oslo"} or UTC`;
  },
);

/** A moment with its offset: a time of the day alone is ambiguous when the clocks change. */
const moment = reads((text) => {
  const hasOffset = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})$/.test(text);
  // Date.parse reads November 31 as December 1.
  const isDay = z.iso.date().safeParse(text.slice(0, 10)).success;
  const at = hasOffset && isDay ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : instant(at);
}, "a moment with its offset, e.g. 2026-11-27T22:00:00+01:00");

const maintenance = z
  .strictObject({
    name: z.string().trim().min(1).max(100).describe("What is done. Required."),
    from: moment.describe("Begin, with its offset. Required."),
    until: moment.describe("End, with its offset. Required."),
    bays: z.array(topicName).prefault([]).describe("Ids of the chargers. Default []: the whole site."),
  })
  .refine(({ from, until }) => from < until, { path: ["until"], error: "a moment after from" });

export const siteSection = z.strictObject({
  id: topicName.describe(
    "Name of the site: part of every topic and of the MQTT client id. Required; keep it for good.",
  ),
  timezone: timezone
    .prefault("UTC")
    .describe("Time zone of the site's days and of what people read. Default UTC."),
  board: z
    .array(z.array(topicName))
    .prefault([])
    .describe(
      "Lanes of the yard for the bay board of the page, each with the ids of its chargers in order. Chargers that are left out follow in a lane of their own. Default [].",
    ),
  maintenance: z
    .array(maintenance)
    .prefault([])
    .describe("Planned work, as the timeline of the page shows it. It limits no charger. Default []."),
  fuse: quantity(1, 10_000, "amperes", 250)
    .optional()
    .describe(
      "Main fuse of the site, in A per phase. The page marks it on the bar of the site's power; it limits no charger. Left out: no mark.",
    ),
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
      "Least time between two switches, 1m to 24h; the minimum of the profile applies too. Until then, and if an event ends sooner, the charger uses its present phases and never exceeds the level. A release switches back: an early one waits, one by an operator does not. Default 15m.",
    ),
});

export const chargerEntry = z.strictObject({
  id: topicName.describe("Name of one outlet: part of its topics. Required, unique; keep it for good."),
  profile: z
    .string()
    .min(1)
    .prefault(NATIVE)
    .describe(
      "Profile of this charger: a name from setpointd profile list, or of a file in the folder profiles beside this file. Default native.",
    ),
  params: z
    .record(
      z.string(),
      z.union([z.string(), z.number(), z.boolean()], { error: "a text, a number, or true or false" }),
    )
    .prefault({})
    .describe(
      "Parameters of the profile, e.g. the serial number; setpointd profile show NAME lists them. Default {}; native needs nothing.",
    ),
  broker: z
    .string()
    .min(1)
    .optional()
    .describe("Name of an entry of brokers that this charger is connected to. Left out: mqtt."),
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
    .describe("If a level is below the minimum: pause, or hold the minimum. Default pause."),
  atEnd: atEnd.optional().describe("Like control.atEnd, for this charger. Left out: as in control."),
  minInterval: minInterval
    .optional()
    .describe("Like control.minInterval, for this charger. Left out: as in control."),
  minOff: duration("0s", "1h")
    .prefault("0s")
    .describe(
      "Shortest duration of a pause, to protect contactors and vehicles; a pause itself is never delayed. Default 0s.",
    ),
  minOn: duration("0s", "1h")
    .prefault("0s")
    .describe(
      "Shortest charging time before a pause that phaseSwitching needs to go back to three phases. A pause that an event requires never waits. Default 0s.",
    ),
  phaseSwitching: phaseSwitching
    .optional()
    .describe(
      "Allows a switch to one phase and back, in a pause, if an event leaves too little power for three phases (2.3 kW is 10 A on one phase, and less than 6 A on three). Events in A are per phase, so it rarely helps there. Left out: phases are never switched.",
    ),
  deadband: deadband.optional().describe("Like control.deadband, for this charger. Left out: as in control."),
  writesPerHour: z
    .int({ error: "a whole number from 1, e.g. 12" })
    .min(1)
    .max(3600)
    .optional()
    .describe(
      "Most commands in an hour, 1 to 3600; beyond it increases wait. A release or the end of a pause waits 5 minutes at most; reductions never wait. Left out: the limit of the profile, 12 if each write wears the charger's memory.",
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
  id: vehicleName.describe("Id of the vehicle in the targets of the partner's events. Required, unique."),
  name: z.string().min(1).max(256).optional().describe("Name for people. Left out: its id."),
  charger: topicName
    .optional()
    .describe(
      "The charger that it always uses, if chargers cannot identify vehicles. Left out: telemetry identifies the vehicle.",
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
      "Identities of the vehicle that a charger may report, one kind each: mac, rfid, or any other. Upper and lower case are equal. Default [].",
    ),
  ...departureFields,
});

/** The pauses around a switch of phases come from the profile. */
const NONE = millis(0);
/** Shared: a process of a fleet has many thousand chargers and vehicles, and most have the same of these. */
const NO_PARAMS: Charger["params"] = {};
const NO_IDENTITIES: Vehicle["identities"] = [];
const BY_LEASE: Charger["whenSilent"] = { kind: "lease" };

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
  params: Object.keys(entry.params).length === 0 ? NO_PARAMS : entry.params,
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
  whenSilent: BY_LEASE,
  deadband: amperes(entry.deadband ?? control.deadband),
});

export const vehicleOf = (entry: z.infer<typeof vehicleEntry>): Vehicle => ({
  id: vehicleId(entry.id),
  name: entry.name ?? entry.id,
  charger: entry.charger === undefined ? null : chargerId(entry.charger),
  maxCurrent: entry.current === undefined ? null : amperes(entry.current.max),
  maxPower: entry.power?.max ?? null,
  phases: entry.phases ?? null,
  identities: entry.identities.length === 0 ? NO_IDENTITIES : entry.identities,
});
