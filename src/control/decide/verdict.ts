import type { Charger } from "../../domain/charger.ts";
import type { Hold } from "../../domain/command.ts";
import type { Desired } from "../../domain/setpoint.ts";
import type { Instant } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import type { Occupant } from "../observe/occupancy.ts";
import type { Dispatch } from "../schedule/expand.ts";
import type { Holding } from "../schedule/inForce.ts";
import { arbitrate } from "./arbitrate.ts";
import { type Limit, limit, wattsPerAmpere, type PhaseChoice, phaseChoice } from "./limits.ts";

/** What one charger should do now, whatever it was told before, and why. */
export interface Verdict {
  readonly charger: Charger;
  readonly occupant: Occupant;
  readonly vehicle: Vehicle | null;
  /** Null: no dispatch applies; what that means depends on what the charger was told last (reconcile). */
  readonly winner: Dispatch | null;
  /** The best that lost, best first: never more than five. */
  readonly overruled: readonly Dispatch[];
  /** How many lost, those that are not named included. */
  readonly overruledCount: number;
  readonly desired: Desired;
  readonly limits: readonly Limit[];
  /** What could be done on one phase and on three; null: its phases are left alone. */
  readonly phases: PhaseChoice | null;
  /** The winner's own window end. */
  readonly until: Instant | null;
  /** An operator's hold that set dispatches aside. */
  readonly hold: Hold | null;
}

export interface Circumstances {
  readonly charger: Charger;
  readonly occupant: Occupant;
  /** The vehicle on the charger, if it is one of ours. */
  readonly vehicle: Vehicle | null;
  /** What holds for that vehicle now. */
  readonly holding: Holding;
  readonly hold: Hold | null;
  /** Fresh measured volts, phase to neutral; null: none. */
  readonly measuredVoltage: number | null;
  /** Phases that carry a current, freshly measured; null: not known. */
  readonly measuredPhases: number | null;
}

const RELEASE: Desired = { kind: "release" };

/** Arbitration, then limits (DESIGN 5.4), after setting aside what an operator holds back. */
export function verdict(circumstances: Circumstances): Verdict {
  const { charger, occupant, vehicle, holding, hold, measuredVoltage, measuredPhases } = circumstances;
  const ratio = wattsPerAmpere(charger, vehicle, measuredVoltage, measuredPhases);
  const held = hold === null ? null : new Set(hold.events);
  const { winner, overruled, overruledCount, isHeldBack } = arbitrate(holding, held, ratio);
  const common = { charger, occupant, vehicle, overruled, overruledCount, hold: isHeldBack ? hold : null };
  if (winner === null) return { ...common, winner, desired: RELEASE, limits: [], phases: null, until: null };
  const phases = phaseChoice(winner.setpoint, charger, vehicle, measuredVoltage);
  const { desired, limits } =
    phases === null
      ? limit(winner.setpoint, charger, vehicle, measuredVoltage, measuredPhases)
      : phases.on[phases.best ?? 3];
  return { ...common, winner, desired, limits, phases, until: winner.until };
}

/** The same where nothing is asked of the charger: for a release that does not come from an event. */
export const unclaimed = (verdict: Verdict): Verdict => ({
  ...verdict,
  winner: null,
  overruled: [],
  overruledCount: 0,
  limits: [],
});
