import { expect, test } from "vitest";
import { configured, mistakesIn, SECRET, warningsIn } from "../../support/aConfiguration.ts";
import { Authority } from "../../support/certificates.ts";

test("a site without a webhook has no listener", () => {
  expect(configured({}).webhook).toBeNull();
});

test("a webhook without auth is a hint on the documented port and path", () => {
  expect(configured({ webhook: {} }).webhook).toEqual({
    listen: { host: "0.0.0.0", port: 8090 },
    path: "/webhooks/events",
    trustProxy: false,
    tls: null,
    clientCa: null,
    auth: { kind: "none" },
  });
});

test("an HMAC is SHA-256 in base64 in X-Payload-Signature by default, and secrets rotate (F71)", () => {
  const secret = [{ env: "NEW" }, { env: "OLD" }];
  const auth = configured({ webhook: { auth: { hmac: { secret } } } }, { NEW: "n", OLD: "o" }).webhook?.auth;
  expect(auth).toMatchObject({
    kind: "hmac",
    header: "X-Payload-Signature",
    algorithm: "sha256",
    encoding: "base64",
  });
  expect(auth !== undefined && auth.kind !== "none" && auth.secrets()).toEqual(["n", "o"]);
});

const hmacWith = (timestamp?: object) => {
  const hmac = { secret: { env: "SECRET" }, ...(timestamp === undefined ? {} : { timestamp }) };
  return configured({ webhook: { auth: { hmac } } }).webhook?.auth;
};

test("an HMAC may cover a timestamp, five minutes off by default", () => {
  expect(hmacWith()).toMatchObject({ timestamp: null });
  expect(hmacWith({ header: "X-Sent-At" })).toMatchObject({
    timestamp: { header: "X-Sent-At", tolerance: 300_000 },
  });
  expect(hmacWith({ header: "X-Sent-At", tolerance: "30s" })).toMatchObject({
    timestamp: { tolerance: 30_000 },
  });
});

test.each(["standardWebhooks", "bearer"])("%s has its secret", (kind) => {
  const listen = "127.0.0.1:8090";
  const auth = configured({ webhook: { listen, auth: { [kind]: { secret: { env: "SECRET" } } } } }).webhook
    ?.auth;
  expect(auth?.kind).toBe(kind);
  expect(auth !== undefined && auth.kind !== "none" && auth.secrets()).toEqual([SECRET]);
});

test("TLS needs certificate and key, and an invalid certificate is explained", () => {
  using authority = new Authority();
  const { cert, key } = authority.issue("gateway");
  const { webhook } = configured({ webhook: { tls: { cert, key, clientCa: cert } } });
  expect(webhook?.clientCa?.current()).toMatch(/^-----BEGIN CERTIFICATE-----/);
  expect(webhook?.tls?.current().cert).toMatch(/^-----BEGIN CERTIFICATE-----/);
  expect(mistakesIn({ webhook: { tls: { cert } } })).toEqual(["webhook.tls.key: nothing"]);
  expect(mistakesIn({ webhook: { tls: { cert: { env: "SECRET" }, key } } })).toEqual([
    "webhook.tls.cert: $SECRET, which holds no certificate that can be read",
  ]);
});

test("proxies are listed by address; true is still accepted", () => {
  const trustProxy = ["127.0.0.1", "10.0.0.0/8"];
  expect(configured({ webhook: { trustProxy } }).webhook?.trustProxy).toEqual(trustProxy);
  expect(configured({ webhook: { trustProxy: true } }).webhook?.trustProxy).toBe(true);
});

test.each([
  ["trustProxy", []],
  ["trustProxy", ["proxy.example"]],
  ["trustProxy", "127.0.0.1"],
  ["listen", 8090],
  ["listen", "8090"],
  ["path", "webhooks"],
  ["path", "/a?b"],
  ["auth", "hmac"],
  ["auth", { hmac: { header: "X Y", secret: { env: "SECRET" } } }],
  ["auth", { hmac: {} }],
  ["auth", { hmac: { secret: { env: "SECRET" }, timestamp: {} } }],
  ["auth", { hmac: { secret: { env: "SECRET" }, timestamp: { header: "X-Sent-At", tolerance: "0s" } } }],
])("a webhook with %s %j is refused", (key, value) => {
  expect(mistakesIn({ webhook: { [key]: value } })).toHaveLength(1);
});

test.each([
  "whsec_!!",
  "whsec_",
  "b3RoZXI=",
  "not base64 at all, but long enough",
  `${SECRET} `,
  SECRET.slice(0, -1),
])("%j is not a secret of Standard Webhooks: another text, or none, could sign", (KEY) => {
  const webhook = { auth: { standardWebhooks: { secret: { env: "KEY" } } } };
  expect(mistakesIn({ webhook }, { KEY })).toEqual([
    "webhook.auth.standardWebhooks.secret: $KEY, which is not base64 of at least 24 bytes",
  ]);
});

test("a token that is sent in the clear is refused; TLS, a proxy or loopback make it acceptable", () => {
  using authority = new Authority();
  const tls = authority.issue("gateway");
  const auth = { bearer: { secret: { env: "SECRET" } } };
  expect(mistakesIn({ webhook: { auth } })).toEqual(["webhook.auth.bearer: a token in the clear at 0.0.0.0"]);
  for (const over of [{ tls }, { trustProxy: true }, { trustProxy: ["10.0.0.1"] }, { listen: "[::1]:8090" }])
    expect(mistakesIn({ webhook: { ...over, auth } })).toEqual([]);
});

test("a short secret is warned about, and not shown", () => {
  const webhook = { auth: { hmac: { secret: { env: "KEY" } } } };
  expect(warningsIn({ webhook }, { KEY: "hunter2" })).toEqual([
    "webhook.auth.hmac.secret: $KEY, which is shorter than 16 bytes",
  ]);
  expect(warningsIn({ webhook }, { KEY: "sixteen bytes it" })).toEqual([]);
});
