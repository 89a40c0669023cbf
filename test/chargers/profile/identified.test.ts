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

test("an empty card reader does not erase the identity from the vehicle", () => {
  const messages = [
    [`${get}/vehicle_id`, '"02:AA:BB:00:00:01"'],
    [`${get}/rfid`, "null"],
  ] as const;
  expect(whoAfter(secondary, messages)).toBe("02:AA:BB:00:00:01");
});

test("no source with a name means no vehicle", () => {
  expect(whoAfter(secondary, [[`${get}/rfid`, "null"]])).toBeNull();
});

test("the identity ends when the vehicle leaves", () => {
  const messages = [
    [`${get}/vehicle_id`, '"02:AA:BB:00:00:01"'],
    [`${get}/plug_state`, "false"],
    [`${get}/plug_state`, "true"],
    [`${get}/rfid`, "null"],
  ] as const;
  expect(whoAfter(secondary, messages)).toBeNull();
});

test("card names outlive the vehicle: only the card at the reader is forgotten", () => {
  const goe = compileTelemetry(boundTo("go-e-v2", { serial: "000001" }));
  const key = "go-eCharger/000001";
  const cards: readonly [string, string] = [`${key}/cards`, '[{"name":"Anna"},{"name":"Ben"}]'];
  const before = [cards, [`${key}/trx`, "2"], [`${key}/car`, "1"]] as const;
  expect(whoAfter(goe, [...before, [`${key}/trx`, "null"]])).toBeNull();
  expect(whoAfter(goe, [...before, [`${key}/trx`, "2"]])).toBe("Ben");
});

test("a card without a name is no vehicle, not the one before", () => {
  const goe = compileTelemetry(boundTo("go-e-v2", { serial: "000001" }));
  const key = "go-eCharger/000001";
  const cards: readonly [string, string] = [`${key}/cards`, '[{"name":"Anna"},{"name":"Ben"}]'];
  expect(whoAfter(goe, [cards, [`${key}/trx`, "2"], [`${key}/trx`, "5"]])).toBeNull();
  expect(whoAfter(goe, [cards, [`${key}/tsi`, '"04aabb"'], [`${key}/trx`, "5"]])).toBe("04aabb");
  expect(whoAfter(goe, [[`${key}/trx`, "2"], cards])).toBe("Ben");
});

test("a card of an earlier session identifies no vehicle while the charger reports that no card opened this one", () => {
  const goe = compileTelemetry(boundTo("go-e-v2", { serial: "000001" }));
  const key = "go-eCharger/000001";
  const lri: readonly [string, string] = [`${key}/lri`, '"04AABB"'];
  for (const trx of ["null", "0"]) {
    expect(whoAfter(goe, [[`${key}/trx`, trx], lri])).toBeNull();
    expect(whoAfter(goe, [lri, [`${key}/trx`, trx]])).toBeNull();
  }
  expect(whoAfter(goe, [[`${key}/trx`, "2"], lri])).toBe("04AABB");
});
