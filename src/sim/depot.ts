import type { Charger } from "../core/site/charger.ts";
import type { Vehicle } from "../core/site/vehicle.ts";
import { amperes, type Amperes, type Watts } from "../core/units.ts";
import type { PluggedVehicle } from "./charger.ts";
import type { ChargerSetup } from "./chargers.ts";

/** A bus, not full for hours. */
const BATTERY = { capacityWh: 300_000, soc: 40 };

/** Drawn current follows in three seconds or so. */
const RAMP = 8;

const inAmperes = (charger: Charger, current: Amperes | null, power: Watts | null): Amperes | null =>
  current ?? (power === null ? null : amperes(power / charger.phases / charger.voltage));

function pluggedInto(charger: Charger, vehicles: readonly Vehicle[], soc: number): PluggedVehicle | null {
  const vehicle = vehicles.find((candidate) => candidate.charger === charger.id);
  if (!vehicle) return null;
  const identity = vehicle.identities[0] ?? null;
  return {
    ...BATTERY,
    soc,
    // One that has an identity is known by it; only the others need a charger that knows VTN ids.
    id: identity === null ? vehicle.id : null,
    identity,
    maxCurrent: inAmperes(charger, vehicle.maxCurrent, vehicle.maxPower) ?? amperes(32),
  };
}

/** The depot of a configuration, simulated: every native charger of the site's own broker, its bound vehicle plugged in. */
export function depotOf(chargers: readonly Charger[], vehicles: readonly Vehicle[]): readonly ChargerSetup[] {
  return chargers
    .filter((charger) => charger.profile === "native" && charger.broker === "")
    .map((charger, index) => {
      const maxCurrent = inAmperes(charger, charger.maxCurrent, charger.maxPower) ?? amperes(32);
      return {
        traits: {
          id: charger.id,
          phases: charger.phases,
          voltage: charger.voltage,
          minCurrent: inAmperes(charger, charger.minCurrent, charger.minPower) ?? amperes(6),
          maxCurrent,
          ownDefault: maxCurrent,
          ramp: RAMP,
        },
        // Not all the same: a page full of equal numbers looks broken.
        vehicle: pluggedInto(charger, vehicles, BATTERY.soc + ((index * 7) % 30)),
      };
    });
}
