import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import specs from "@asyncapi/specs";
import { Ajv, type AnySchema } from "ajv";
import { expect, test } from "vitest";

import { nativeTopics, writeAck, writeSet, writeTelemetry } from "../../../src/chargers/native/messages.ts";
import { ASYNCAPI_FILE, asyncApiText } from "../../../packaging/apiDocuments.ts";
import { instant, seconds } from "../../../src/domain/units.ts";
import { commandRecord } from "../../store/sqlite/words.ts";

interface Described {
  readonly channels: Readonly<Record<string, { readonly address: string }>>;
  readonly components: { readonly messages: Readonly<Record<string, { readonly payload: AnySchema }>> };
}
const document = JSON.parse(asyncApiText()) as Described;

test("docs/asyncapi.json is fresh: npm run schema", () => {
  expect(readFileSync(ASYNCAPI_FILE, "utf8")).toBe(asyncApiText());
});

test("the writer of the documents runs, and changes no fresh one", () => {
  execFileSync(process.execPath, [
    fileURLToPath(new URL("../../../packaging/apiDocuments.ts", import.meta.url)),
  ]);
  expect(readFileSync(ASYNCAPI_FILE, "utf8")).toBe(asyncApiText());
});

test("the document is valid AsyncAPI 3 by the published schema", () => {
  // The published schema brings draft 7 along.
  const ajv = new Ajv({ strict: false, validateFormats: false, meta: false, validateSchema: false });
  expect([ajv.validate(Object(specs.schemas["3.0.0"]) as AnySchema, document), ajv.errors]).toEqual([
    true,
    null,
  ]);
});

const filled = (name: string): string | undefined =>
  document.channels[name]?.address
    .replace("{prefix}", "setpointd")
    .replace("{site}", "depot")
    .replace("{charger}", "bay-01");

test("its addresses are the topics that are published", () => {
  const topics = nativeTopics("setpointd", "depot", "bay-01");
  for (const [name, topic] of Object.entries(topics ?? {})) expect(filled(name)).toBe(topic);
});

const at = "2026-11-21T05:00:00.000Z";

const fits = (name: string, payload: string): boolean =>
  new Ajv({ strict: false, validateFormats: false }).compile(
    document.components.messages[name]?.payload ?? false,
  )(JSON.parse(payload)) === true;

test("payloads that are sent fit their schemas, and others do not", () => {
  expect(fits("set", writeSet(commandRecord("bay-01", 1).command, seconds(180)))).toBe(true);
  expect(fits("set", '{"v":2}')).toBe(false);
  expect(fits("ack", writeAck({ id: "7-1", accepted: true, value: 16, reason: null }))).toBe(true);
  expect(fits("ack", '{"id":"7-1","accepted":"yes"}')).toBe(false);
  expect(fits("telemetry", writeTelemetry({ at: instant(0), state: "charging", powerW: 7000 }))).toBe(true);
  expect(fits("telemetry", '{"powerW":"7 kW"}')).toBe(false);
  const hold = {
    scope: { charger: "bay-01" },
    kind: "level",
    level: { currentA: 16 },
    until: { unplugged: true },
    reason: "leaves early",
  };
  expect(fits("holdRequest", JSON.stringify(hold))).toBe(true);
  expect(fits("holdRequest", JSON.stringify({ ...hold, until: undefined }))).toBe(false);
  const price = { start: at, end: at, value: 0.4, currency: "NOK", perUnit: "kWh", region: "NO1", vat: null };
  expect(fits("prices", JSON.stringify([price]))).toBe(true);
  expect(fits("prices", JSON.stringify(price))).toBe(false);
});
