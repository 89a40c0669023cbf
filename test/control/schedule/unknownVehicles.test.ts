import { expect, test } from "vitest";

import {
  targeting,
  unknownVehicles,
  unknownVehiclesMessage,
} from "../../../src/control/schedule/targeting.ts";
import { aContext } from "../../support/aCharger.ts";
import { anEvent, targetsOf } from "../../support/anEvent.ts";

const DEPOT = ["veh-101", "veh-214", "Bus 7"];

const suggested = (id: string, ours: readonly string[] = DEPOT): string | null | undefined => {
  const { vehicles, ...rest } = aContext(ours);
  const aim = targeting(anEvent({ targets: targetsOf(id) }), { vehicles, ...rest });
  return unknownVehicles(aim, vehicles)[0]?.didYouMean;
};

const message = (ids: readonly string[], ours: readonly string[] = DEPOT): string | null => {
  const context = aContext(ours);
  return unknownVehiclesMessage(
    targeting(anEvent({ targets: targetsOf(...ids) }), context),
    context.vehicles,
  );
};

test("a single character that is wrong, missing, too many or swapped, or another case, suggests a known vehicle", () => {
  for (const id of ["veh-241", "veh-21", "veh-2144", "veh-219", "eveh-214", "VEH_214", "veh214", "evh-214"])
    expect(suggested(id), id).toBe("veh-214");
  expect(suggested("BUS 7")).toBe("Bus 7");
});

test("an id that differs more suggests nothing", () => {
  for (const id of ["veh-999", "truck-9", "412-hev", "veh-2414x", "veh-412", "eh-14", ""])
    expect(suggested(id), id).toBeNull();
});

test("an id in another case is preferred over one that differs in a character", () => {
  expect(suggested("VEH-2", ["veh-1", "veh-2"])).toBe("veh-2");
});

test("a large site, or a very long id, is not searched", () => {
  const many = Array.from({ length: 2_001 }, (_, index) => `veh-${index}`);
  expect(suggested("VEH-7", many)).toBeNull();
  expect(suggested("VEH-7", many.slice(1))).toBe("veh-7");
  const long = "v".repeat(65);
  expect(suggested(long.toUpperCase(), [long])).toBeNull();
});

test("up to five unknown vehicles are named, the rest are counted", () => {
  expect(message(["veh-214"])).toBeNull();
  expect(message(["veh-241"])).toBe("1 of its vehicles is not ours: veh-241 (did you mean veh-214?)");
  expect(message(["a", "b\nc", "d", "e", "f"])).toBe("5 of its vehicles are not ours: a, b\uFFFDc, d, e, f");
  expect(message(["a", "b", "c", "d", "e", "f", "g"])).toBe(
    "7 of its vehicles are not ours: a, b, c, d, e and 2 more",
  );
});
