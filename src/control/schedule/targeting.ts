import type { CoordinationEvent, Target } from "../../domain/event.ts";
import { type VehicleId, vehicleId } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import { listed, sanitizeForLog } from "../../platform/text.ts";
import type { ControlSettings } from "../ports.ts";

/** Vehicles of ours that an event targets. */
export interface Targeting {
  readonly vehicles: ReadonlySet<VehicleId>;
  /** Number of distinct vehicle targets that are not in our configuration. */
  readonly foreignVehicles: number;
  /** The first few of them. */
  readonly unknownIds: readonly string[];
  /** Target types that do not mean vehicles here. */
  readonly foreignTypes: readonly string[];
  /** No targets at all: `control.untargeted` decides. */
  readonly untargeted: boolean;
}

interface TargetingContext {
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly settings: Pick<ControlSettings, "untargeted" | "vehicleTargetTypes">;
}

/** Cap on kept ids of vehicles that are not ours. A fleet's list may name thousands. */
const MOST_UNKNOWN = 5;

/** Contains each vehicle once, however often the event names it. */
export function targeting(event: CoordinationEvent, { vehicles, settings }: TargetingContext): Targeting {
  if (event.targets.length === 0) {
    const all = settings.untargeted === "all" ? new Set(vehicles.keys()) : new Set<VehicleId>();
    return { vehicles: all, foreignVehicles: 0, unknownIds: [], foreignTypes: [], untargeted: true };
  }
  const ours = new Set<VehicleId>();
  const foreign = new Set<string>();
  const foreignTypes = new Set<string>();
  for (const target of event.targets) {
    if (!meansVehicles(target, settings)) {
      foreignTypes.add(target.type);
      continue;
    }
    for (const value of target.values) {
      const id = vehicleId(value);
      if (vehicles.has(id)) ours.add(id);
      else foreign.add(value);
    }
  }
  return {
    vehicles: ours,
    foreignVehicles: foreign.size,
    unknownIds: [...foreign.values().take(MOST_UNKNOWN)],
    foreignTypes: [...foreignTypes],
    untargeted: false,
  };
}

/** True: the event targets this vehicle. Does not resolve the other names. */
export const aimsAt = (
  { targets }: CoordinationEvent,
  vehicle: VehicleId,
  { settings }: TargetingContext,
): boolean =>
  targets.length === 0 ? settings.untargeted === "all" : namesIn(targets, settings).has(vehicle);

interface Names {
  readonly types: readonly string[];
  readonly names: ReadonlySet<string>;
}

/** Name sets by target list. `aimsAt` runs for each vehicle of an event and shares one set. */
const gathered = new WeakMap<readonly Target[], Names>();

function namesIn(targets: readonly Target[], settings: TargetingContext["settings"]): ReadonlySet<string> {
  const known = gathered.get(targets);
  if (known !== undefined && known.types === settings.vehicleTargetTypes) return known.names;
  const names = new Set<string>();
  for (const target of targets) {
    if (!meansVehicles(target, settings)) continue;
    for (const value of target.values) names.add(value);
  }
  gathered.set(targets, { types: settings.vehicleTargetTypes, names });
  return names;
}

const meansVehicles = ({ type }: Target, { vehicleTargetTypes }: TargetingContext["settings"]): boolean =>
  vehicleTargetTypes.includes(type.toLowerCase());

/** A vehicle target that is not in our configuration. */
export type UnknownVehicle = {
  readonly id: string;
  /** Our vehicle whose id differs in one character or in case. Null: there is none. */
  readonly didYouMean: VehicleId | null;
};

/**
 * Each unknown name is compared with every vehicle of the site. At a larger site that would delay the
 * webhook.
 */
const MOST_COMPARED = 2_000;
/** A longer id was not typed by a person. */
const LONGEST_COMPARED = 64;

/** The first few unknown vehicles, each with the vehicle of ours that was probably meant. */
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
    didYouMean === null ? sanitizeForLog(id) : `${sanitizeForLog(id)} (did you mean ${didYouMean}?)`,
  );
  return `${count} of its vehicles ${count === 1 ? "is" : "are"} not ours: ${listed(named, MOST_UNKNOWN, count)}`;
}

/** The vehicle that was probably meant. Null: none is near. */
export function nearVehicle(id: string, vehicles: ReadonlyMap<VehicleId, Vehicle>): VehicleId | null {
  if (vehicles.size > MOST_COMPARED || id.length > LONGEST_COMPARED) return null;
  const wanted = id.toLowerCase();
  let closest: VehicleId | null = null;
  for (const ours of vehicles.keys()) {
    const candidate = ours.toLowerCase();
    if (candidate === wanted) return ours;
    if (closest === null && isNear(wanted, candidate)) closest = ours;
  }
  return closest;
}

/** True: at most one insertion, removal, replacement or swap of neighbours turns `a` into `b`. */
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
