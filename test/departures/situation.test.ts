import { expect, test } from "vitest";

import type { ControlState } from "../../src/control/state.ts";
import { handleChargerMessage } from "../../src/control/observe/chargerMessages.ts";
import { PlugIns } from "../../src/departures/plugIns.ts";
import { drawNow, situationOf } from "../../src/departures/situation.ts";
import type { Need } from "../../src/domain/departure.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import { chargerId, seconds, vehicleId, watts } from "../../src/domain/units.ts";
import { aCharger, aVehicle } from "../support/aCharger.ts";
import { at } from "../support/anEvent.ts";
import { aPicture } from "../support/aPicture.ts";

const BAY = chargerId("bay-01");
const NOW = at("05:30");
const ENERGY: Need = { kind: "energy", wh: 40_000 };
const SOC: Need = { kind: "soc", percent: 80 };

/** A vehicle at bay-01 whose charger reports this. */
function reporting(telemetry: Omit<Telemetry, "at">, since = NOW) {
  const depot = aPicture();
  const plugIns = new PlugIns();
  const note = (reported: Omit<Telemetry, "at">, when = NOW): void => {
    const message = { kind: "telemetry", charger: BAY, telemetry: { at: when, ...reported } } as const;
    handleChargerMessage(depot, message, when);
    plugIns.note(BAY, {
      vehicle: aVehicle().id,
      namedBy: null,
      telemetry: message.telemetry,
      at: when,
      unpluggedAt: null,
    });
  };
  note(telemetry, since);
  return { depot, plugIns, note };
}

const missingOf = (depot: ControlState, plugIns: PlugIns, need: Need, vehicle = aVehicle()) =>
  situationOf(depot, plugIns, vehicle, { need }, 200_000).missing;

test("a vehicle at no charger is not plugged in, and its own limit is the most that it can draw", () => {
  const nowhere = { charger: null };
  const [limited, free] = [
    aVehicle({ id: "v2", ...nowhere, maxPower: watts(50_000) }),
    aVehicle({ id: "v3", ...nowhere }),
  ];
  const depot = aPicture({ vehicles: [limited, free] });
  const of = (vehicle: typeof limited) => situationOf(depot, new PlugIns(), vehicle, { need: SOC }, null);
  expect(of(limited)).toMatchObject({
    charger: null,
    mostW: 50_000,
    missing: ["the vehicle is not plugged in", "the capacity of the battery"],
  });
  expect(of(free)).toMatchObject({ mostW: Infinity });
});

test("a vehicle whose fixed charger is not in the configuration is at no charger", () => {
  const lost = aVehicle({ charger: chargerId("bay-99") });
  const depot = aPicture({ vehicles: [lost] });
  expect(missingOf(depot, new PlugIns(), ENERGY, lost)).toEqual(["the vehicle is not plugged in"]);
});

test("a charger that reports no state leaves the session unknown", () => {
  const { depot, plugIns } = reporting({ powerW: 5_000, soc: 50, sessionWh: 100 });
  expect(missingOf(depot, plugIns, ENERGY)).toEqual(["the energy since the plug-in"]);
  expect(missingOf(depot, plugIns, SOC)).toEqual(["the state of charge"]);
});

test("a charger without a state of charge is named as such, although it reports the energy", () => {
  const { depot, plugIns } = reporting({ state: "charging", sessionWh: 100 });
  expect(missingOf(depot, plugIns, SOC)).toEqual(["the state of charge"]);
  expect(missingOf(depot, plugIns, ENERGY)).toEqual([]);
});

test("a phase without a reported voltage adds no power", () => {
  const { depot, plugIns } = reporting({
    state: "charging",
    sessionWh: 0,
    currentsA: [10, 10, 10],
    voltagesV: [230],
  });
  expect(situationOf(depot, plugIns, aVehicle(), { need: ENERGY }, null).powerW).toBe(2_300);
});

test("the power of a vehicle counts from the moment at which the charger could follow, and never by a clock ahead", () => {
  const ramp = seconds(30);
  const draws = (telemetry: Omit<Telemetry, "at">, allowedW: number | undefined, now = NOW) => {
    const { depot, plugIns } = reporting({ state: "charging", ...telemetry }, at("05:00"));
    handleChargerMessage(
      depot,
      { kind: "telemetry", charger: BAY, telemetry: { at: NOW, state: "charging", ...telemetry } },
      NOW,
    );
    return drawNow(depot, plugIns, aCharger(), { allowedW, ramp, now });
  };
  expect(draws({ powerW: 3_000 }, 11_000)).toBe(3_000);
  expect(draws({ powerW: 11_000 }, 11_000)).toBeUndefined();
  expect(draws({ powerW: 3_000 }, 0)).toBeUndefined();
  expect(draws({ powerW: 3_000 }, undefined)).toBeUndefined();
  expect(draws({ powerW: 3_000 }, 11_000, at("05:29"))).toBeUndefined();
  expect(draws({}, 11_000)).toBeUndefined();
  expect(
    drawNow(aPicture(), new PlugIns(), aCharger(), { allowedW: 11_000, ramp, now: NOW }),
  ).toBeUndefined();
});

test("another vehicle's charger does not count", () => {
  const { depot, plugIns } = reporting({ state: "charging", sessionWh: 1 });
  const other = aVehicle({ id: "v2", charger: null });
  expect(situationOf(depot, plugIns, other, { need: ENERGY }, null).charger).toBeNull();
  expect(depot.occupancy.where(vehicleId("veh-214"))).toBe(BAY);
});
