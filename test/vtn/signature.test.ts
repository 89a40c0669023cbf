import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { instant, minutes } from "../../src/domain/units.ts";
import { type Scheme, verify } from "../../src/vtn/signature.ts";

const now = instant(Date.UTC(2026, 10, 21, 12));
const body = Buffer.from('{"ID":"EV-1"}');

const hmac = (over: Partial<Extract<Scheme, { kind: "hmac" }>> = {}): Scheme => ({
  kind: "hmac",
  header: "X-Payload-Signature",
  algorithm: "sha256",
  encoding: "base64",
  timestamp: null,
  secrets: () => ["first", "second"],
  ...over,
});
const sign = (secret: string, encoding: "base64" | "hex", algorithm = "sha256", bytes = body) =>
  createHmac(algorithm, secret).update(bytes).digest(encoding);
const given = (signature: string) => ({ "x-payload-signature": signature });

test("a published vector of GitHub's webhooks is accepted", () => {
  const scheme = hmac({
    header: "X-Hub-Signature-256",
    encoding: "hex",
    secrets: () => ["It's a Secret to Everybody"],
  });
  const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
  expect(verify(scheme, { "x-hub-signature-256": signature }, Buffer.from("Hello, World!"), now)).toBe(true);
  expect(verify(scheme, { "x-hub-signature-256": signature }, Buffer.from("Hello, World?"), now)).toBe(false);
});

test("F71: while secrets are rotated, each active one signs", () => {
  expect(verify(hmac(), given(sign("first", "base64")), body, now)).toBe(true);
  expect(verify(hmac(), given(sign("second", "base64")), body, now)).toBe(true);
  expect(verify(hmac(), given(sign("third", "base64")), body, now)).toBe(false);
});

test("either algorithm and encoding, with the algorithm's prefix or without", () => {
  for (const algorithm of ["sha256", "sha512"] as const) {
    for (const encoding of ["base64", "hex"] as const) {
      const scheme = hmac({ algorithm, encoding });
      const signature = sign("first", encoding, algorithm);
      expect(verify(scheme, given(signature), body, now)).toBe(true);
      expect(verify(scheme, given(`${algorithm}=${signature}`), body, now)).toBe(true);
      expect(verify(scheme, given(`md5=${signature}`), body, now)).toBe(false);
    }
  }
});

test("hex is read in either case, base64 exactly", () => {
  expect(verify(hmac({ encoding: "hex" }), given(sign("first", "hex").toUpperCase()), body, now)).toBe(true);
  const signature = sign("first", "base64");
  expect(verify(hmac(), given(signature.replace(/=+$/, "")), body, now)).toBe(false);
  expect(verify(hmac(), given(signature.toLowerCase()), body, now)).toBe(false);
});

test("F69: an absent, empty or doubled signature, and a secret that is empty, let no sender in", () => {
  expect(verify(hmac(), {}, body, now)).toBe(false);
  expect(verify(hmac(), given(""), body, now)).toBe(false);
  expect(verify(hmac(), given("sha256="), body, now)).toBe(false);
  const good = sign("first", "base64");
  expect(verify(hmac(), { "x-payload-signature": [good, good] }, body, now)).toBe(false);
  expect(verify(hmac({ secrets: () => [""] }), given(sign("", "base64")), body, now)).toBe(false);
  expect(verify(hmac({ secrets: () => [] }), given(good), body, now)).toBe(false);
});

test("F69: never accepted is a body of which any byte was changed", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1 }),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (bytes, at, change) => {
        const signature = given(sign("first", "base64", "sha256", Buffer.from(bytes)));
        expect(verify(hmac(), signature, Buffer.from(bytes), now)).toBe(true);
        const changed = Buffer.from(bytes);
        const place = at % changed.length;
        changed[place] = (changed[place] ?? 0) ^ change;
        expect(verify(hmac(), signature, changed, now)).toBe(false);
      },
    ),
  );
});

const timestamp = { header: "X-Payload-Timestamp", tolerance: minutes(5) };
const timed = (over: Partial<Extract<Scheme, { kind: "hmac" }>> = {}) => hmac({ timestamp, ...over });
const sentAt = (moment: string, signedMoment = moment) => ({
  "x-payload-timestamp": moment,
  ...given(
    sign("first", "base64", "sha256", Buffer.concat([Buffer.from(`${signedMoment}.`), Buffer.from(body)])),
  ),
});

test("a signed timestamp may be Unix seconds, Unix milliseconds or ISO 8601", () => {
  for (const moment of [
    String(now / 1000),
    String(now),
    "2026-11-21T12:00:00Z",
    "2026-11-21T12:00:00.123456789Z",
    "2026-11-21T13:00:00+01:00",
  ])
    expect(verify(timed(), sentAt(moment), body, now), moment).toBe(true);
});

test("a captured delivery is not believed again once its timestamp is outside the tolerance", () => {
  for (const [seconds, accepted] of [
    [300, true],
    [301, false],
    [-300, true],
    [-301, false],
  ] as const) {
    const later = instant(now + seconds * 1000);
    expect(verify(timed(), sentAt(String(now / 1000)), body, later), `${seconds} s`).toBe(accepted);
  }
});

test("a timestamp cannot be left out, replaced, or taken from the body", () => {
  const moment = String(now / 1000);
  const other = String(now / 1000 + 1);
  expect(verify(timed(), sentAt(other, moment), body, now)).toBe(false);
  expect(verify(timed(), { ...sentAt(moment), "x-payload-timestamp": undefined }, body, now)).toBe(false);
  expect(verify(timed(), { ...sentAt(moment), "x-payload-timestamp": [moment, moment] }, body, now)).toBe(
    false,
  );
  expect(
    verify(timed(), { ...given(sign("first", "base64")), "x-payload-timestamp": moment }, body, now),
  ).toBe(false);
  expect(verify(timed(), sentAt("soon"), body, now)).toBe(false);
  const joined = Buffer.concat([Buffer.from(`${moment}.`), body]);
  expect(verify(timed(), sentAt(moment), joined, now)).toBe(false);
});

// The example of the Standard Webhooks specification.
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const signedAt = 1_614_265_330;
const standardBody = Buffer.from('{"test": 2432232314}');
const standard = (secret = SECRET): Scheme => ({
  kind: "standardWebhooks",
  secrets: () => ["b3RoZXI=", secret],
});
const standardHeaders = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": String(signedAt),
  "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};
const later = (seconds: number) => instant((signedAt + seconds) * 1000);

test("the vector of Standard Webhooks is accepted, with its secret prefixed or bare", () => {
  expect(verify(standard(), standardHeaders, standardBody, later(0))).toBe(true);
  expect(verify(standard(SECRET.slice(6)), standardHeaders, standardBody, later(0))).toBe(true);
  expect(verify(standard(), standardHeaders, body, later(0))).toBe(false);
});

test("a single one of several signatures has to match, and only of version 1", () => {
  const signature = standardHeaders["webhook-signature"];
  const among = { ...standardHeaders, "webhook-signature": `v1,AAAA v1a,AAAA ${signature}` };
  expect(verify(standard(), among, standardBody, later(0))).toBe(true);
  const asymmetric = { ...standardHeaders, "webhook-signature": signature.replace("v1,", "v1a,") };
  expect(verify(standard(), asymmetric, standardBody, later(0))).toBe(false);
  // Each costs a hash, of anybody: of thousands, the first ones are looked at.
  const crowd = { ...standardHeaders, "webhook-signature": `${"v ".repeat(16)}${signature}` };
  expect(verify(standard(), crowd, standardBody, later(0))).toBe(false);
});

test("F69: a signature lives from 60 s before its time to 300 s after", () => {
  for (const [seconds, accepted] of [
    [300, true],
    [301, false],
    [-60, true],
    [-61, false],
  ] as const) {
    expect(verify(standard(), standardHeaders, standardBody, later(seconds)), `${seconds} s`).toBe(accepted);
  }
});

test("F69: neither id nor time can be left out or changed", () => {
  for (const change of [
    { "webhook-id": "msg_other" },
    { "webhook-id": undefined },
    { "webhook-timestamp": String(signedAt + 1) },
    { "webhook-timestamp": "soon" },
    { "webhook-timestamp": undefined },
    { "webhook-signature": undefined },
  ]) {
    expect(verify(standard(), { ...standardHeaders, ...change }, standardBody, later(0))).toBe(false);
  }
  const empty = createHmac("sha256", "").update(`m.${signedAt}.`).update(standardBody).digest("base64");
  const headers = { ...standardHeaders, "webhook-id": "m", "webhook-signature": `v1,${empty}` };
  expect(verify(standard("whsec_"), headers, standardBody, later(0))).toBe(false);
});

test("a bearer secret may have letters beyond ASCII, which a header carries byte by byte", () => {
  const scheme: Scheme = { kind: "bearer", secrets: () => ["nøkkel"] };
  const carried = Buffer.from("Bearer nøkkel").toString("latin1");
  expect(verify(scheme, { authorization: carried }, body, now)).toBe(true);
});

test("a bearer secret is compared whole", () => {
  const scheme: Scheme = { kind: "bearer", secrets: () => ["old", "new"] };
  const accepts = (authorization: string) => verify(scheme, { authorization }, body, now);
  expect([accepts("Bearer old"), accepts("bearer new")]).toEqual([true, true]);
  expect([accepts("Bearer ol"), accepts("Bearer "), accepts("old"), accepts("Basic old")]).not.toContain(
    true,
  );
  expect(verify(scheme, {}, body, now)).toBe(false);
});

test("without a scheme everybody is let in", () => {
  expect(verify({ kind: "none" }, {}, body, now)).toBe(true);
});
