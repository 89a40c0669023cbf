import { expect, test } from "vitest";

import { vehicleId } from "../../../src/domain/units.ts";
import { configured } from "../../support/aConfiguration.ts";

const charger = { id: "bay-01", current: { max: 32 } };
const vehicle = (fields: object) => ({ chargers: [charger], vehicles: [{ id: "veh-214", ...fields }] });

test("a weekly departure has its days, its time of day and its need", () => {
  const { departures } = configured(
    vehicle({
      battery: { capacity: 280.5 },
      departures: [
        { days: ["mon", "sun"], at: "5:40", soc: 80 },
        { at: "14:00", energy: 18.5 },
      ],
    }),
  );
  expect(departures.get(vehicleId("veh-214"))).toEqual({
    batteryWh: 280_500,
    weekly: [
      { days: [1, 7], hour: 5, minute: 40, need: { kind: "soc", percent: 80 } },
      { days: [1, 2, 3, 4, 5, 6, 7], hour: 14, minute: 0, need: { kind: "energy", wh: 18_500 } },
    ],
  });
  expect(configured(vehicle({})).departures.size).toBe(0);
});

test.each([
  [{ at: "25:00", soc: 80 }],
  [{ at: "05:40" }],
  [{ at: "05:40", soc: 80, energy: 18 }],
  [{ at: "05:40", soc: 101 }],
  [{ at: "05:40", energy: 0 }],
  [{ days: [], at: "05:40", soc: 80 }],
  [{ days: ["monday"], at: "05:40", soc: 80 }],
])("%j is refused", (departure) => {
  expect(() => configured(vehicle({ departures: [departure] }))).toThrow();
});

test("the guard is off unless it is switched on", () => {
  expect(configured({}).departureGuard).toBeNull();
  expect(configured({ departureGuard: { most: 3 } }).departureGuard).toBeNull();
  expect(configured({ departureGuard: { on: true } }).departureGuard).toEqual({ most: 5 });
});
