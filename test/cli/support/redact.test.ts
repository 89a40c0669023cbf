import { randomBytes } from "node:crypto";
import { assert, property, string } from "fast-check";
import { expect, test } from "vitest";

import { Redactor } from "../../../src/cli/support/redact.ts";

const nothingKnown = new Redactor([]);

test.each([
  ["mqtt://depot:hunter2@broker:1883 refused", "mqtt://[removed]@broker:1883 refused"],
  ["https://depot:p@ss/word@api.example/x", "https://[removed]@api.example/x"],
  ["Authorization: Bearer abcdefgh12345", "Authorization: [removed] [removed]"],
  ['{"authorization":"Basic ZGVwb3Q6aHVudGVyMg=="}', '{"authorization":"[removed]"}'],
  ["sent Bearer abcdefgh12345 to it", "sent Bearer [removed] to it"],
  ["login?once=f3Gk-9s now", "login?once=[removed] now"],
  ["password=hunter2, user=depot", "password=[removed], user=depot"],
  ['{"clientSecret":"hunter2","scope":"all"}', '{"clientSecret":"[removed]","scope":"all"}'],
  [String.raw`"{\"password\":\"hunter2\"}"`, String.raw`"{\"password\":\"[removed]\"}"`],
  ['{"password":123456,"next":1}', '{"password":"[removed]","next":1}'],
  [String.raw`{"note":"password: a\"b c"}`, String.raw`{"note":"password: [removed] c"}`],
  ["access_token: abc.def", "access_token: [removed]"],
  ["accessToken='hunter2'", "accessToken='[removed]'"],
  ["X-Payload-Signature: q83v", "X-Payload-Signature: [removed]"],
  ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "[removed]"],
  ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[removed]"],
  [`token setpointd_${"aB3-".repeat(10)}xyz`, "token [removed]"],
  ["-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nnext", "[removed]\nnext"],
  ["-----BEGIN EC PRIVATE KEY-----\nMIIE and cut off", "[removed]"],
])("%j becomes %j", (text, expected) => {
  expect(nothingKnown.text(text)).toBe(expected);
});

test.each([
  "tokenUrl: https://id.partner.example/connect/token",
  "clientSecret: { file: vtn-client-secret }",
  "clientSecret:\n  file: vtn-client-secret",
  '"@fastify/cookie": "11.1.5"',
  '{"clientSecret":{"file":"vtn-client-secret"}}',
  "setpointd_certificate_expiry_timestamp_seconds 1800000000",
  "setpointd_token_age_seconds 12",
  '{"signature":0,"token":null}',
  '{"name":"token","found":"issued by id.partner.example to depot"}',
  "the site key stays in site.key, mode 0600",
])("%j stays as it is", (text) => {
  expect(nothingKnown.text(text)).toBe(text);
});

test("a known secret is removed in every form", () => {
  const secret = 'a "pass/word" with ümlaut';
  const key = randomBytes(32);
  const redactor = new Redactor([Buffer.from(secret), key, Buffer.from("abc")]);
  for (const form of [
    secret,
    JSON.stringify(secret),
    encodeURIComponent(secret),
    Buffer.from(secret).toString("base64"),
    Buffer.from(secret).toString("hex"),
    key.toString("base64"),
    key.toString("base64url"),
    key.toString("hex"),
    key.toString("hex").toUpperCase(),
  ]) {
    const text = redactor.text(`before ${form} after`);
    expect(text).toMatch(/^before "?\[removed\]"?={0,2} after$/);
  }
  // Three characters occur everywhere.
  expect(redactor.text("abcd")).toBe("abcd");
});

test("a known secret is never in the result, whatever surrounds it", () => {
  assert(
    property(
      string({ minLength: 6, maxLength: 40 }).filter((secret) => !"[removed]".includes(secret)),
      string(),
      string(),
      (secret, before, after) => {
        const text = new Redactor([Buffer.from(secret)]).text(`${before}${secret}${after}`);
        // What is left beside the mark could form it only by chance.
        return !text.replaceAll("[removed]", "\u0000").includes(secret);
      },
    ),
  );
});
