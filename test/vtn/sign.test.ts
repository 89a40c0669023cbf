import { expect, test } from "vitest";

import { instant, minutes } from "../../src/domain/units.ts";
import { sign, type Scheme, verify } from "../../src/vtn/signature.ts";

const now = instant(Date.UTC(2026, 10, 21, 12));
const body = Buffer.from('{"ID":"EV-1","name":"Größe"}');
const KEY = Buffer.alloc(24, 7).toString("base64");

/** As `fetch` and node hand them on. */
const inLowerCase = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

const hmac = {
  kind: "hmac",
  header: "X-Sig",
  algorithm: "sha256",
  encoding: "base64",
  timestamp: null,
  secrets: () => ["new one", "old one"],
} as const;

const schemes: readonly (readonly [string, Scheme])[] = [
  ["hmac", hmac],
  ["hmac with sha512 in hex", { ...hmac, algorithm: "sha512", encoding: "hex" }],
  ["hmac with a timestamp", { ...hmac, timestamp: { header: "X-Time", tolerance: minutes(5) } }],
  ["standardWebhooks", { kind: "standardWebhooks", secrets: () => [`whsec_${KEY}`] }],
  ["bearer", { kind: "bearer", secrets: () => ["täken"] }],
];

test.each(schemes)("a body signed by %s is believed, and another body is not", (name, scheme) => {
  const headers = inLowerCase(sign(scheme, body, "msg-1", now));
  expect(verify(scheme, headers, body, now)).toBe(true);
  expect(verify(scheme, headers, Buffer.from("{}"), now)).toBe(name === "bearer");
});

test("the first secret signs: during a rotation that is the new one", () => {
  const only: Scheme = { ...hmac, secrets: () => ["new one"] };
  expect(verify(only, inLowerCase(sign(hmac, body, "msg-1", now)), body, now)).toBe(true);
});

test("without authentication there is nothing to prove", () => {
  expect(sign({ kind: "none" }, body, "msg-1", now)).toEqual({});
});
