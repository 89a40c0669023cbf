import { expect, test } from "vitest";

import { configured, mistakesIn, theMistake } from "../../support/aConfiguration.ts";

test("by default the listener is open on loopback", () => {
  expect(configured({}).operator).toEqual({
    listen: { host: "127.0.0.1", port: 8080 },
    hosts: [],
    access: "open",
    trustProxy: false,
    mqttHolds: false,
    tls: null,
  });
});

test("open access is refused where other machines reach it", () => {
  expect(theMistake({ operator: { listen: "0.0.0.0:8080" } })).toEqual({
    path: "operator.access",
    found: "open at 0.0.0.0, where other machines reach the API without a login",
    expected:
      "login, with operator.tls or with operator.trustProxy behind a reverse proxy; or operator.listen on 127.0.0.1",
  });
  for (const listen of ["localhost:8080", "[::1]:8080", "127.0.0.2:0"])
    expect(mistakesIn({ operator: { listen } })).toEqual([]);
});

test("a login in the clear is refused, except on loopback", () => {
  const access = "login";
  expect(theMistake({ operator: { listen: "192.0.2.1:8080", access } })).toEqual({
    path: "operator.access",
    found: "login in the clear at 192.0.2.1: passwords and tokens could be read on the network",
    expected: "operator.tls, or operator.trustProxy with the reverse proxy that serves HTTPS",
  });
  expect(mistakesIn({ operator: { access } })).toEqual([]);
  expect(mistakesIn({ operator: { listen: "0.0.0.0:8080", access, trustProxy: ["10.0.0.1"] } })).toEqual([]);
});

test("the certificate of the listener is checked as the webhook's is", () => {
  const tls = { cert: "/none/cert.pem", key: "/none/key.pem" };
  expect(mistakesIn({ operator: { listen: "0.0.0.0:8443", access: "login", tls } })).toEqual([
    "operator.tls.cert: /none/cert.pem, which does not exist",
    "operator.tls.key: /none/key.pem, which does not exist",
  ]);
});
