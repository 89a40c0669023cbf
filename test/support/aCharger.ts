import type { ExpandContext } from "../../src/control/schedule/expand.ts";
import type { ControlSettings } from "../../src/control/ports.ts";
import type { Charger } from "../../src/domain/charger.ts";
import type { Vehicle } from "../../src/domain/vehicle.ts";
import { amperes, chargerId, millis, minutes, seconds, vehicleId } from "../../src/domain/units.ts";

/** bay-01: 6 to 32 A on three phases of 230 V. */
export const aCharger = ({ id, ...changes }: Changed<Charger> = {}): Charger => ({
  profile: "native",
  params: {},
  broker: "",
  minCurrent: amperes(6),
  maxCurrent: amperes(32),
  minPower: null,
  maxPower: null,
  maxDischarge: null,
  phases: 3,
  voltage: 230,
  belowMinimum: "pause",
  atEnd: { kind: "release" },
  takesWatts: true,
  currentStep: amperes(0.1),
  minInterval: millis(0),
  minOff: millis(0),
  minOn: millis(0),
  phaseSwitching: null,
  writesPerHour: null,
  refresh: seconds(60),
  refreshesRelease: false,
  whenSilent: { kind: "lease" },
  deadband: amperes(0),
  ...changes,
  id: chargerId(id ?? "bay-01"),
});

/** veh-214, Bus 214, fixed to bay-01. */
export const aVehicle = ({ id, ...changes }: Changed<Vehicle> = {}): Vehicle => ({
  name: "Bus 214",
  charger: chargerId("bay-01"),
  maxCurrent: null,
  maxPower: null,
  phases: null,
  identities: [],
  ...changes,
  id: vehicleId(id ?? "veh-214"),
});

type Changed<T extends { readonly id: string }> = Partial<Omit<T, "id">> & { readonly id?: string };

/** The defaults of DESIGN 5. */
export const settingsWith = (changes: Partial<ControlSettings> = {}): ControlSettings => ({
  mode: "drive",
  onObserve: "release",
  powerUnit: "kW",
  priority: "lower",
  priorityZero: "highest",
  ties: "newest",
  randomizedEnd: "shift",
  untargeted: "ignore",
  vehicleTargetTypes: ["vehicle"],
  refresh: seconds(60),
  silentAfter: minutes(5),
  verdict: { ramp: seconds(30), amperes: 0.5, percent: 5 },
  releaseRamp: null,
  ...changes,
});

export const SITE_KEY = new Uint8Array(32).fill(7);

/** A site with these vehicles, veh-214 unless told. */
export const aContext = (
  vehicles: readonly string[] = ["veh-214"],
  settings: Partial<ControlSettings> = {},
): ExpandContext => ({
  siteKey: SITE_KEY,
  vehicles: new Map(vehicles.map((id) => [vehicleId(id), aVehicle({ id, charger: null })])),
  settings: settingsWith(settings),
});

/** Vehicles by their id. */
export const byId = (vehicles: readonly Vehicle[]): ReadonlyMap<Vehicle["id"], Vehicle> =>
  new Map(vehicles.map((vehicle) => [vehicle.id, vehicle]));
