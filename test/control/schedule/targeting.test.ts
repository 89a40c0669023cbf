import { expect, test } from "vitest";
import { aimsAt, targeting } from "../../../src/control/schedule/targeting.ts";
import { vehicleId } from "../../../src/domain/units.ts";
import { aContext } from "../../support/aCharger.ts";
import { anEvent, targetsOf } from "../../support/anEvent.ts";

const ours = ["veh-1", "veh-2"];

test("F56: each vehicle is targeted once, however often it is named", () => {
  const targets = [...targetsOf("veh-1", "veh-1"), ...targetsOf("veh-1", "veh-2")];
  expect(targeting(anEvent({ targets }), aContext(ours)).vehicles).toEqual(new Set(ours));
});

test("target types mean vehicles in any case, and as the site spells them", () => {
  const targets = [{ type: "VEHICLE_ID", values: ["veh-1"] }];
  const context = aContext(ours, { vehicleTargetTypes: ["vehicle", "vehicle_id"] });
  expect(targeting(anEvent({ targets }), context).vehicles).toEqual(new Set(["veh-1"]));
});

test("F56: vehicles that are not ours and types that mean no vehicles are counted, not an error", () => {
  const targets = [
    ...targetsOf("veh-1", "foreign", "foreign", "other"),
    { type: "group", values: ["veh-2"] },
    { type: "group", values: [] },
  ];
  expect(targeting(anEvent({ targets }), aContext(ours))).toEqual({
    vehicles: new Set([vehicleId("veh-1")]),
    foreignVehicles: 2,
    unknownIds: ["foreign", "other"],
    foreignTypes: ["group"],
    untargeted: false,
  });
});

test("an event without targets is for no vehicle, or for all if the site configures that", () => {
  const event = anEvent({ targets: [] });
  expect(targeting(event, aContext(ours))).toMatchObject({ vehicles: new Set(), untargeted: true });
  expect(targeting(event, aContext(ours, { untargeted: "all" })).vehicles).toEqual(new Set(ours));
});

test("F56: a hundred thousand targets are resolved at once", () => {
  const targets = targetsOf(...Array.from({ length: 100_000 }, (_, n) => `foreign-${n % 50_000}`));
  const aim = targeting(anEvent({ targets }), aContext(ours));
  expect([aim.foreignVehicles, aim.unknownIds.length]).toEqual([50_000, 5]);
});

test("the check of a single vehicle agrees with the full list of targets", () => {
  for (const targets of [targetsOf("veh-1"), [{ type: "group", values: ["veh-1"] }], [], targetsOf("other")])
    for (const untargeted of ["all", "ignore"] as const) {
      const [event, context] = [anEvent({ targets }), aContext(ours, { untargeted })];
      for (const vehicle of ours.map(vehicleId))
        expect(aimsAt(event, vehicle, context)).toBe(targeting(event, context).vehicles.has(vehicle));
    }
});
