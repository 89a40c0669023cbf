import { auditRow, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import {
  heldAfterJump,
  deliveredWh,
  endOf,
  formatHoldLevel,
  formatScope,
  type Hold,
  type HoldScope,
  LONGEST_HOLD,
} from "../../domain/hold.ts";
import { after, type ChargerId, type Instant, iso, minutes } from "../../domain/units.ts";
import { formatMinutes } from "../../platform/text.ts";
import { NO_CHANGES, reevaluationsOf, type StageResult } from "../stage.ts";
import type { ControlState } from "../state.ts";
import { formatEnd, keptUntil } from "./holds.ts";
import { eventsUntil, extendedHold } from "./untilEvents.ts";

/** Ends that no person causes are recorded under this name. */
export const ITSELF = "setpointd";

/** Opens a hold. It acts with the next evaluation, after its commit. */
export function openHold(state: ControlState, hold: Hold, now: Instant): StageResult {
  state.holds.put(hold);
  const message = `hold ${hold.id} opened by ${hold.by}: ${formatScope(hold.scope)} ${formatHoldLevel(hold)} ${formatEnd(hold, state.wallClock)}${because(hold.reason)}`;
  return {
    changes: [{ kind: "hold", hold }, holdRow(hold, now, message, { hold: hold.id, opened: true })],
    reevaluations: reevaluationsOf(chargersUnder(state, hold.scope)),
  };
}

/** Ends a hold early. */
export function closeHold(
  state: ControlState,
  hold: Hold,
  by: string,
  why: string,
  now: Instant,
): StageResult {
  const ended: Hold = { ...hold, ended: { at: now, by, why } };
  state.holds.put(ended);
  const message = `hold ${hold.id} of ${hold.by} on ${formatScope(hold.scope)} ended ${by === ITSELF ? "" : `by ${by} `}after ${formatMinutes(Math.round((now - hold.since) / minutes(1)))}${because(why)}`;
  return {
    changes: [
      { kind: "hold", hold: ended },
      holdRow(hold, now, message, { hold: hold.id, ended: true, why }),
    ],
    reevaluations: reevaluationsOf(chargersUnder(state, hold.scope)),
  };
}

/** Handles the passage of time, and a step of the clock by `jump` ms. Chargers under an ended hold are evaluated. */
export function advanceHolds(state: ControlState, jump: number, now: Instant): readonly Change[] {
  const capped = jump < 0 ? capHoldsAfterJump(state, -jump) : [];
  const absent = followEventsOfAbsent(state, now);
  const { changes, reevaluations } = endDueHolds(state, now);
  for (const { charger } of reevaluations) state.wake(charger, now);
  return [...capped, ...absent, ...changes];
}

/**
 * Holds of vehicles that are at no charger end with their events too, though no evaluation asks. Their latest end comes
 * earlier when an event is withdrawn or cut short.
 */
function followEventsOfAbsent(state: ControlState, now: Instant): readonly Change[] {
  return state.holds.open().flatMap((hold): readonly Change[] => {
    const { id, scope, end } = hold;
    if (scope.kind !== "vehicle" || end.kind !== "events") return [];
    const retryAt = state.holds.retryAt(id);
    if (chargersUnder(state, scope).length > 0 || (retryAt !== null && now < retryAt)) return [];
    const until = eventsUntil(state, hold, end.events, now);
    if (until === null) return closeHold(state, hold, ITSELF, "its events are over", now).changes;
    if (until >= end.latest) return [];
    const earlier = { ...hold, end: { ...end, latest: until } };
    state.holds.put(earlier);
    return [{ kind: "hold", hold: earlier }];
  });
}

/** Ends the holds whose time has come, and removes those that ended a day ago. */
function endDueHolds(state: ControlState, now: Instant): StageResult {
  const all = state.holds.due(now).map((hold): StageResult => {
    if (hold.ended !== null) {
      // The hold's own end comes after an early one.
      if (now < keptUntil(hold.since, hold.ended)) return NO_CHANGES;
      state.holds.delete(hold.id);
      return { changes: [{ kind: "holdForgotten", id: hold.id }], reevaluations: [] };
    }
    if (now < endOf(hold)) {
      state.holds.put(hold);
      return NO_CHANGES;
    }
    const extended = extendedHold(state, hold, now);
    if (extended !== null) {
      state.holds.put(extended);
      // Their commands end with the old end.
      const reevaluations = reevaluationsOf(chargersUnder(state, extended.scope));
      return { changes: [{ kind: "hold", hold: extended }], reevaluations };
    }
    const why = hold.end.kind === "at" ? "its time has come" : whyCapped(hold, now);
    return closeHold(state, hold, ITSELF, why, now);
  });
  return {
    changes: all.flatMap(({ changes }) => changes),
    reevaluations: all.flatMap(({ reevaluations }) => reevaluations),
  };
}

function whyCapped({ end, cap, since }: Hold, now: Instant): string {
  if (cap === null || now < cap) return "its events are over";
  // The cap of a guard's hold is the departure.
  return end.kind !== "events" && cap < after(since, LONGEST_HOLD)
    ? "its time has come"
    : "it has lasted for a day";
}

/**
 * Ends holds over an evaluated charger by what is known of it: its vehicle is unplugged, the energy is delivered, or
 * the events are over. Called before its verdict. `isStored` false: the end acts before its commit.
 */
export function endReachedHolds(
  state: ControlState,
  charger: ChargerId,
  now: Instant,
  isStored = true,
): readonly Change[] {
  const { holds, occupancy } = state;
  const occupant = occupancy.at(charger);
  const vehicle = occupant.kind === "vehicle" ? occupant.vehicle : null;
  const over = holds.over(charger, vehicle, now);
  const watched = holds.watching(charger);
  if (over.length === 0 && watched.length === 0) return [];
  const changes: Change[] = [];
  const end = (hold: Hold, why: string): void => {
    const retryAt = isStored ? holds.retryAt(hold.id) : null;
    if (retryAt !== null && now < retryAt) return state.wake(charger, retryAt);
    const closed = closeHold(state, hold, ITSELF, why, now);
    changes.push(...closed.changes);
    for (const { charger: other } of closed.reevaluations) if (other !== charger) state.wake(other, now);
  };
  for (const hold of new Set([...over, ...watched])) {
    switch (hold.end.kind) {
      case "at":
        break;
      case "unplugged":
        if (hasLeft(state, hold, hold.end)) end(hold, "unplugged");
        break;
      case "energy": {
        const metered = meteredHold(state, hold, hold.end, charger);
        if (metered === null) break;
        if (metered.isReached) end(metered.hold, "the energy is delivered");
        else if (metered.hold !== hold) {
          holds.put(metered.hold);
          changes.push({ kind: "hold", hold: metered.hold });
        }
        break;
      }
      case "events": {
        const until = eventsUntil(state, hold, hold.end.events, now);
        if (until === null) end(hold, "its events are over");
        else state.wake(charger, until);
        break;
      }
    }
  }
  return changes;
}

/** True: the vehicle has left the charger. One that has not reported since the start shows nothing. */
export function hasLeft(
  { presence, occupancy, silence }: ControlState,
  { scope, since, openedAt = since }: Hold,
  { charger, vehicle }: Hold["end"] & { kind: "unplugged" },
): boolean {
  const { telemetry, measuredAt, unpluggedAt, online } = presence.of(charger);
  // The occupant until then is the vehicle that is fixed to the charger, whichever is there.
  if (measuredAt === null) return false;
  if (telemetry?.state === "unplugged" && measuredAt >= openedAt) return true;
  // Another vehicle may have come before this is evaluated.
  if (unpluggedAt !== null && unpluggedAt > openedAt) return true;
  const occupant = occupancy.at(charger);
  if (occupant.kind === "unknown") return vehicle !== null;
  if (occupant.kind === "vehicle" && vehicle !== null && occupant.vehicle !== vehicle) return true;
  const where = scope.kind === "vehicle" ? occupancy.where(scope.vehicle) : charger;
  if (where === null || where === charger) return false;
  // The vehicle of a charger that is away counts as at its binding. Only a report shows that it is there.
  const there = occupancy.at(where);
  const isReported = there.kind === "vehicle" && there.source === "telemetry";
  // A silence may end with an answer to a command: where the vehicle is, only the next report shows.
  return isReported || (occupant.kind === "nobody" && online !== false && !silence.has(charger));
}

/** A reading is stored after so much energy: a register that starts anew costs a hold less than that. */
const KEPT_EVERY_WH = 100;

/** Null: the charger reports no energy. */
function meteredHold(
  { presence, occupancy }: ControlState,
  hold: Hold,
  end: Hold["end"] & { kind: "energy" },
  charger: ChargerId,
): { readonly hold: Hold; readonly isReached: boolean } | null {
  const reading = presence.of(charger).telemetry?.[end.meter.register];
  if (reading === undefined) return null;
  const isHere = hold.scope.kind !== "vehicle" || occupancy.where(hold.scope.vehicle) === charger;
  if (!isHere) return null;
  const { meter } = end;
  const last = meter.lastWh ?? meter.fromWh;
  const counted = (changed: typeof meter) => ({
    hold: { ...hold, end: { ...end, meter: changed } },
    isReached: deliveredWh(changed, reading) >= end.wh,
  });
  // The vehicle has moved, or the register starts anew with a session. What its charger reports since is of another one.
  if (meter.charger !== charger || reading < last) {
    const delivered = deliveredWh(meter, last);
    return counted({ ...meter, charger, fromWh: reading, deliveredWh: delivered, lastWh: reading });
  }
  if (reading - last >= KEPT_EVERY_WH) return counted({ ...meter, lastWh: reading });
  return { hold, isReached: deliveredWh(meter, reading) >= end.wh };
}

/** The chargers that a scope means now. */
export function chargersUnder({ chargers, occupancy }: ControlState, scope: HoldScope): readonly ChargerId[] {
  switch (scope.kind) {
    case "charger":
      return [scope.charger];
    case "vehicle":
      return occupancy.chargersOf(scope.vehicle);
    case "site":
      return [...chargers.keys()];
  }
}

/** After the clock was set back by `jump` ms: no hold lasts longer than a day of real time. */
function capHoldsAfterJump(state: ControlState, jump: number): readonly Change[] {
  return state.holds.open().flatMap((hold): readonly Change[] => {
    const capped = heldAfterJump(hold, jump);
    if (capped === hold) return [];
    state.holds.put(capped);
    return [{ kind: "hold", hold: capped }];
  });
}

const because = (reason: string): string => (reason === "" ? "" : `: ${reason}`);

const holdRow = (hold: Hold, at: Instant, message: string, facts: Readonly<Record<string, Json>>): Change => {
  const { scope } = hold;
  return auditRow("operator", at, message, {
    charger: scope.kind === "charger" ? scope.charger : null,
    vehicle: scope.kind === "vehicle" ? scope.vehicle : null,
    facts: { ...facts, by: hold.by, reason: hold.reason, since: iso(hold.since) },
  });
};
