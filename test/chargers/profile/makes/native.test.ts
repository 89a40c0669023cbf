import { expect, test } from "vitest";
import { readSet } from "../../../../src/chargers/native/messages.ts";
import { aTrial } from "../aTrial.ts";

const native = aTrial("native");
const OF_ANY = "depot/charging/north/chargers/bay-01";

test.each([
  ["setCurrent", { currentA: 13.7 }, { kind: "current", amperes: 13.7 }],
  ["setPower", { powerW: -5000 }, { kind: "power", watts: -5000 }],
  ["pause", {}, { kind: "pause" }],
  ["resume", { lastCurrentA: 10 }, { kind: "current", amperes: 10 }],
  ["release", {}, { kind: "release" }],
])("a native charger understands what is tried with %s", (action, input, desired) => {
  expect(readSet(Buffer.from(JSON.stringify(native.json(action, input))))).toMatchObject({
    desired,
    lease: 180_000,
  });
});

test("native telemetry of any site is read as the daemon reads it", () => {
  expect(
    native.means(`${OF_ANY}/telemetry`, {
      at: "2026-11-21T12:00:00Z",
      state: "charging",
      vehicle: "veh-214",
      powerW: 11_040,
      currentsA: [16, 16, 16],
      voltagesV: [230, 230, 230],
      energyWh: 123_456,
      sessionWh: 1200,
      soc: 71,
      limitA: 16,
    }),
  ).toEqual({
    state: "charging",
    plugged: true,
    charging: true,
    paused: false,
    vehicleId: "veh-214",
    vehicleIdKind: "vehicle",
    powerW: 11_040,
    currentsA: [16, 16, 16],
    voltagesV: [230, 230, 230],
    energyWh: 123_456,
    sessionEnergyWh: 1200,
    socPct: 71,
    limitA: 16,
  });
});

const telemetry = (members: object) => native.means(`${OF_ANY}/telemetry`, members);

test("an identity names the vehicle where no id does, and null means that the vehicle is unknown", () => {
  expect(telemetry({ vehicle: null, identity: { kind: "mac", value: "02:AA" } })).toEqual({
    vehicleId: "02:AA",
    vehicleIdKind: "mac",
  });
  expect(telemetry({ vehicle: null })).toEqual({ vehicleId: null });
  expect(telemetry({ powerW: null })).toEqual({ powerW: null });
  expect(telemetry({ powerW: "much" })).toEqual({});
});

test("acks and presence are published", () => {
  expect(native.heard(`${OF_ANY}/ack`, { id: "7-1", accepted: true, value: 16, reason: null })).toEqual({
    means: {},
    answer: { accepted: true, reason: null },
  });
  expect(native.means(`${OF_ANY}/online`, "false")).toEqual({ online: false });
  expect(native.means(`${OF_ANY}/online`, "perhaps")).toEqual({});
  expect(native.means(`${OF_ANY}/state`, "{}")).toEqual({});
});
