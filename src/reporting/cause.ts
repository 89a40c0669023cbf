import { type AuditEntry, factOf } from "../domain/audit.ts";
import type { Reading, Stated } from "../domain/reading.ts";
import { type Instant, type Window, instant, type Millis, type VehicleId } from "../domain/units.ts";
import { inSteps, type ResumableTask } from "../platform/cooperative.ts";
import { firstWhere } from "../platform/collections.ts";
import { gapsIn, stepsOf, within } from "./series.ts";

/** Reason why a value is missing, or differs from the event's setpoint. The partner reads this text in the report. */
export type Cause =
  | OutageCause
  | "gap in the readings"
  | "meter register cannot be believed"
  | "implausible readings"
  | "readings too far apart for this interval"
  | "no readings"
  | "no setpoint"
  | "no comparable days"
  | "not available here"
  | "not meaningful as an aggregate";

/** Reason why a targeted vehicle could not follow its setpoint. */
type OutageCause =
  | "vehicle absent"
  | "charger unreachable"
  | "setpoint not followed"
  | "opted out by the site"
  | "vehicle not known here";

/** A window in which a vehicle could not follow, and the reason. */
export interface Outage extends Window {
  readonly cause: OutageCause;
}

/** OpenADR data qualities, worst first. */
const QUALITIES = ["MISSING", "BAD", "ESTIMATED", "OK"] as const;
export type DataQuality = (typeof QUALITIES)[number];

/** The worst of several; OK of none. */
export const worstOf = (qualities: readonly DataQuality[]): DataQuality =>
  qualities.reduce(
    (worst, next) => (QUALITIES.indexOf(next) < QUALITIES.indexOf(worst) ? next : worst),
    "OK",
  );

/** Value of one quantity in one window. Null: no value. */
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

type RecordedCause = "setpoint not followed" | "opted out by the site";

/** Vehicles that did not follow, or that a person let go, by the rows of the record on one event, oldest first. */
export class RecordedOutages {
  readonly #closed = new Map<VehicleId, Outage[]>();
  readonly #open = new Map<VehicleId, { readonly cause: RecordedCause; readonly from: number }>();

  take({ at, kind, vehicle, facts }: Pick<AuditEntry, "at" | "kind" | "vehicle" | "facts">): void {
    if (vehicle === null) return;
    const progress = factOf(facts, "progress");
    if (kind === "operator" && factOf(facts, "effect") === true) {
      // A hold keeps an event from a vehicle, perhaps before any command for it.
      this.#close(vehicle, at);
      this.#open.set(vehicle, { cause: "opted out by the site", from: at });
    } else if (kind === "decision") {
      this.#close(vehicle, at);
      if (factOf(facts, "cause") === "operator")
        this.#open.set(vehicle, { cause: "opted out by the site", from: at });
    } else if (kind === "outcome" && (progress === "notFollowed" || progress === "refused")) {
      if (!this.#open.has(vehicle)) this.#open.set(vehicle, { cause: "setpoint not followed", from: at });
    } else if (kind === "outcome" && progress === "followed") {
      // A release that is followed does not bring a vehicle back that a person has taken out.
      if (this.#open.get(vehicle)?.cause === "setpoint not followed") this.#close(vehicle, at);
    }
  }

  /** Outages of one vehicle, the ongoing one included. */
  of(vehicle: VehicleId): readonly Outage[] {
    const open = this.#open.get(vehicle);
    const closed = this.#closed.get(vehicle) ?? [];
    if (open === undefined) return closed;
    return [...closed, { cause: open.cause, from: instant(open.from), until: instant(Infinity) }];
  }

  #close(vehicle: VehicleId, until: Outage["until"]): void {
    const open = this.#open.get(vehicle);
    if (open === undefined) return;
    this.#open.delete(vehicle);
    const outage = { cause: open.cause, from: instant(open.from), until };
    const closed = this.#closed.get(vehicle);
    if (closed === undefined) this.#closed.set(vehicle, [outage]);
    else closed.push(outage);
  }
}

/**
 * Times when a vehicle was away, by the readings of its chargers: another vehicle was there, or it was unplugged.
 * Without readings for longer than `maxGap` its chargers were unreachable. `speaks` false: they never report anything.
 */
export function* absences(
  vehicle: VehicleId,
  readings: readonly Reading[],
  span: Window,
  maxGap: Millis,
  speaks: boolean,
): ResumableTask<readonly Outage[]> {
  const [present, others, states]: [Instant[], Reading[], Stated[]] = [[], [], []];
  const sorted = readings.toSorted((a, b) => a.at - b.at);
  yield;
  yield* inSteps(sorted, (reading) => {
    if (reading.kind === "setpoint") return;
    if (reading.kind === "state") states.push(reading);
    if (reading.vehicle !== vehicle) others.push(reading);
    // The readings of one message have the same time.
    else if (present.at(-1) !== reading.at) present.push(reading.at);
  });
  yield;
  const gaps = gapsIn(present, span, maxGap).flatMap(({ from, until }): readonly Outage[] => {
    const next = others[firstWhere(others, ({ at }) => at >= from)];
    if (next !== undefined && next.at < until) return [{ cause: "vehicle absent", from, until }];
    return speaks || present.length + others.length > 0
      ? [{ cause: "charger unreachable", from, until }]
      : [];
  });
  yield;
  const unplugged = within(stepsOf(states, vehicle, maxGap, maxGap), span)
    .filter(({ value }) => value === "unplugged")
    .map(({ from, until }): Outage => ({ cause: "vehicle absent", from, until }));
  return [...gaps, ...unplugged];
}
