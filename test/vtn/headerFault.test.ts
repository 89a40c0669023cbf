import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { instant, minutes } from "../../src/domain/units.ts";
import { headerFault, signatureDiffers } from "../../src/vtn/refusals.ts";
import { type Scheme, verify } from "../../src/vtn/signature.ts";

const now = instant(Date.UTC(2026, 10, 21, 12));
const secrets = () => ["a secret of the tests"];
const body = Buffer.from('{"ID":"EV-1"}');
type Hmac = Extract<Scheme, { kind: "hmac" }>;
const hmac = (over: Partial<Hmac> = {}): Hmac => ({
  kind: "hmac",
  header: "X-Payload-Signature",
  algorithm: "sha256",
  encoding: "base64",
  timestamp: null,
  secrets,
  ...over,
});
const sign = ({ algorithm, encoding }: Hmac) =>
  createHmac(algorithm, "a secret of the tests").update(body).digest(encoding);
const timed = hmac({ timestamp: { header: "X-Sent-At", tolerance: minutes(5) } });
const timedHeaders = (at: string) => ({ "x-payload-signature": sign(timed), "x-sent-at": at });
const standard: Scheme = { kind: "standardWebhooks", secrets };
const standardHeaders = (over: Record<string, string>) => ({
  "webhook-id": "msg_1",
  "webhook-timestamp": String(now / 1000),
  "webhook-signature": `v1,${"A".repeat(43)}=`,
  ...over,
});
const reasonOf = (scheme: Scheme, headers: Record<string, string | string[]>) =>
  headerFault(scheme, headers, now)?.reason ?? null;

test("an accepted header has no fault, in every algorithm, encoding and spelling", () => {
  const spellings = [
    (text: string) => text,
    (text: string) => ` ${text} `,
    (text: string) => text.toUpperCase(),
  ];
  fc.assert(
    fc.property(
      fc.constantFrom("sha256" as const, "sha512" as const),
      fc.constantFrom("base64" as const, "hex" as const),
      fc.boolean(),
      fc.constantFrom(...spellings),
      (algorithm, encoding, hasPrefix, spelled) => {
        const scheme = hmac({ algorithm, encoding });
        const given = spelled((hasPrefix ? `${algorithm}=` : "") + sign(scheme));
        const headers = { "x-payload-signature": given };
        if (verify(scheme, headers, body, now)) expect(headerFault(scheme, headers, now)).toBeNull();
      },
    ),
  );
});

test.each([
  [hmac(), {}, "headerMissing"],
  [hmac(), { "x-payload-signature": "" }, "headerMissing"],
  [hmac(), { "x-payload-signature": `${"A".repeat(43)}=, ${"A".repeat(43)}=` }, "headerRepeated"],
  [hmac(), { "x-payload-signature": ["a", "b"] }, "headerRepeated"],
  [hmac(), { "x-payload-signature": "a".repeat(64) }, "hexInsteadOfBase64"],
  [hmac({ algorithm: "sha512" }), { "x-payload-signature": "a".repeat(128) }, "hexInsteadOfBase64"],
  [hmac({ encoding: "hex" }), { "x-payload-signature": sign(hmac()) }, "base64InsteadOfHex"],
  [hmac(), { "x-payload-signature": sign(hmac({ algorithm: "sha512" })) }, "malformed"],
  [hmac(), { "x-payload-signature": "x" }, "malformed"],
  [timed, { "x-payload-signature": sign(timed) }, "headerMissing"],
  [timed, { "x-payload-signature": sign(timed), "x-sent-at": ["1", "1"] }, "headerRepeated"],
  [timed, timedHeaders("soon"), "malformed"],
  [timed, timedHeaders(String(now / 1000 - 301)), "timestamp"],
  [timed, timedHeaders(String(now + 300_001)), "timestamp"],
  [timed, timedHeaders("2026-11-21T11:55:00Z"), null],
  [standard, {}, "headerMissing"],
  [standard, standardHeaders({ "webhook-timestamp": "soon" }), "malformed"],
  [standard, standardHeaders({ "webhook-timestamp": String(now / 1000 - 301) }), "timestamp"],
  [standard, standardHeaders({ "webhook-timestamp": String(now / 1000 + 61) }), "timestamp"],
  [standard, standardHeaders({ "webhook-signature": "v2,AAAA" }), "malformed"],
  [standard, standardHeaders({}), null],
  [{ kind: "bearer", secrets }, {}, "headerMissing"],
  [{ kind: "bearer", secrets }, { authorization: "Basic abc" }, "malformed"],
  [{ kind: "bearer", secrets }, { authorization: "Bearer abc" }, null],
  [{ kind: "none" }, {}, null],
] as const satisfies readonly (readonly [Scheme, Record<string, unknown>, string | null])[])(
  "%# a fault of the headers is named",
  (scheme, headers, reason) => {
    expect(reasonOf(scheme, headers as Record<string, string>)).toBe(reason);
  },
);

test("an explanation names the setting to check, and repeats nothing of the request", () => {
  const hex = "ab".repeat(32);
  const fault = headerFault(hmac(), { "x-payload-signature": hex }, now);
  expect(fault?.explanation).toContain("webhook.auth.hmac.encoding is base64");
  expect(fault?.explanation).not.toContain(hex);
  expect(headerFault(standard, standardHeaders({ "webhook-timestamp": "0" }), now)?.explanation).toMatch(
    /signed \d+ s ago/,
  );
  expect(headerFault(timed, timedHeaders(String(now / 1000 - 360)), now)?.explanation).toContain(
    "signed 360 s ago, and webhook.auth.hmac.timestamp.tolerance is 300 s",
  );
  expect(signatureDiffers(timed).explanation).toContain("the header X-Sent-At, a dot and the body");
  expect(signatureDiffers({ kind: "bearer", secrets }).explanation).toContain("token");
});
