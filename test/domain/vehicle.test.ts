import { expect, test } from "vitest";

import { vehicleNamed, vehiclesNamed } from "../../src/domain/vehicle.ts";
import { vehicleId } from "../../src/domain/units.ts";

const vehicle = (id: string, name: string) => ({ id: vehicleId(id), name });
const BUSES = [
  vehicle("v1", "Bus 214"),
  vehicle("v2", "Loaner"),
  vehicle("v3", "loaner"),
  vehicle("Bus 214", "Bus 9"),
];

test("a vehicle is found by its id first, and by its name in any case otherwise", () => {
  expect(vehicleNamed(BUSES, "v1")?.id).toBe("v1");
  expect(vehicleNamed(BUSES, " bus 9 ")?.id).toBe("Bus 214");
  expect(vehicleNamed(BUSES, "Bus 214")?.id).toBe("Bus 214");
  expect(vehicleNamed(BUSES, "BUS 214")?.id).toBe("v1");
  expect(vehicleNamed(BUSES, "V1")).toBeNull();
});

test("a name that two vehicles share names neither of them", () => {
  expect(vehicleNamed(BUSES, "loaner")).toBeNull();
  expect(vehiclesNamed(BUSES, "loaner").map(({ id }) => id)).toEqual(["v2", "v3"]);
});
