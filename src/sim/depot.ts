import type { Charger } from "../core/site/charger.ts";
import type { Vehicle } from "../core/site/vehicle.ts";
import { amperes, type Amperes, type Watts } from "../core/units.ts";
import { boundTo } from "../chargers/profile/equip.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import type { PluggedVehicle } from "./charger.ts";
import type { ChargerSetup } from "./chargers.ts";
import { MAKES } from "./makes.ts";
import type { MadeSetup } from "./mixedFloor.ts";

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

/** The outlet of a configuration, and what is plugged into it; `index` makes each a little different. */
function outletOf(charger: Charger, vehicles: readonly Vehicle[], index: number): ChargerSetup {
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
}

/** The depot of a configuration, simulated: every native charger of the site's own broker, its bound vehicle plugged in. */
export const depotOf = (
  chargers: readonly Charger[],
  vehicles: readonly Vehicle[],
): readonly ChargerSetup[] =>
  chargers
    .filter((charger) => charger.profile === "native" && charger.broker === "")
    .map((charger, index) => outletOf(charger, vehicles, index));

/** The chargers of other makes at the site's own broker, as far as they can be simulated. */
export const mixedDepotOf = (
  chargers: readonly Charger[],
  vehicles: readonly Vehicle[],
  profiles: ReadonlyMap<string, Profile>,
): readonly MadeSetup[] =>
  chargers.flatMap((charger, index) => {
    const profile = profiles.get(charger.profile);
    if (profile === undefined || !MAKES.has(charger.profile) || charger.broker !== "") return [];
    const binding = boundTo(charger, profile);
    if (!binding.ok) return [];
    const { values } = binding.bound;
    return [{ ...outletOf(charger, vehicles, index), profile: profile.profile, params: values, faults: {} }];
  });
