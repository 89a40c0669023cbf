import type { Charger } from "../../domain/charger.ts";
import { endOf, type Hold, setAsideBy } from "../../domain/hold.ts";
import { MOST_OVERRULED } from "../../domain/reason.ts";
import type { Desired } from "../../domain/setpoint.ts";
import type { EventId, Instant } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import type { Occupant } from "../observe/claims.ts";
import type { Dispatch } from "../schedule/expand.ts";
import type { InForce } from "../schedule/vehiclePlan.ts";
import { type Limit, limit, wattsPerAmpere, type PhaseChoice, phaseChoice } from "./limits.ts";

/** The setpoint of one charger now, independent of its last command, with the reason. */
export interface Verdict {
  readonly charger: Charger;
  readonly occupant: Occupant;
  readonly vehicle: Vehicle | null;
  /** Null: no dispatch applies. `reconcile` decides by the last command what that means. */
  readonly winner: Dispatch | null;
  /** The best overruled dispatches, best first: at most five. */
  readonly overruled: readonly Dispatch[];
  /** Number of overruled dispatches, unnamed ones included. */
  readonly overruledCount: number;
  readonly desired: Desired;
  readonly limits: readonly Limit[];
  /** The setpoint on one phase and on three. Null: the phases are not switched. */
  readonly phases: PhaseChoice | null;
  /** The winner's own window end. */
  readonly until: Instant | null;
  /** The operator's hold that applies: it sets dispatches aside, or has the level. Null: none has an effect. */
  readonly hold: Hold | null;
}

/** Facts about one charger at the moment of its verdict. */
export interface Circumstances {
  readonly charger: Charger;
  readonly occupant: Occupant;
  /** The vehicle on the charger, if it is one of ours. */
  readonly vehicle: Vehicle | null;
  /** Dispatches in force for that vehicle. */
  readonly inForce: InForce;
  readonly hold: Hold | null;
  /** Freshly measured volts, phase to neutral. Null: none. */
  readonly measuredVoltage: number | null;
  /** Phases that carry a freshly measured current. Null: not known. */
  readonly measuredPhases: number | null;
}

/** The verdict of a vehicle that is expected at this charger. Nothing is measured ahead. */
export const expectedVerdict = (
  charger: Charger,
  vehicle: Vehicle,
  inForce: InForce,
  hold: Hold | null,
): Verdict =>
  verdict({
    charger,
    vehicle,
    occupant: { kind: "vehicle", vehicle: vehicle.id, source: "fixed" },
    inForce,
    hold,
    measuredVoltage: null,
    measuredPhases: null,
  });

const RELEASE: Desired = { kind: "release" };

/** Arbitration, then limits. An operator's hold is a claim that wins over every event, and over no limit. */
export function verdict(circumstances: Circumstances): Verdict {
  const { charger, occupant, vehicle, inForce, hold, measuredVoltage, measuredPhases } = circumstances;
  const ratio = wattsPerAmpere(charger, vehicle, measuredVoltage, measuredPhases);
  const ranking =
    hold === null || isPartial(hold)
      ? arbitrate(inForce, setAsideBy(hold), ratio)
      : allOverruled(inForce, ratio);
  const { winner, overruled, overruledCount } = ranking;
  const applied = ranking.hasSetAside ? hold : null;
  const common = {
    charger,
    occupant,
    vehicle,
    winner,
    overruled,
    overruledCount,
    hold: applied,
  };
  const claim = claimOf(winner, applied);
  if (claim === null) return { ...common, desired: RELEASE, limits: [], phases: null, until: null };
  const { asked, until } = claim;
  if (asked.kind === "pause") return { ...common, desired: asked, limits: [], phases: null, until };
  const phases = phaseChoice(asked, charger, vehicle, measuredVoltage);
  const { desired, limits } =
    phases === null
      ? limit(asked, charger, vehicle, measuredVoltage, measuredPhases)
      : phases.on[phases.best ?? 3];
  return { ...common, desired, limits, phases, until };
}

/** The level that applies, and its end. Null: the charger decides by itself. */
function claimOf(
  winner: Dispatch | null,
  hold: Hold | null,
): { readonly asked: NonNullable<Hold["level"]>; readonly until: Instant } | null {
  if (winner !== null) return { asked: winner.setpoint, until: winner.until };
  return hold === null || hold.level === null ? null : { asked: hold.level, until: endOf(hold) };
}

/** An exemption from some events. Others still apply. */
const isPartial = ({ level, end }: Hold): boolean => level === null && end.kind === "events";

const NONE_SET_ASIDE: ReadonlySet<EventId> = new Set();

/** A level, or an exemption from every event: all dispatches are overruled. */
function allOverruled(inForce: InForce, ratio: number): Ranking {
  const { winner, overruled } = arbitrate(inForce, NONE_SET_ASIDE, ratio);
  const best = winner === null ? [] : [winner, ...overruled];
  return {
    winner: null,
    overruled: best.slice(0, MOST_OVERRULED),
    overruledCount: inForce.count,
    hasSetAside: true,
  };
}

/** The verdict without a dispatch: for a release that no event caused. */
export const unclaimed = (verdict: Verdict): Verdict => ({
  ...verdict,
  winner: null,
  overruled: [],
  overruledCount: 0,
  limits: [],
  until: null,
});

/** The dispatches of a vehicle, in the order of arbitration. */
export interface Ranking {
  readonly winner: Dispatch | null;
  /** The best overruled dispatches in force, best first: at most five. */
  readonly overruled: readonly Dispatch[];
  /** Number of overruled dispatches, unnamed ones included. */
  readonly overruledCount: number;
  /** Some dispatch was set aside by the hold. */
  readonly hasSetAside: boolean;
}

/**
 * Picks the winner among the dispatches in force: by priority, then by the tie rule.
 * Current and power compete. `wattsPerAmpere` converts them where the most restrictive wins.
 * `setAside`: events that an operator set aside. Without any the cost does not depend on the number overruled.
 */
export function arbitrate(inForce: InForce, setAside: ReadonlySet<EventId>, wattsPerAmpere: number): Ranking {
  const best: Dispatch[] = [];
  let setAsideCount = 0;
  for (const dispatch of inForce.ranked(wattsPerAmpere)) {
    if (setAside.has(dispatch.event.id)) setAsideCount += 1;
    else if (best.length <= MOST_OVERRULED) best.push(dispatch);
    else if (setAside.size === 0) break;
  }
  const [winner = null, ...overruled] = best;
  const applicable = inForce.count - setAsideCount;
  return {
    winner,
    overruled,
    overruledCount: Math.max(0, applicable - 1),
    hasSetAside: setAsideCount > 0,
  };
}
