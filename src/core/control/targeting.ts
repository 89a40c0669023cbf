import type { Vehicle } from "../site/vehicle.ts";
import type { VehicleId } from "../units.ts";
import { vehicleId } from "../units.ts";
import type { CoordinationEvent, Target } from "./event.ts";
import type { ControlSettings } from "./settings.ts";

/** Whom an event is aimed at, as far as it is ours. */
export interface Targeting {
  readonly vehicles: ReadonlySet<VehicleId>;
  /** Distinct vehicle targets that are not in our configuration. */
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

/** Ids of vehicles that are not ours are kept up to this number; a fleet's list may name thousands. */
const MOST_UNKNOWN = 5;

/** Each vehicle once, however often it is named (DESIGN 5.3). */
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

/** Whether one vehicle of ours is among them, without going through what every other name means. */
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

/** Asked once for each vehicle of an event: the names are gathered once for all of them. */
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
