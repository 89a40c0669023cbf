import type { Instant, VehicleId } from "./units.ts";

/** Content that a vehicle leaves with. */
export type Need =
  /** Energy of the session, counted from the plug-in. */
  | { readonly kind: "energy"; readonly wh: number }
  /** State of charge in percent. */
  | { readonly kind: "soc"; readonly percent: number };

/** A departure on the same days each week, in the site's zone. */
export interface WeeklyDeparture {
  /** 1 is Monday. */
  readonly days: readonly number[];
  readonly hour: number;
  readonly minute: number;
  readonly need: Need;
}

/** A departure that a person or a file has set. It replaces the weekly ones of its day. */
export interface SetDeparture {
  readonly vehicle: VehicleId;
  readonly at: Instant;
  readonly need: Need;
  readonly source: "api" | "csv";
  /** Name of the person. */
  readonly by: string;
  readonly setAt: Instant;
  /** The vehicle stays on the day of `at`, which is that of a weekly departure. Absent: it leaves. */
  readonly isSkipped?: true;
}

/** The next departure of a vehicle. */
export type Departure = Pick<SetDeparture, "vehicle" | "at" | "need"> & {
  readonly source: SetDeparture["source"] | "weekly";
  /** Null: from the configuration. */
  readonly by: string | null;
};

/** Key of a stored departure: a vehicle leaves once at a moment. */
export const departureKey = ({ vehicle, at }: Pick<SetDeparture, "vehicle" | "at">): string =>
  JSON.stringify([vehicle, at]);

/** Register of a charger at a plug-in, so that the energy since then is known after a restart. */
export interface PlugIn {
  /** Null: no vehicle was known. */
  readonly vehicle: VehicleId | null;
  readonly at: Instant;
  readonly energyWh: number;
}

/** Configuration of one vehicle. */
export interface VehicleDepartures {
  readonly weekly: readonly WeeklyDeparture[];
  /** Capacity of the battery in Wh. Null: not configured. */
  readonly batteryWh: number | null;
}

/** "18 kWh", "80 %". */
export const formatNeed = (need: Need): string =>
  need.kind === "energy" ? formatEnergy(need.wh) : `${need.percent} %`;

/** Energy in kWh with one digit, below 1 kWh with two: a few minutes of an event are not "0 kWh". */
export const formatEnergy = (wh: number): string =>
  `${wh < 1000 ? Math.round(wh / 10) / 100 : Math.round(wh / 100) / 10} kWh`;

/** The need as the API shows it. */
export const needView = (need: Need): { readonly energyWh: number } | { readonly soc: number } =>
  need.kind === "energy" ? { energyWh: need.wh } : { soc: need.percent };
