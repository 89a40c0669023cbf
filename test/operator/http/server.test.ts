import { expect, test } from "vitest";

import { hostCheck } from "../../../src/operator/http/server.ts";

const isOurs = hostCheck(["0.0.0.0", "Gateway-7", "depot.example"]);

test.each([
  undefined,
  "127.0.0.1:8080",
  "192.0.2.7",
  "[::1]:8080",
  "localhost:8080",
  "LOCALHOST",
  "app.localhost",
  "gateway-7:8080",
  "depot.example.",
])("Host %s is accepted", (host) => expect(isOurs(host)).toBe(true));

test.each([
  "evil.example",
  "evil.example:8080",
  "",
  "127.0.0.1.evil.example",
  "[evil]",
  "localhost.evil.example",
  "a:b:c",
])("Host %j is refused", (host) => expect(isOurs(host)).toBe(false));
