import { expect, test } from "vitest";
import { chargerId, watts } from "../../src/domain/units.ts";
import { loadProfiles } from "../../src/daemon/loadProfiles.ts";
import { depotOf, mixedDepotOf } from "../../src/sim/mixedFloor.ts";
import { aCharger, aVehicle } from "../support/aCharger.ts";

const bay = aCharger();
const bus = aVehicle({ id: "bus-201", name: "Bus 201", maxPower: watts(13_800) });

test("a configured native charger is simulated with its bound vehicle", () => {
  expect(depotOf([bay], [bus])).toMatchObject([
    {
      traits: { id: "bay-01", minCurrent: 6, maxCurrent: 32, ownDefault: 32 },
      vehicle: { id: "bus-201", maxCurrent: 20, identity: null },
    },
  ]);
});

test("a vehicle with an identity is reported by that identity, as by a real charger", () => {
  const identity = { kind: "mac", value: "02:aa:bb:00:00:01" };
  expect(depotOf([bay], [{ ...bus, identities: [identity] }])[0]?.vehicle).toMatchObject({
    id: null,
    identity,
  });
});

test("a charger without a vehicle is empty; other profiles and brokers are left out", () => {
  const others = [
    { ...bay, id: chargerId("wall"), profile: "go-e-v2" },
    { ...bay, id: chargerId("far"), broker: "hall" },
  ];
  expect(depotOf([bay, ...others], [])).toMatchObject([{ traits: { id: "bay-01" }, vehicle: null }]);
});

test("a charger whose profile has a model is simulated with its configured parameters", () => {
  const wall = { ...bay, id: chargerId("wall"), profile: "warp", params: { prefix: "warp3/AbCd" } };
  const relay = { ...bay, id: chargerId("relay"), profile: "tasmota-switch", params: { topic: "relay" } };
  const [made, ...more] = mixedDepotOf(
    [bay, wall, relay, { ...wall, broker: "hall" }],
    [],
    loadProfiles(null).profiles,
  );
  expect(more).toEqual([]);
  expect(made).toMatchObject({ profile: "warp", traits: { id: "wall", maxCurrent: 32 }, vehicle: null });
  expect(made?.params.get("prefix")).toBe("warp3/AbCd");
});
