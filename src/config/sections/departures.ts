import * as z from "zod";

import type { VehicleDepartures } from "../../domain/departure.ts";
import { count, quantity, reads } from "../fields/quantities.ts";

/** In the order of `Date` in ISO 8601: Monday is 1. */
const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

const weeklyDeparture = z
  .strictObject({
    days: z
      .array(z.enum(DAYS, { error: `one of ${DAYS.join(", ")}` }))
      .min(1)
      .max(7)
      .optional()
      .describe("Days of the week: mon, tue, wed, thu, fri, sat, sun. Left out: every day."),
    at: reads((text) => {
      const [, hour, minute] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
      return hour === undefined ? null : { hour: Number(hour), minute: Number(minute) };
    }, 'a time of day in quotes, e.g. "05:40"').describe("Time of day in the site's zone. Required."),
    energy: quantity(0.1, 10_000, "kWh", 18)
      .optional()
      .describe("Energy in kWh that it leaves with, counted from the plug-in. This or soc is required."),
    soc: quantity(1, 100, "percent", 80)
      .optional()
      .describe(
        "State of charge in percent that it leaves with. It needs battery. This or energy is required.",
      ),
  })
  .refine(({ energy, soc }) => (energy === undefined) !== (soc === undefined), {
    error: "exactly one of energy (kWh) and soc (%)",
  })
  .describe("A departure on the same days each week.");

/** Keys of a vehicle that are about its departures. */
export const departureFields = {
  battery: z
    .strictObject({
      capacity: quantity(0.1, 10_000, "kWh", 280).describe(
        "Usable capacity in kWh. Required within battery.",
      ),
    })
    .optional()
    .describe("The battery of the vehicle, for departures with a state of charge. Left out: not known."),
  departures: z
    .array(weeklyDeparture)
    .max(50)
    .prefault([])
    .describe("Weekly departures. One that a person or a file sets replaces those of its day. Default []."),
};

const departureEntry = z.strictObject(departureFields);

/** Departures and battery of a vehicle. */
export const departuresOf = ({ departures, battery }: z.infer<typeof departureEntry>): VehicleDepartures => ({
  weekly: departures.map(({ days = DAYS, at, energy, soc }) => ({
    days: days.map((day) => DAYS.indexOf(day) + 1),
    ...at,
    need:
      energy === undefined
        ? { kind: "soc", percent: soc ?? 100 }
        : { kind: "energy", wh: Math.round(energy * 1000) },
  })),
  batteryWh: battery === undefined ? null : Math.round(battery.capacity * 1000),
});

export const departureGuardSection = z.strictObject({
  on: z
    .boolean({ error: "true or false" })
    .prefault(false)
    .describe(
      "Opens a hold by departure guard for a vehicle that an event would let leave short. The vehicle is opted out of its events, on record and in the reports. Default false.",
    ),
  most: count(1, 100_000)
    .prefault(5)
    .describe("Most vehicles that it frees at a time, 1 to 100000. Default 5."),
});
