import * as fc from "fast-check";
import { expect, test } from "vitest";
import { instantiateProfile, type Params } from "../../../src/chargers/profile/instance.ts";
import { aProfile } from "./aProfile.ts";
import { profileNamed } from "./aTrial.ts";

const profile = aProfile({
  params: {
    id: { about: "Its id." },
    prefix: { about: "Its prefix.", levels: "many", default: "depot/chargers" },
    unit: { about: "Its number.", type: "integer", default: 1 },
    mode: { about: "Its mode.", values: ["a", "b"], default: "a" },
    serial: { about: "Its serial.", pattern: "[0-9]{6}", default: "000001" },
  },
  names: { door: { of: "mode", is: { a: "front", b: "back" } } },
});

const wrong = (params: Params): string => {
  const binding = instantiateProfile(profile, params);
  return binding.ok ? "" : binding.reason;
};

test("defaults apply, integers become numbers, and names follow their parameter", () => {
  const binding = instantiateProfile(profile, { id: 7, unit: "2", mode: "b" });
  expect(binding.ok && Object.fromEntries(binding.instance.values)).toEqual({
    id: "7",
    prefix: "depot/chargers",
    unit: 2,
    mode: "b",
    serial: "000001",
    door: "back",
  });
});

test("an optional parameter is null, or part of another one", () => {
  const optional = aProfile({
    params: {
      base: { about: "Its base." },
      address: { about: "Its address.", optional: true },
      tail: { about: "Its tail.", optional: true, found: { in: "base", match: "-([0-9a-f]{4})$" } },
    },
    actions: { setCurrent: [{ topic: "c/{base}/set", json: { to: "{address}", at: "{current}" } }] },
  });
  const values = (params: Params) => {
    const binding = instantiateProfile(optional, params);
    return binding.ok ? Object.fromEntries(binding.instance.values) : binding.reason;
  };
  expect(values({ base: "evse-a7d4" })).toEqual({ base: "evse-a7d4", address: null, tail: "a7d4" });
  expect(values({ base: "evse" })).toEqual({ base: "evse", address: null, tail: null });
  expect(values({ base: "evse-a7d4", address: "x", tail: "ffff" })).toEqual({
    base: "evse-a7d4",
    address: "x",
    tail: "ffff",
  });
});

test.each([
  ["go-e-v2", { serial: "abc" }, "6 or 8 digits"],
  ["go-e-v2", { serial: "12345" }, "6 or 8 digits"],
  ["wallbox-mqtt-bridge", { serial: "P-1" }, "digits"],
  ["everest-api-legacy", { evse: "my evse" }, "letters, digits, - and _"],
  ["victron-evcs", { portalId: "gx device" }, "letters and digits"],
  ["ocpp2mqtt", { base: "ocpp", connector: 0 }, "a whole number from 1"],
  ["warp", { prefix: "warp2/AbCd/" }, "slashes around it"],
  ["warp", { prefix: "warp2//AbCd" }, "topic levels"],
  ["smartevse", { prefix: "SmartEVSE/1 " }, "spaces"],
])("%s refuses %j, which no such charger has", (name, params, reason) => {
  const binding = instantiateProfile(profileNamed(name), params);
  expect(binding.ok ? "" : binding.reason).toContain(reason);
});

const electrics = (params: Params) => {
  const binding = instantiateProfile(profile, { id: "7", ...params });
  return binding.ok ? binding.instance.electrics : binding.reason;
};

test("the charger's own limits are used, by default three phases of 230 V", () => {
  expect(electrics({})).toEqual({ maxCurrentA: null, phases: 3, nominalV: 230 });
  expect(electrics({ maxCurrentA: 13.5, phases: 1, nominalV: 240 })).toEqual({
    maxCurrentA: 13.5,
    phases: 1,
    nominalV: 240,
  });
});

test.each([
  [{}, "the parameter id is missing: Its id."],
  [
    { id: "7", seril: "1" },
    'unknown parameter "seril"; it has id, prefix, unit, mode, serial, maxCurrentA, phases, nominalV',
  ],
  [{ id: "a/b" }, 'the parameter id is "a/b"; it has to be one topic level'],
  [{ id: "" }, 'the parameter id is ""; it has to be one topic level of 1 to 256 characters'],
  [{ id: "$SYS" }, "that does not begin with $"],
  [{ id: "7", mode: "c" }, "it has to be one of: a, b"],
  [{ id: "7", unit: 1.5 }, "it has to be a whole number"],
  [{ id: "7", serial: "12345" }, "matching [0-9]{6}"],
  [{ id: "7", maxCurrentA: 0 }, "maxCurrentA is 0; it has to be a number of amperes above 0"],
  [{ id: "7", maxCurrentA: "16" }, 'maxCurrentA is "16"'],
  [{ id: "7", phases: 4 }, "phases is 4; it has to be 1, 2 or 3"],
  [{ id: "7", nominalV: 23 }, "nominalV is 23; it has to be a number of volts from 100 to 500"],
])("%j is refused with the reason", (params, reason) => {
  expect(wrong(params)).toContain(reason);
});

test("no value leaves its topic level: no wildcard, no separator, no control character (F67)", () => {
  const hostile = fc
    .tuple(fc.string(), fc.constantFrom("/", "+", "#", "\0", "\n", "\u0085"), fc.string())
    .map((parts) => parts.join(""));
  fc.assert(fc.property(hostile, (id) => wrong({ id }) !== ""));
});

test("a prefix may have levels but no wildcard, and never starts with $", () => {
  expect(wrong({ id: "7", prefix: "/a/b" })).toBe("");
  for (const prefix of ["a/+", "a/#", "$SYS/a", "a\0"]) expect(wrong({ id: "7", prefix })).not.toBe("");
});
