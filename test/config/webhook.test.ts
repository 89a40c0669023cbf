import { expect, test } from "vitest";
import { configured, mistakesIn } from "../support/aConfiguration.ts";

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

test("TLS needs certificate and key, and reads them anew each time", () => {
  const tls = { cert: { env: "CERT" }, key: { env: "KEY" } };
  const { webhook } = configured({ webhook: { tls } }, { CERT: "c", KEY: "k" });
  expect([webhook?.tls?.cert(), webhook?.tls?.key()]).toEqual(["c", "k"]);
  expect(mistakesIn({ webhook: { tls: { cert: { env: "SECRET" } } } })).toEqual(["webhook.tls.key: nothing"]);
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
