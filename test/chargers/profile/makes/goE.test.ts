import { describe, expect, test } from "vitest";
import { aTrial } from "../aTrial.ts";

const goE = aTrial("go-e-v2", { serial: "000001" });
const KEY = "go-eCharger/000001";

describe("a go-e charger", () => {
  test("receives whole amperes, rounded down, QoS 1 and not retained", () => {
    expect(goE.answer("setCurrent", { currentA: 13.7 })).toEqual({
      publishes: [{ topic: `${KEY}/amp/set`, payload: "13", qos: 1, retain: false }],
    });
  });

  test.each([0, -3, 0.1 + 0.2, 5.9])("is paused at %d A, which it would ignore", (currentA) => {
    expect(goE.told("setCurrent", { currentA })).toEqual([`${KEY}/frc/set 1`]);
  });

  test("receives 6 to 32 A, and no more than its own maximum", () => {
    expect([6, 32, 40].flatMap((currentA) => goE.told("setCurrent", { currentA }))).toEqual([
      `${KEY}/amp/set 6`,
      `${KEY}/amp/set 32`,
      `${KEY}/amp/set 32`,
    ]);
    const variant11 = aTrial("go-e-v2", { serial: "000001", maxCurrentA: 16 });
    expect(variant11.told("setCurrent", { currentA: 32 })).toEqual([`${KEY}/amp/set 16`]);
  });

  test("is forced off, on, and left alone by frc", () => {
    expect(goE.told("pause")).toEqual([`${KEY}/frc/set 1`]);
    expect(goE.told("resume", { lastCurrentA: 13 })).toEqual([`${KEY}/frc/set 2`]);
    expect(goE.told("release")).toEqual([`${KEY}/frc/set 0`]);
  });

  test("needs no set-up before the first setpoint, and its profile states that", () => {
    expect(goE.answer("acquire")).toEqual({ publishes: [], note: expect.any(String) });
  });

  test("takes three phases as 2, and two phases not at all", () => {
    expect(goE.told("setPhases", { phases: 1 })).toEqual([`${KEY}/psm/set 1`]);
    expect(goE.told("setPhases", { phases: 3 })).toEqual([`${KEY}/psm/set 2`]);
    expect(goE.answer("setPhases", { phases: 2 })).toEqual({ error: expect.stringContaining("1 or 3") });
  });

  test("takes no watts: they become amperes of its phases and voltage", () => {
    expect(goE.told("setPower", { powerW: 11_040 })).toEqual([`${KEY}/amp/set 16`]);
    expect(goE.told("setPower", { powerW: 4139 })).toEqual([`${KEY}/frc/set 1`]);
    expect(goE.told("setPower", { powerW: -5000 })).toEqual([`${KEY}/frc/set 1`]);
    const single = aTrial("go-e-v2", { serial: "000001", phases: 1, nominalV: 240 });
    expect(single.told("setPower", { powerW: 2400 })).toEqual([`${KEY}/amp/set 10`]);
  });

  test("has a prefix that begins with a slash on older firmware", () => {
    const older = aTrial("go-e-v2", { serial: "000001", prefix: "/go-eCharger" });
    expect(older.told("pause")).toEqual(["/go-eCharger/000001/frc/set 1"]);
    expect(older.means("/go-eCharger/000001/eto", "123456")).toEqual({ energyWh: 123_456 });
    expect(older.means("go-eCharger/000001/eto", "123456")).toEqual({});
  });

  test("measures in one list: volts, amperes and watts", () => {
    const nrg = [230, 231, 232, 1, 16, 15.9, 0, 3680, 3672.9, 0, 0, 7352.9, 99, 99, 0, 0];
    expect(goE.means(`${KEY}/nrg`, nrg)).toEqual({
      powerW: 7352.9,
      currentsA: [16, 15.9, 0],
      voltagesV: [230, 231, 232],
    });
  });

  test("counts Wh for good and for the session", () => {
    expect(goE.means(`${KEY}/eto`, "1234567")).toEqual({ energyWh: 1_234_567 });
    expect(goE.means(`${KEY}/wh`, "5432.1")).toEqual({ sessionEnergyWh: 5432.1 });
  });

  test.each([
    ["1", { state: "unplugged", plugged: false, charging: false }],
    ["2", { state: "charging", plugged: true, charging: true, paused: false }],
    ["3", { state: "connected", plugged: true, charging: false }],
    ["4", { state: "finished", plugged: true, charging: false }],
    ["5", { state: "error", error: true }],
    ["0", { state: "unknown" }],
    ["null", { state: null }],
  ])("reports its state with car %s", (payload, means) => {
    expect(goE.means(`${KEY}/car`, payload)).toEqual(means);
  });

  test("repeats the requested current, reports the allowed one, and reports when it allows nothing", () => {
    expect(goE.means(`${KEY}/amp`, "13")).toEqual({ requestedA: 13 });
    expect(goE.means(`${KEY}/acu`, "10")).toEqual({ limitA: 10 });
    expect(goE.means(`${KEY}/acu`, "null")).toEqual({ limitA: null });
    expect(goE.means(`${KEY}/frc`, "1")).toEqual({ paused: true });
    expect(goE.means(`${KEY}/frc`, "0")).toEqual({});
    expect(goE.means(`${KEY}/alw`, "false")).toEqual({ paused: true });
    expect(goE.means(`${KEY}/err`, "0")).toEqual({ error: false });
    expect(goE.means(`${KEY}/err`, "3")).toEqual({ error: true });
  });

  test("answers a command with success or with what is wrong", () => {
    expect(goE.heard(`${KEY}/amp/result`, "success")).toEqual({
      means: {},
      answer: { accepted: true, reason: null },
    });
    expect(goE.heard(`${KEY}/frc/result`, '"value must be string 0"')).toEqual({
      means: {},
      answer: { accepted: false, reason: "value must be string 0" },
    });
  });

  test("is there as long as it counts its uptime", () => {
    expect(goE.means(`${KEY}/rbt`, "86400000")).toEqual({ online: true });
  });

  test("names who charges by the card, once the names of the cards are known", () => {
    const fresh = aTrial("go-e-v2", { serial: "000001" });
    expect(fresh.means(`${KEY}/trx`, "2")).toEqual({});
    expect(fresh.means(`${KEY}/cards`, [{ name: "Bus 213" }, { name: "Bus 214" }])).toEqual({
      vehicleId: "Bus 214",
      vehicleIdKind: "name",
    });
    expect(fresh.means(`${KEY}/trx`, "1")).toEqual({ vehicleId: "Bus 213", vehicleIdKind: "name" });
    expect(fresh.means(`${KEY}/trx`, "0")).toEqual({ vehicleId: null });
    expect(fresh.means(`${KEY}/trx`, "null")).toEqual({ vehicleId: null });
    expect(fresh.means(`${KEY}/lri`, '"04A2B3C4"')).toEqual({ vehicleId: "04A2B3C4", vehicleIdKind: "rfid" });
  });
});
