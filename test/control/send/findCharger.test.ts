import { expect, test } from "vitest";

import { findCharger } from "../../../src/control/send/release.ts";
import { chargerId, vehicleId } from "../../../src/domain/units.ts";
import { aVehicle } from "../../support/aCharger.ts";

const [bay1, bay2] = [chargerId("bay-01"), chargerId("bay-02")];
const vehicles = [
  aVehicle({ id: "veh-214", name: "Bus 214" }),
  aVehicle({ id: "veh-215", name: "Bus 215" }),
  aVehicle({ id: "veh-7", name: "Van" }),
  aVehicle({ id: "veh-8", name: "van" }),
];
const find = (target: string) =>
  findCharger(target, [bay1, bay2], vehicles, (id) => (id === vehicleId("veh-214") ? bay2 : null));

test.each([
  ["bay-01", bay1],
  ["veh-214", bay2],
  ["Bus 214", bay2],
  [" bus 214 ", bay2],
])("%j means a charger", (target, charger) => {
  expect(find(target)).toEqual({ ok: true, charger });
});

test.each([
  ["bay-99", "there is no charger and no vehicle bay-99"],
  ["Bus 215", "Bus 215 (veh-215) is at no charger"],
  ["Van", "several vehicles are called Van: name one of veh-7, veh-8"],
])("%j means none, and why", (target, reason) => {
  expect(find(target)).toEqual({ ok: false, reason });
});
