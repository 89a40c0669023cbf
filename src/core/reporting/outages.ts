import { type AuditEntry, factOf } from "../audit.ts";
import { instant, type Millis, type VehicleId, type Window } from "../units.ts";
import { firstWhere } from "./bisect.ts";
import type { Outage } from "./cause.ts";
import type { Reading } from "./reading.ts";
import { gapsIn, stepsOf, within } from "./series.ts";

type RecordedCause = "setpoint not followed" | "opted out by the site";

/** Vehicles that did not follow, or that a person let go, by the rows of the record on one event, oldest first. */
export class RecordedOutages {
  readonly #closed = new Map<VehicleId, Outage[]>();
  readonly #open = new Map<VehicleId, { readonly cause: RecordedCause; readonly from: number }>();

  take({ at, kind, vehicle, facts }: Pick<AuditEntry, "at" | "kind" | "vehicle" | "facts">): void {
    if (vehicle === null) return;
    const progress = factOf(facts, "progress");
    if (kind === "decision") {
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

  /** Of one vehicle, the one that still goes on included. */
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
 * When a vehicle was away, by what its chargers said: others were there, or it was unplugged. Where they said nothing
 * for longer than `maxGap` they were unreachable; chargers that never say anything (`speaks` is false) are not.
 */
export function absences(
  vehicle: VehicleId,
  readings: readonly Reading[],
  span: Window,
  maxGap: Millis,
  speaks: boolean,
): readonly Outage[] {
  const said = readings.filter(({ kind }) => kind !== "setpoint").toSorted((a, b) => a.at - b.at);
  const present = said.filter((reading) => reading.vehicle === vehicle).map(({ at }) => at);
  const others = said.filter((reading) => reading.vehicle !== vehicle);
  const gaps = gapsIn(present, span, maxGap).flatMap(({ from, until }): readonly Outage[] => {
    const next = others[firstWhere(others, ({ at }) => at >= from)];
    if (next !== undefined && next.at < until) return [{ cause: "vehicle absent", from, until }];
    return speaks || said.length > 0 ? [{ cause: "charger unreachable", from, until }] : [];
  });
  const states = said.filter((reading) => reading.kind === "state");
  const unplugged = within(stepsOf(states, vehicle, maxGap, maxGap), span)
    .filter(({ value }) => value === "unplugged")
    .map(({ from, until }): Outage => ({ cause: "vehicle absent", from, until }));
  return [...gaps, ...unplugged];
}
