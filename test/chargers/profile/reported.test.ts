import { expect, test } from "vitest";
import { Reported } from "../../../src/chargers/profile/reported.ts";
import { boundTo } from "./aTrial.ts";

const POINT = "evcc/loadpoints/1";
const evcc = boundTo("evcc", { id: 1 });

test("the latest value is kept; the owner's value is that from when control was taken", () => {
  const reported = new Reported(evcc);
  reported.record(`${POINT}/mode`, "minpv", false);
  reported.record(`${POINT}/phasesConfigured`, "0", false);
  expect(Object.fromEntries(reported.values)).toEqual({ phasesNow: "0" });
  reported.take();
  reported.record(`${POINT}/mode`, "now", true);
  reported.record(`${POINT}/phasesConfigured`, "1", true);
  expect(Object.fromEntries(reported.values)).toEqual({ ownMode: "minpv", ownPhases: "0", phasesNow: "1" });
});

test("values from before a restart are known again, but for those that the profile never restores or would not read", () => {
  const reported = new Reported(evcc);
  reported.restore({ ownMode: "minpv", ownPhases: "2", phasesNow: "1", other: "x" });
  expect(reported.own).toEqual({ ownMode: "minpv" });
  reported.restore();
  expect(reported.own).toEqual({ ownMode: "minpv" });
  expect(new Reported(boundTo("warp", { prefix: "w" })).own).toBeUndefined();
});

test("a value of another form is never sent back", () => {
  const reported = new Reported(evcc);
  for (const payload of ["", "nil", "2", "0 1", "3\n3"])
    reported.record(`${POINT}/phasesConfigured`, payload, false);
  expect(reported.values.size).toBe(0);
});

test("a release is shown by the restored mode, or by the one of the parameters", () => {
  const reported = new Reported(evcc);
  expect(reported.release(evcc)).toEqual({ isShown: false, detail: "it repeats nothing instead of pv" });
  reported.record(`${POINT}/mode`, "pv", false);
  expect(reported.release(evcc)?.isShown).toBe(true);
  expect(new Reported(boundTo("warp", { prefix: "w" })).release(boundTo("warp", { prefix: "w" }))).toBeNull();
});

test("a value in an envelope is read at its path, and nothing else is sent back", () => {
  const victron = boundTo("victron-evcs", { portalId: "p" });
  const reported = new Reported(victron);
  const mode = (payload: string) => reported.record("N/p/evcharger/40/Mode", payload, false);
  mode('{"max":2,"min":0,"value":0}');
  for (const payload of ["", "0", "{", "[]", '{"value":null}', '{"value":{"a":1}}']) mode(payload);
  reported.take();
  expect(Object.fromEntries(reported.values)).toEqual({ ownMode: "0" });
  expect(reported.release(victron)?.isShown).toBe(true);
  mode('{"value":7}');
  reported.take();
  expect(reported.values.size).toBe(0);
});

test("a mode that cannot be restored is not replaced by the one before it", () => {
  const openwb = boundTo("openwb-simpleapi", { id: 2 });
  const reported = new Reported(openwb);
  for (const selected of ["instant_charging", "standby"])
    reported.record(
      "openWB/chargepoint/2/set/charge_template",
      JSON.stringify({ chargemode: { selected, instant_charging: { current: 16 } } }),
      false,
    );
  reported.take();
  expect(Object.fromEntries(reported.values)).toEqual({ ownCurrent: "16" });
  expect(reported.release(openwb)?.detail).toBe("it repeats nothing instead of pv");
});
