import { expect, test } from "vitest";

import { conflict, isSame, type Known, VehicleIdentities } from "../../../src/control/observe/claims.ts";
import { chargerId, vehicleId } from "../../../src/domain/units.ts";
import { aVehicle, byId } from "../../support/aCharger.ts";
import { at } from "../../support/anEvent.ts";

const claim: Known = {
  kind: "known",
  charger: chargerId("bay-01"),
  vehicle: vehicleId("veh-214"),
  at: at("05:00"),
  recalled: false,
  away: null,
  binding: null,
};

test("a report names a vehicle by its id or an identity, a stranger, nobody, or nothing", () => {
  const known = new VehicleIdentities(
    byId([aVehicle({ identities: [{ kind: "mac", value: "02:aa:bb:00:00:01" }] })]),
  );
  const bus = { kind: "known", vehicle: "veh-214" };
  const reports = [
    { vehicle: "veh-214" },
    { identity: { kind: "mac", value: "02:aa:bb:00:00:01" } },
    { vehicle: "stranger" },
    { vehicle: "veh-214", state: "unplugged" as const },
    { vehicle: null },
    { powerW: 4000 },
  ].map((more) => known.reportOf({ at: at("05:00"), ...more }, null));
  expect(reports).toEqual([
    bus,
    bus,
    { kind: "unknown", identity: "stranger" },
    "nobody",
    "nobody",
    undefined,
  ]);
});

test("a report repeats a claim if both name the same", () => {
  expect(isSame(claim, { kind: "known", vehicle: claim.vehicle })).toBe(true);
  expect(isSame(claim, { kind: "unknown", identity: "veh-214" })).toBe(false);
  expect([isSame(undefined, "nobody"), isSame(claim, "nobody")]).toEqual([true, false]);
});

test("a conflict names both chargers, and the one that wins", () => {
  expect(conflict(claim, { ...claim, charger: chargerId("bay-02") })).toBe(
    "vehicle veh-214 is claimed by bay-02 and bay-01: the newer report, bay-01, wins",
  );
});
