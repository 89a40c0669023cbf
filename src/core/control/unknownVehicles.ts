import { legible } from "../legible.ts";
import type { Vehicle } from "../site/vehicle.ts";
import type { VehicleId } from "../units.ts";
import type { Targeting } from "./targeting.ts";

/** A vehicle target that is not in our configuration. */
export type UnknownVehicle = {
  readonly id: string;
  /** Our vehicle whose id differs in one character or in case. Null: there is none. */
  readonly didYouMean: VehicleId | null;
};

/** Each name is compared with every vehicle of the site. At a larger site that would delay the webhook. */
const MOST_COMPARED = 2_000;
/** A longer id was hardly typed by a person. */
const LONGEST_COMPARED = 64;

/** The first few vehicles that are not ours, each with the one of ours that was probably meant. */
export const unknownVehicles = (
  { unknownIds }: Targeting,
  vehicles: ReadonlyMap<VehicleId, Vehicle>,
): readonly UnknownVehicle[] => unknownIds.map((id) => ({ id, didYouMean: nearVehicle(id, vehicles) }));

/** `2 of its vehicles are not ours: veh-241 (did you mean veh-214?), veh-9`. */
export function unknownVehiclesMessage(
  aim: Targeting,
  vehicles: ReadonlyMap<VehicleId, Vehicle>,
): string | null {
  const count = aim.foreignVehicles;
  if (count === 0) return null;
  const named = unknownVehicles(aim, vehicles).map(({ id, didYouMean }) =>
    didYouMean === null ? legible(id) : `${legible(id)} (did you mean ${didYouMean}?)`,
  );
  const rest = count - named.length;
  const list = rest > 0 ? `${named.join(", ")} and ${rest} more` : named.join(", ");
  return `${count} of its vehicles ${count === 1 ? "is" : "are"} not ours: ${list}`;
}

function nearVehicle(id: string, vehicles: ReadonlyMap<VehicleId, Vehicle>): VehicleId | null {
  if (vehicles.size > MOST_COMPARED || id.length > LONGEST_COMPARED) return null;
  const wanted = id.toLowerCase();
  let near: VehicleId | null = null;
  for (const ours of vehicles.keys()) {
    const candidate = ours.toLowerCase();
    if (candidate === wanted) return ours;
    if (near === null && isNear(wanted, candidate)) near = ours;
  }
  return near;
}

/** Whether at most one insertion, removal, replacement or swap of neighbours turns `a` into `b`. */
function isNear(a: string, b: string): boolean {
  const longest = Math.max(a.length, b.length);
  if (longest - Math.min(a.length, b.length) > 1) return false;
  let start = 0;
  while (start < longest && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < longest - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  if (start + end >= longest - 1) return true;
  const isSwap = a[start] === b[start + 1] && a[start + 1] === b[start];
  return a.length === b.length && start + end === longest - 2 && isSwap;
}
