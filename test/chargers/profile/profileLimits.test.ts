import { expect, test } from "vitest";

import { instanceSettings, applyProfileLimits } from "../../../src/chargers/profile/level.ts";
import { amperes, minutes, seconds, watts } from "../../../src/domain/units.ts";
import { aCharger } from "../../support/aCharger.ts";
import { profileNamed } from "./aTrial.ts";

const as = (profile: string, charger: Parameters<typeof aCharger>[0] = {}) =>
  applyProfileLimits(aCharger({ profile, ...charger }), profileNamed(profile));

const bound = (params: Readonly<Record<string, string | number>>, maxCurrent = amperes(16)) =>
  instanceSettings(aCharger({ params, maxCurrent, phases: 1 }), profileNamed("go-e-v2"));

test("a native charger is as the configuration describes it", () => {
  expect(as("native")).toEqual(aCharger());
});

test("limits of the make apply to its charger: steps, watts and range of current", () => {
  expect(as("go-e-v2", { maxDischarge: watts(5000), minCurrent: null })).toMatchObject({
    takesWatts: false,
    currentStep: 1,
    minCurrent: 6,
    maxCurrent: 32,
    maxDischarge: null,
  });
  expect(as("go-e-v2", { maxCurrent: amperes(32), params: { maxCurrentA: 20 } }).maxCurrent).toBe(20);
  expect(as("warp")).toMatchObject({ currentStep: 0.1, takesWatts: false });
  expect(as("wbec")).toMatchObject({ maxCurrent: 16 });
  expect(as("go-e-v2", { maxCurrent: null, maxPower: watts(22_000) })).toMatchObject({ maxCurrent: 32 });
});

test("watts and what is fed back are kept where the make takes them, up to what it takes", () => {
  const dc = { minCurrent: null, maxCurrent: null, maxPower: watts(350_000), maxDischarge: watts(200_000) };
  expect(as("everest-api-v1", dc)).toMatchObject({
    takesWatts: true,
    maxCurrent: null,
    maxPower: 150_000,
    maxDischarge: 150_000,
  });
});

test("the pace is the slower of make and configuration; the refresh the sooner; what wears is not refreshed and capped", () => {
  expect(as("go-e-v2")).toMatchObject({ minInterval: seconds(10), refresh: null, writesPerHour: 12 });
  expect(as("go-e-v2", { minInterval: minutes(1), writesPerHour: 30 })).toMatchObject({
    minInterval: minutes(1),
    writesPerHour: 30,
  });
  expect(as("openwb-simpleapi")).toMatchObject({ writesPerHour: 60 });
  expect(as("warp", { refresh: minutes(10) })).toMatchObject({ refresh: minutes(1), writesPerHour: null });
  expect(as("warp", { refresh: seconds(5) })).toMatchObject({ refresh: seconds(5) });
  expect(as("warp", { refresh: null })).toMatchObject({ refresh: null });
});

test("a relay charges with all it has or not at all", () => {
  expect(as("tasmota-switch", { maxCurrent: amperes(10), belowMinimum: "hold" })).toMatchObject({
    minCurrent: 10,
    maxCurrent: 10,
    belowMinimum: "pause",
  });
});

test("a profile is bound with the limits of the configuration, the lower of two currents", () => {
  expect(bound({ serial: "000001" })).toMatchObject({
    ok: true,
    instance: { electrics: { maxCurrentA: 16, phases: 1, nominalV: 230 } },
  });
  expect(bound({ serial: "000001", maxCurrentA: 10 })).toMatchObject({
    instance: { electrics: { maxCurrentA: 10 } },
  });
  expect(bound({})).toMatchObject({ ok: false, parameter: "serial" });
  expect(
    instanceSettings(aCharger({ maxCurrent: null, params: { serial: "000001" } }), profileNamed("go-e-v2")),
  ).toMatchObject({
    instance: { electrics: { maxCurrentA: null } },
  });
  expect(instanceSettings(aCharger(), profileNamed("native"))).toMatchObject({ ok: true });
});

test("a maximum with which every level would be a pause is refused", () => {
  expect(bound({ serial: "000001", maxCurrentA: 5.9 })).toMatchObject({
    ok: false,
    parameter: "maxCurrentA",
    reason: expect.stringContaining("at least 6"),
  });
  expect(bound({ serial: "000001", maxCurrentA: 6 })).toMatchObject({ ok: true });
});
