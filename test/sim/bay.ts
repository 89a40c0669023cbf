import type { Desired } from "../../src/domain/setpoint.ts";
import { amperes, chargerId, instant } from "../../src/domain/units.ts";
import {
  switchedOn,
  type ChargerTraits,
  type ReceivedSet,
  type PluggedVehicle,
  type SimulatedCharger,
} from "../../src/sim/charger.ts";
import { accept } from "../../src/sim/charger.ts";

const TRAITS: ChargerTraits = {
  id: chargerId("bay-01"),
  phases: 3,
  voltage: 230,
  minCurrent: amperes(6),
  maxCurrent: amperes(32),
  ownDefault: amperes(32),
  ramp: 8,
};
export const BUS: PluggedVehicle = {
  id: "bus-201",
  identity: null,
  maxCurrent: amperes(24),
  capacityWh: 300_000,
  soc: 40,
};
export const at = (second: number) => instant(1_800_000_000_000 + second * 1000);
export const current = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });
export const order = (seq: number, desired: Desired, expires = at(1000)): ReceivedSet => ({
  epoch: 7,
  seq,
  desired,
  expires,
});

/** The charger after an order that it accepts. Throws if it is rejected. */
export function ordered(charger: SimulatedCharger, what: ReceivedSet, when = charger.at): SimulatedCharger {
  const answer = accept(charger, what, when);
  if (!answer.accepted) throw new Error(answer.reason);
  return answer.charger;
}

export const aCharger = (vehicle: PluggedVehicle | null = BUS) => switchedOn(TRAITS, vehicle, at(0));
