import type { Charger } from "../site/charger.ts";
import type { Vehicle } from "../site/vehicle.ts";
import { type Limit, limit, type Limited } from "./limits.ts";
import { inWords, type PhaseCount, phasesInWords, type Setpoint } from "./setpoint.ts";

/** What of a setpoint a charger could do on one phase and on all three. */
export interface PhaseChoice {
  readonly on: Readonly<Record<PhaseCount, Limited>>;
  /** Three where three can do it, else one where that can; null: neither, so that no switch is worth it. */
  readonly best: PhaseCount | null;
}

/**
 * Below the minimum of three phases one phase may still do what is asked: 2300 W is 10 A on one, and less than 6 A on
 * three. A current is asked for each phase (DESIGN 5.3), so one phase helps there only where a maximum in W is what
 * leaves too little. Null: the charger's phases are left alone.
 */
export function phaseChoice(
  asked: Setpoint,
  charger: Charger,
  vehicle: Vehicle | null,
  measuredVoltage: number | null,
): PhaseChoice | null {
  if (charger.phaseSwitching === null) return null;
  // Phases that carry a current now say nothing of those that it can be switched to.
  const three = limit(asked, charger, vehicle, measuredVoltage);
  const oneOnly = { ...charger, phases: 1, takesWatts: false };
  const one = limit(asked, oneOnly, vehicle, measuredVoltage);
  const why: Limit = { by: "one phase", asked: inWords(asked), allowed: phasesInWords(1) };
  const on = { 1: { ...one, limits: [why, ...one.limits] }, 3: three };
  const strictly = { belowMinimum: "pause" } as const;
  if (charges(limit(asked, { ...charger, ...strictly }, vehicle, measuredVoltage))) return { on, best: 3 };
  const fits = charges(limit(asked, { ...oneOnly, ...strictly }, vehicle, measuredVoltage));
  return { on, best: fits ? 1 : null };
}

const charges = ({ desired }: Limited): boolean => desired.kind !== "pause";
