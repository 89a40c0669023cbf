import type { ChargerState, Telemetry } from "../core/site/telemetry.ts";
import { limitOf, type SimulatedCharger } from "./charger.ts";

/** What the charger would say of itself (DESIGN 6.2). */
export function stateOf(charger: SimulatedCharger): ChargerState {
  if (!charger.vehicle) return "unplugged";
  if (charger.vehicle.soc >= 100) return "finished";
  if (charger.drawn > 0) return "charging";
  return limitOf(charger) === 0 ? "paused" : "connected";
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

/** The telemetry message of the charger as it stands. */
export function telemetryOf(charger: SimulatedCharger): Telemetry {
  const { traits, vehicle, drawn } = charger;
  const phases = Array.from({ length: traits.phases });
  return {
    at: charger.at,
    state: stateOf(charger),
    vehicle: vehicle?.id ?? null,
    identity: vehicle?.identity ?? null,
    powerW: Math.round(drawn * traits.phases * traits.voltage),
    currentsA: phases.map(() => round(drawn, 1)),
    voltagesV: phases.map(() => traits.voltage),
    energyWh: round(charger.energyWh, 1),
    sessionWh: round(charger.sessionWh, 1),
    ...(vehicle && { soc: round(vehicle.soc, 1) }),
    limitA: limitOf(charger),
  };
}
