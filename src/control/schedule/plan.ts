import type { Charger } from "../../domain/charger.ts";
import type { KnownEvent } from "../../domain/event.ts";
import type { Reason } from "../../domain/reason.ts";
import type { Desired } from "../../domain/setpoint.ts";
import type { ChargerId, Instant, VehicleId, Window } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import type { WallClock } from "../../platform/text.ts";
import { reasonOf } from "../decide/explain.ts";
import { type Verdict, verdict } from "../decide/verdict.ts";
import { type Dispatch, type ExpandContext, expand } from "./expand.ts";
import { RankedInForce } from "./vehiclePlan.ts";

/** A stretch of time with one verdict for one charger. Between stretches the charger is released. */
export interface Stretch extends Window {
  readonly charger: ChargerId;
  readonly vehicle: VehicleId;
  readonly desired: Desired;
  readonly winner: Dispatch;
  readonly reason: Reason;
}

/** Every dispatch of these events, earliest first. */
export const dispatchesOf = (events: Iterable<KnownEvent>, context: ExpandContext): readonly Dispatch[] =>
  [...events].flatMap((known) => expand(known, context)).toSorted((a, b) => a.from - b.from);

/**
 * The plan of one charger for its fixed vehicle.
 * Declared limits, no telemetry, no dead band, no minimum interval. `dispatches` are that vehicle's, in any
 * order.
 */
export function stretchesOf(
  charger: Charger,
  vehicle: Vehicle,
  dispatches: readonly Dispatch[],
  context: ExpandContext,
  wallClock: WallClock,
): readonly Stretch[] {
  const stretches: Stretch[] = [];
  const inForce = new RankedInForce(context.settings);
  const edges = edgesOf(dispatches);
  edges.forEach(({ at, starts, ends }, index) => {
    for (const dispatch of ends) inForce.delete(dispatch);
    for (const dispatch of starts) inForce.add(dispatch);
    const until = edges[index + 1]?.at;
    if (until === undefined) return;
    const now = verdict({
      charger,
      vehicle,
      occupant: { kind: "vehicle", vehicle: vehicle.id, source: "fixed" },
      inForce,
      hold: null,
      measuredVoltage: null,
      measuredPhases: null,
    });
    append(stretches, now, at, until, wallClock);
  });
  return stretches;
}

function append(
  stretches: Stretch[],
  now: Verdict,
  from: Instant,
  until: Instant,
  wallClock: WallClock,
): void {
  const { winner, desired, charger } = now;
  if (winner === null) return;
  const before = stretches.at(-1);
  // An overruled dispatch that starts or ends does not change the charger's level.
  if (before?.winner === winner && before.until === from) {
    stretches[stretches.length - 1] = { ...before, until };
    return;
  }
  const { vehicle, event } = winner;
  const reason = reasonOf(now, { desired, until, vehicle, event: event.id, cause: "event" }, wallClock);
  stretches.push({ charger: charger.id, vehicle, from, until, desired, winner, reason });
}

interface Edge {
  readonly at: Instant;
  readonly starts: Dispatch[];
  readonly ends: Dispatch[];
}

function edgesOf(dispatches: readonly Dispatch[]): readonly Edge[] {
  const edges = new Map<Instant, Edge>();
  const edgeAt = (at: Instant): Edge => {
    const edge = edges.get(at) ?? { at, starts: [], ends: [] };
    edges.set(at, edge);
    return edge;
  };
  for (const dispatch of dispatches) {
    edgeAt(dispatch.from).starts.push(dispatch);
    edgeAt(dispatch.until).ends.push(dispatch);
  }
  return [...edges.values()].toSorted((a, b) => a.at - b.at);
}
