import { expect, test } from "vitest";

import { telemetryOf, folded, NOTHING_STANDS } from "../../../src/chargers/profile/lastKnownSignals.ts";
import type { Signals } from "../../../src/chargers/profile/signals.ts";
import { NOON } from "./aTrial.ts";

const told = (means: Signals, ...before: readonly Signals[]) =>
  telemetryOf(means, before.reduce(folded, NOTHING_STANDS), 3, NOON);

test("readings are passed on, unknown ones are left out", () => {
  expect(
    told({
      powerW: 11_040,
      energyWh: null,
      sessionEnergyWh: 1200,
      socPct: 71,
      limitA: 13.7,
      voltagesV: [230, null, 231],
      currentsA: [16, null, 16],
    }),
  ).toEqual({
    at: NOON,
    powerW: 11_040,
    sessionWh: 1200,
    soc: 71,
    limitA: 13.7,
    voltagesV: [230, 231],
    currentsA: [16, 16],
  });
});

test("a single current counts for every phase: counted once, three times as much would be allowed later", () => {
  expect(told({ currentA: 16 })).toMatchObject({ currentsA: [16, 16, 16] });
});

test.each<[Signals, Signals, string | undefined]>([
  [{ charging: true }, { plugged: true }, "charging"],
  [{ charging: false }, { plugged: true, charging: true }, "connected"],
  [{ charging: false }, { plugged: true, paused: true }, "paused"],
  [{ plugged: false }, { charging: true }, "unplugged"],
  [{ error: true }, { plugged: true }, "error"],
  [{ powerW: 1 }, { plugged: true }, undefined],
  [{ charging: false }, {}, undefined],
  [{ state: "finished" }, {}, "finished"],
  [{ state: "connected" }, { paused: true }, "paused"],
  [{ state: "paused" }, { plugged: false }, "unplugged"],
  [{ state: "paused" }, { state: "unplugged" }, "paused"],
  [{ state: "charging" }, { state: "error" }, "charging"],
  [{ paused: false }, { state: "error", plugged: true }, "error"],
  [{ state: "unknown" }, { plugged: false }, "unknown"],
  [{ state: null }, { plugged: true }, "unknown"],
])("%j after %j is the state %s", (means, standing, state) => {
  expect(told(means, standing).state).toBe(state);
});

test("identities have a kind, and null means no vehicle", () => {
  expect(told({ vehicleId: "04A2", vehicleIdKind: "rfid" })).toMatchObject({
    identity: { kind: "rfid", value: "04a2" },
  });
  expect(told({ vehicleId: "veh-1", vehicleIdKind: "vehicle" })).toMatchObject({ vehicle: "veh-1" });
  expect(told({ vehicleId: null })).toMatchObject({ identity: null });
});

test("a name guessed by a gateway does not replace the identity from the vehicle", () => {
  const card: Signals = { vehicleId: "04A2", vehicleIdKind: "rfid" };
  const name: Signals = { vehicleId: "Bus 7", vehicleIdKind: "name" };
  expect(told(name, card)).toEqual({ at: NOON });
  expect(told(name, {})).toMatchObject({ identity: { kind: "name", value: "bus 7" } });
});
