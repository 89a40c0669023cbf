import type { Window } from "../units.ts";

/** Why a value is missing, or not what the event asked for: in words that a partner can read. */
export type Cause =
  | OutageCause
  | "gap in the readings"
  | "meter register cannot be believed"
  | "implausible readings"
  | "no readings"
  | "no setpoint"
  | "no comparable days"
  | "not available here"
  | "not meaningful as an aggregate";

/** What keeps a targeted vehicle from doing what it was asked. */
type OutageCause =
  | "vehicle absent"
  | "charger unreachable"
  | "setpoint not followed"
  | "opted out by the site"
  | "vehicle not known here";

export interface Outage extends Window {
  readonly cause: OutageCause;
}

/** OpenADR's words; the worst comes first. */
const QUALITIES = ["MISSING", "BAD", "ESTIMATED", "OK"] as const;
export type DataQuality = (typeof QUALITIES)[number];

/** The worst of several; OK of none. */
export const worstOf = (qualities: readonly DataQuality[]): DataQuality =>
  QUALITIES.find((quality) => qualities.includes(quality)) ?? "OK";

/** What is known of one quantity in one window; null: nothing. */
export interface Finding<Value = number | string> {
  readonly value: Value | null;
  readonly quality: DataQuality;
  readonly causes: readonly Cause[];
}

/** Nothing, and why. */
export const nothing = (...causes: readonly Cause[]): Finding<never> => ({
  value: null,
  quality: "MISSING",
  causes,
});

/** A number that JSON cannot write is no value: sums of absurd readings end there. */
export const finite = <Found extends Finding>(found: Found): Found =>
  typeof found.value === "number" && !Number.isFinite(found.value)
    ? { ...found, value: null, quality: "MISSING", causes: [...found.causes, "implausible readings"] }
    : found;
