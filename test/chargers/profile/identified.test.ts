import { expect, test } from "vitest";

import { type TelemetryMap, compileTelemetry } from "../../../src/chargers/profile/telemetryMap.ts";
import { decodeMessage, identified } from "../../../src/chargers/profile/decodeMessage.ts";
import { type Memory } from "../../../src/chargers/profile/decodeMessage.ts";
import { boundTo } from "./aTrial.ts";

/** Who is there after each of the messages, as far as the last one tells. */
function whoAfter(
  ear: TelemetryMap,
  messages: readonly (readonly [topic: string, payload: string])[],
): unknown {
  const memory: Memory = new Map();
  const told = messages.map(([topic, payload]) =>
    identified(ear, memory, topic, decodeMessage(ear, memory, topic, payload).signals),
  );
  return told.at(-1)?.vehicleId;
}

const secondary = compileTelemetry(boundTo("openwb-secondary", { parentIp: "10.0.0.1" }));
const get = "openWB/internal_chargepoint/0/get";

test("an empty card reader does not wipe the identity that the vehicle told", () => {
  const messages = [
    [`${get}/vehicle_id`, '"02:AA:BB:00:00:01"'],
    [`${get}/rfid`, "null"],
  ] as const;
  expect(whoAfter(secondary, messages)).toBe("02:AA:BB:00:00:01");
});

test("nobody is nobody where no way names somebody", () => {
  expect(whoAfter(secondary, [[`${get}/rfid`, "null"]])).toBeNull();
});

test("a vehicle that leaves takes its identity along: the next one may have none", () => {
  const messages = [
    [`${get}/vehicle_id`, '"02:AA:BB:00:00:01"'],
    [`${get}/plug_state`, "false"],
    [`${get}/plug_state`, "true"],
    [`${get}/rfid`, "null"],
  ] as const;
  expect(whoAfter(secondary, messages)).toBeNull();
});

test("card names outlive the vehicle: only which card was held to the reader is forgotten", () => {
  const goe = compileTelemetry(boundTo("go-e-v2", { serial: "000001" }));
  const key = "go-eCharger/000001";
  const cards: readonly [string, string] = [`${key}/cards`, '[{"name":"Anna"},{"name":"Ben"}]'];
  const before = [cards, [`${key}/trx`, "2"], [`${key}/car`, "1"]] as const;
  expect(whoAfter(goe, [...before, [`${key}/trx`, "null"]])).toBeNull();
  expect(whoAfter(goe, [...before, [`${key}/trx`, "2"]])).toBe("Ben");
});

test("a card without a name is nobody, not who held a card before", () => {
  const goe = compileTelemetry(boundTo("go-e-v2", { serial: "000001" }));
  const key = "go-eCharger/000001";
  const cards: readonly [string, string] = [`${key}/cards`, '[{"name":"Anna"},{"name":"Ben"}]'];
  expect(whoAfter(goe, [cards, [`${key}/trx`, "2"], [`${key}/trx`, "5"]])).toBeNull();
  expect(whoAfter(goe, [cards, [`${key}/tsi`, '"04aabb"'], [`${key}/trx`, "5"]])).toBe("04aabb");
  expect(whoAfter(goe, [[`${key}/trx`, "2"], cards])).toBe("Ben");
});

test("a card read in an earlier session names nobody while the charger says that no card opened this one", () => {
  const goe = compileTelemetry(boundTo("go-e-v2", { serial: "000001" }));
  const key = "go-eCharger/000001";
  const lri: readonly [string, string] = [`${key}/lri`, '"04AABB"'];
  for (const trx of ["null", "0"]) {
    expect(whoAfter(goe, [[`${key}/trx`, trx], lri])).toBeNull();
    expect(whoAfter(goe, [lri, [`${key}/trx`, trx]])).toBeNull();
  }
  expect(whoAfter(goe, [[`${key}/trx`, "2"], lri])).toBe("04AABB");
});
