import { expect, test } from "vitest";
import { configured, mistakesIn } from "../support/aConfiguration.ts";
import { Authority } from "../support/certificates.ts";

test("a site without a webhook has no listener", () => {
  expect(configured({}).webhook).toBeNull();
});

test("a webhook without auth is a hint on the documented port and path", () => {
  expect(configured({ webhook: {} }).webhook).toEqual({
    listen: { host: "0.0.0.0", port: 8090 },
    path: "/webhooks/events",
    trustProxy: false,
    tls: null,
    auth: { kind: "none" },
  });
});

test("an HMAC is SHA-256 in base64 in X-Payload-Signature unless it says otherwise, and secrets rotate (F71)", () => {
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

test.each(["standardWebhooks", "bearer"])("%s has its secret", (kind) => {
  const auth = configured({ webhook: { auth: { [kind]: { secret: { env: "SECRET" } } } } }).webhook?.auth;
  expect(auth?.kind).toBe(kind);
  expect(auth !== undefined && auth.kind !== "none" && auth.secrets()).toEqual(["s"]);
});

test("TLS needs certificate and key, and a certificate that is none is explained", () => {
  using authority = new Authority();
  const { cert, key } = authority.issue("gateway");
  const { webhook } = configured({ webhook: { tls: { cert, key } } });
  expect(webhook?.tls?.current().cert).toMatch(/^-----BEGIN CERTIFICATE-----/);
  expect(mistakesIn({ webhook: { tls: { cert } } })).toEqual(["webhook.tls.key: nothing"]);
  expect(mistakesIn({ webhook: { tls: { cert: { env: "SECRET" }, key } } })).toEqual([
    "webhook.tls.cert: $SECRET, which holds no certificate that can be read",
  ]);
});

test.each([
  ["listen", 8090],
  ["listen", "8090"],
  ["path", "webhooks"],
  ["path", "/a?b"],
  ["auth", "hmac"],
  ["auth", { hmac: { header: "X Y", secret: { env: "SECRET" } } }],
  ["auth", { hmac: {} }],
])("a webhook with %s %j is refused", (key, value) => {
  expect(mistakesIn({ webhook: { [key]: value } })).toHaveLength(1);
});
