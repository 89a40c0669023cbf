import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { topicFault } from "../../../src/chargers/native/messages.ts";
import { decodeMessage } from "../../../src/chargers/profile/decodeMessage.ts";
import type { Params } from "../../../src/chargers/profile/instance.ts";
import { telemetryOf, NOTHING_STANDS } from "../../../src/chargers/profile/lastKnownSignals.ts";
import { allowedCurrent, allowedPower, maxCurrent } from "../../../src/chargers/profile/level.ts";
import { ordersFor } from "../../../src/chargers/profile/orders.ts";
import { type Action, publishesFor } from "../../../src/chargers/profile/publishes.ts";
import { compileTelemetry } from "../../../src/chargers/profile/telemetryMap.ts";
import { amperes } from "../../../src/domain/units.ts";
import { boundTo, brokenBuiltIn, builtIn, NOON, profileNamed } from "./aTrial.ts";

/** DESIGN 6.5, to the letter. */
const CONTRACT: Readonly<Record<string, Params>> = {
  "go-e-v2": { prefix: "go-eCharger", serial: "000001" },
  "openevse-override": { base: "openevse" },
  "openevse-claim": { base: "openevse" },
  warp: { prefix: "warp2/AbCd" },
  "openwb-secondary": { duo: 0, parentIp: "10.0.0.5", cpNumber: 1 },
  "openwb-simpleapi": { id: 5 },
  "openwb-1.9": { id: 1 },
  "openwb-mqtt-chargepoint": { id: 4 },
  evcc: { root: "evcc", id: 1, releaseMode: "pv" },
  "everest-api-legacy": { evse: "evse_manager" },
  "everest-api-v1": { limitsModule: "limits", evseModule: "evse" },
  smartevse: { prefix: "SmartEVSE/1", mode: "Normal" },
  "victron-evcs": { portalId: "c0", instance: 40 },
  "wallbox-mqtt-bridge": { serial: "123" },
  wbec: { lp: 1 },
  pulsatrix: { prefix: "pulsatrix/secc", clientId: "c1" },
  "greencell-habuden": { serial: "S1" },
  ocpp2mqtt: { base: "ocpp/c1", connector: 1 },
  "tasmota-switch": { topic: "plug" },
  "shelly-gen2-switch": { prefix: "shelly1", channel: 0, src: "x" },
  twcmanager: { prefix: "TWC", twc: "AB12" },
  "e3dc-rscp2mqtt": { prefix: "e3dc" },
  native: {},
};

const make = fc.constantFrom(...Object.keys(CONTRACT));
const level = fc.oneof(
  fc.double({ min: -100, max: 100, noNaN: true }),
  fc.constantFrom(0, -0, 5.9, 6, 0.1 + 0.2, 13.7, 40, 1e9, -1e9),
);
const own = fc.record(
  {
    maxCurrentA: fc.double({ min: 1, max: 64, noNaN: true }),
    phases: fc.constantFrom(1, 2, 3),
    nominalV: fc.integer({ min: 100, max: 500 }),
  },
  { requiredKeys: [] },
);
const action: fc.Arbitrary<Action> = fc.oneof(
  fc.constantFrom("acquire" as const, "pause" as const, "release" as const).map((kind) => ({ kind })),
  level.map((currentA) => ({ kind: "setCurrent" as const, currentA })),
  level.map((thousands) => ({ kind: "setPower" as const, powerW: thousands * 1000 })),
  fc.option(level).map((lastCurrentA) => ({ kind: "resume" as const, lastCurrentA })),
  fc.record({
    kind: fc.constant("setPhases" as const),
    phases: fc.integer({ min: 0, max: 4 }),
    lastCurrentA: fc.option(level),
  }),
);

describe("every built-in make", () => {
  test("is there, by name, and none is broken", () => {
    expect(brokenBuiltIn).toEqual([]);
    expect([...builtIn.keys()].toSorted()).toEqual(Object.keys(CONTRACT).toSorted());
  });

  test.each(Object.entries(CONTRACT))("%s takes exactly the parameters of the contract", (name, params) => {
    const declared = Object.keys(profileNamed(name).params);
    for (const parameter of Object.keys(params)) expect(declared).toContain(parameter);
    expect(boundTo(name, params).profile.profile).toBe(name);
  });

  test("describes the setup and what happens when the gateway dies", () => {
    for (const { setup, ifWeDie, profile, uncertain, experimental } of builtIn.values()) {
      expect([profile, setup.length > 0, ifWeDie.endsWith(".")]).toEqual([profile, true, true]);
      expect([profile, uncertain.length > 0 || !experimental || profile.endsWith("-switch")]).toEqual([
        profile,
        true,
      ]);
    }
  });

  test("gets no retained message and no invalid topic, whatever the command (F67, F93)", () => {
    fc.assert(
      fc.property(make, own, action, (name, limits, asked) => {
        const answer = publishesFor(asked, boundTo(name, { ...CONTRACT[name], ...limits }), NOON);
        if (!answer.ok) return answer.reason !== "";
        return answer.publishes.every(
          ({ topic, payload, qos, retain }) =>
            topicFault(topic) === null &&
            !/[{}]/.test(topic) &&
            !/NaN(?!$)|undefined|e\+|-0\b/.test(payload) &&
            qos === 1 &&
            !retain,
        );
      }),
    );
  });

  test("never gets more than its own maximum, nor less than its minimum: that is a pause", () => {
    fc.assert(
      fc.property(make, own, level, (name, limits, asked) => {
        const bound = boundTo(name, { ...CONTRACT[name], ...limits });
        const allowed = allowedCurrent(asked, bound);
        const pause = publishesFor({ kind: "pause" }, bound, NOON);
        const answer = publishesFor({ kind: "setCurrent", currentA: asked }, bound, NOON);
        if (allowed === null) return JSON.stringify(answer) === JSON.stringify(pause);
        const { min } = bound.profile.limits.current;
        return (
          allowed <= maxCurrent(bound) &&
          allowed > 0 &&
          allowed >= min &&
          allowed <= Math.max(asked, min) + 1e-6
        );
      }),
    );
  });

  test("never gets more watts than requested, and feeds back only if it can", () => {
    fc.assert(
      fc.property(make, own, level, (name, limits, thousands) => {
        const bound = boundTo(name, { ...CONTRACT[name], ...limits });
        const allowed = allowedPower(thousands * 1000, bound);
        if (allowed?.kind !== "power") return true;
        const feedsBack = bound.profile.limits.power?.discharge !== undefined;
        return (
          Math.abs(allowed.watts) <= Math.abs(thousands) * 1000 + 1e-3 && (allowed.watts > 0 || feedsBack)
        );
      }),
    );
  });

  test("charges again after a pause and a level, and control is taken first", () => {
    for (const [name, params] of Object.entries(CONTRACT)) {
      if (name === "twcmanager") continue;
      const bound = boundTo(name, params);
      const desired = { kind: "current", amperes: amperes(16) } as const;
      const orders = ordersFor(desired, { acquired: false, pause: "sent", phases: null }, bound, NOON);
      expect([name, orders.ok && orders.after]).toEqual([
        name,
        { acquired: true, pause: "ending", phases: null },
      ]);
      const pause = publishesFor({ kind: "pause" }, bound, NOON);
      const said = orders.ok ? orders.publishes.map(({ topic }) => topic) : [];
      const paused = pause.ok ? pause.publishes.map(({ topic }) => topic) : [];
      // What the pause was said on has been said otherwise, or a topic beside it ends the pause.
      expect([name, paused.some((topic) => said.some((other) => sibling(topic) === sibling(other)))]).toEqual(
        [name, true],
      );
    }
  });

  test("survives every payload on every topic, and reports only signals of its profile", () => {
    const KEYS =
      /^(powerW|energyWh|sessionEnergyWh|currentA|currentsA|voltagesV|limitA|requestedA|plugged|charging|paused|error|state|vehicleId|vehicleIdKind|socPct|phases|firmware|bootCount|online)$/;
    const NUMBERS = /^(powerW|energyWh|sessionEnergyWh|currentA|limitA|requestedA|socPct|phases|bootCount)$/;
    const payload = fc.oneof(
      fc.string(),
      fc.json(),
      fc.constantFrom("", "null", "NaN", "1e999", "1e308", "-1e305", "{}", "[]", "[null]", "16", "[[1]]"),
      fc.array(fc.oneof(fc.double(), fc.constantFrom(null, "a", [1], 1e308)), { maxLength: 20 }).map(inJson),
    );
    const fits = (key: string, value: unknown): boolean => {
      if (key === "currentsA" || key === "voltagesV")
        return value === null || (Array.isArray(value) && value.every(isNumberOrNull));
      return NUMBERS.test(key) ? isNumberOrNull(value) : typeof value !== "object" || value === null;
    };
    fc.assert(
      fc.property(make, payload, fc.nat(), (name, said, pick) => {
        const ear = compileTelemetry(boundTo(name, CONTRACT[name] ?? {}));
        const topic = ear.filters[pick % ear.filters.length] ?? "";
        const { signals: means } = decodeMessage(ear, new Map(), topic.replaceAll("+", "x"), said);
        telemetryOf(means, NOTHING_STANDS, 3, NOON);
        return Object.entries(means).every(([key, value]) => KEYS.test(key) && fits(key, value));
      }),
      { numRuns: 2000 },
    );
  });
});

const inJson = (value: unknown): string => JSON.stringify(value);
const isNumberOrNull = (value: unknown): boolean => value === null || Number.isFinite(value);
const sibling = (topic: string): string => topic.split("/").slice(0, -1).join("/");
