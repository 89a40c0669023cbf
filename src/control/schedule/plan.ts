import type { Charger } from "../../domain/charger.ts";
import type { KnownEvent } from "../../domain/event.ts";
import { endOf, type Hold } from "../../domain/hold.ts";
import type { Reason } from "../../domain/reason.ts";
import type { Desired } from "../../domain/setpoint.ts";
import type { ChargerId, Instant, VehicleId, Window } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import type { WallClock } from "../../platform/clock.ts";
import { holdsAhead } from "../decide/ahead.ts";
import { reasonOf } from "../decide/reason.ts";
import { type Verdict, expectedVerdict } from "../decide/verdict.ts";
import { applyingHold, Holds } from "../holds/holds.ts";
import { type Dispatch, type ExpandContext, expand } from "./expand.ts";
import { RankedInForce } from "./vehiclePlan.ts";

/** A stretch of time with one verdict for one charger. Between stretches the charger is released. */
export interface Stretch extends Window {
  readonly charger: ChargerId;
  readonly vehicle: VehicleId;
  readonly desired: Desired;
  /** Null: the level of a hold applies. */
  readonly winner: Dispatch | null;
  readonly reason: Reason;
}

/** Every dispatch of these events, earliest first. */
export const dispatchesOf = (events: Iterable<KnownEvent>, context: ExpandContext): readonly Dispatch[] =>
  [...events].flatMap((known) => expand(known, context)).toSorted((a, b) => a.from - b.from);

/**
 * The plan of one charger for its fixed vehicle.
 * Declared limits, no telemetry, no dead band, no minimum interval. `dispatches` are that vehicle's, in any
 * order. `holds`: a hold until unplugged, or until an energy, counts until its latest end.
 */
export function stretchesOf(
  charger: Charger,
  vehicle: Vehicle,
  dispatches: readonly Dispatch[],
  context: ExpandContext,
  wallClock: WallClock,
  holds: Holds = NO_HOLDS,
): readonly Stretch[] {
  const spans: Span[] = [];
  const inForce = new RankedInForce(context.settings);
  const edges = edgesOf(dispatches, holds.open());
  edges.forEach(({ at, starts, ends }, index) => {
    for (const dispatch of ends) inForce.delete(dispatch);
    for (const dispatch of starts) inForce.add(dispatch);
    const until = edges[index + 1]?.at;
    if (until === undefined) return;
    const over = holdsAhead(holds, charger.id, vehicle.id, at).filter(({ since }) => since <= at);
    const found = expectedVerdict(charger, vehicle, inForce, applyingHold(over, inForce));
    append(spans, { found, from: at, until });
  });
  return spans.map(({ found, from, until }): Stretch => {
    const { winner, desired } = found;
    const [event, cause] =
      winner === null ? [null, "operator" as const] : [winner.event.id, "event" as const];
    const reason = reasonOf(found, { desired, until, vehicle: vehicle.id, event, cause }, wallClock);
    return { charger: charger.id, vehicle: vehicle.id, from, until, desired, winner, reason };
  });
}

const NO_HOLDS = new Holds();

interface Span extends Window {
  readonly found: Verdict;
}

/** Adds a span in which the charger gets a command. It extends the one before where that has the same origin. */
function append(spans: Span[], span: Span): void {
  const origin = originOf(span.found);
  if (origin === null) return;
  const before = spans.at(-1);
  // An overruled dispatch that starts or ends does not change the charger's level.
  if (before !== undefined && originOf(before.found) === origin && before.until === span.from)
    spans[spans.length - 1] = { ...before, until: span.until };
  else spans.push(span);
}

/** The claim that sets the level. Null: the charger decides by itself. */
const originOf = ({ winner, hold }: Verdict): Dispatch | Hold | null =>
  winner ?? (hold?.level == null ? null : hold);

interface Edge {
  readonly at: Instant;
  readonly starts: Dispatch[];
  readonly ends: Dispatch[];
}

function edgesOf(dispatches: readonly Dispatch[], holds: readonly Hold[]): readonly Edge[] {
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
  for (const hold of holds) {
    edgeAt(hold.since);
    edgeAt(endOf(hold));
  }
  return [...edges.values()].toSorted((a, b) => a.at - b.at);
}
