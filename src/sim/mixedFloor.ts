import type { Logger } from "pino";

import { instanceSettings } from "../chargers/profile/level.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { type Charger, isNative } from "../domain/charger.ts";
import { amperes, type Amperes, type Watts, type Instant, millis } from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import { type PluggedVehicle, switchedOn } from "./charger.ts";
import type { ChargerSetup } from "./chargers.ts";
import { evcc } from "./models/evcc.ts";
import { everestV1, everestLegacy } from "./models/everest.ts";
import { goE } from "./models/goE.ts";
import type { Params, Model } from "./models/model.ts";
import { ocpp } from "./models/ocpp.ts";
import { openEvse } from "./models/openEvse.ts";
import { openWb } from "./models/openWb.ts";
import { smartEvse } from "./models/smartEvse.ts";
import { victron } from "./models/victron.ts";
import { warp } from "./models/warp.ts";
import { Floor, MqttModel } from "./mqttModel.ts";
import type { ModelFaults } from "./simulatedModel.ts";

/** Battery of a bus: large enough to charge for hours. */
const BATTERY = { capacityWh: 300_000, soc: 40 };

/** A per second: the drawn current settles within about three seconds. */
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
    // A vehicle with an identity is recognised by it. Only the others need a charger that reports VTN ids.
    id: identity === null ? vehicle.id : null,
    identity,
    maxCurrent: inAmperes(charger, vehicle.maxCurrent, vehicle.maxPower) ?? amperes(32),
  };
}

/** Simulated charger for a configured one, with its vehicle. `index` varies the state of charge. */
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
    // Different values: a page of equal numbers looks broken.
    vehicle: pluggedInto(charger, vehicles, BATTERY.soc + ((index * 7) % 30)),
  };
}

/** Simulated chargers for the native chargers at the site's own broker, each with its bound vehicle plugged in. */
export const depotOf = (
  chargers: readonly Charger[],
  vehicles: readonly Vehicle[],
): readonly ChargerSetup[] =>
  chargers
    .filter((charger) => isNative(charger) && charger.broker === "")
    .map((charger, index) => outletOf(charger, vehicles, index));

/** Simulated chargers for all chargers at the site's own broker whose profile has a model. */
export const mixedDepotOf = (
  chargers: readonly Charger[],
  vehicles: readonly Vehicle[],
  profiles: ReadonlyMap<string, Profile>,
): readonly ModelSetup[] =>
  chargers.flatMap((charger, index) => {
    const profile = profiles.get(charger.profile);
    if (profile === undefined || !MODELS.has(charger.profile) || charger.broker !== "") return [];
    const binding = instanceSettings(charger, profile);
    if (!binding.ok) return [];
    const { values } = binding.instance;
    return [{ ...outletOf(charger, vehicles, index), profile: profile.profile, params: values, faults: {} }];
  });

/** A charger that is driven by a profile, the vehicle at its plug, and its faults. */
export interface ModelSetup extends Omit<ChargerSetup, "faults"> {
  /** Name of its profile, and that profile's parameters. */
  readonly profile: string;
  readonly params: Params;
  readonly faults?: ModelFaults;
}

export interface MixedFloorOptions {
  /** Broker, e.g. mqtt://127.0.0.1:1883. */
  readonly url: string;
  readonly chargers: readonly ModelSetup[];
  readonly now: () => Instant;
  readonly log: Logger;
}

const RECONNECT = millis(1000);

/** Chargers of several models on one broker. Each is an MQTT client of its own. */
export class MixedFloor extends Floor<MqttModel> {
  /** Starts connecting at once. Throws for a profile that cannot be simulated. */
  static start({ chargers, ...options }: MixedFloorOptions): MixedFloor {
    const models = chargers.map(({ profile, params, traits, vehicle, faults = {} }) => {
      const createModel = MODELS.get(profile);
      if (createModel === undefined) throw new Error(`${profile} cannot be simulated`);
      const clientId = `sim-${profile}-${traits.id}`;
      const charger = switchedOn(traits, vehicle, options.now());
      return new MqttModel(createModel(params), charger, faults, {
        ...options,
        clientId,
        reconnectAfter: RECONNECT,
      });
    });
    return new MixedFloor(models);
  }
}

/** Charger models by the name of their profile. The parameters are those of the profile. */
export const MODELS: ReadonlyMap<string, (params: Params) => Model> = new Map([
  ["go-e-v2", goE],
  ["openevse-override", openEvse],
  ["warp", warp],
  ["openwb-secondary", openWb],
  ["evcc", evcc],
  ["everest-api-v1", everestV1],
  ["everest-api-legacy", everestLegacy],
  ["smartevse", smartEvse],
  ["victron-evcs", victron],
  ["ocpp2mqtt", ocpp],
]);
