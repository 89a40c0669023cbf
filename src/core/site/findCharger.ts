import type { ChargerId, VehicleId } from "../units.ts";
import type { Vehicle } from "./vehicle.ts";

/** The charger that a person means, or why none is. */
export type FoundCharger =
  | { readonly ok: true; readonly charger: ChargerId }
  | { readonly ok: false; readonly reason: string };

/**
 * Finds a charger by its own id, or by the vehicle on it: VTN id first, then the name, in any case. A name that several
 * vehicles bear is refused with their ids.
 */
export function findCharger(
  target: string,
  chargers: Iterable<ChargerId>,
  vehicles: Iterable<Vehicle>,
  chargerOf: (vehicle: VehicleId) => ChargerId | null,
): FoundCharger {
  for (const charger of chargers) if (charger === target) return { ok: true, charger };
  const all = [...vehicles];
  const wanted = target.trim().toLowerCase();
  const byId = all.filter(({ id }) => id === target);
  const found = byId.length > 0 ? byId : all.filter(({ name }) => name.toLowerCase() === wanted);
  const [vehicle, second] = found;
  if (vehicle === undefined) return { ok: false, reason: `there is no charger and no vehicle ${target}` };
  if (second !== undefined)
    return {
      ok: false,
      reason: `several vehicles are called ${target}: name one of ${found.map(({ id }) => id).join(", ")}`,
    };
  const charger = chargerOf(vehicle.id);
  return charger === null
    ? { ok: false, reason: `${vehicle.name} (${vehicle.id}) is at no charger` }
    : { ok: true, charger };
}
