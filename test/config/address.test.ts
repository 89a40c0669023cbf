import { expect, test } from "vitest";
import { isLoopback, parseAddress } from "../../src/config/address.ts";

test.each([
  ["127.0.0.1:8080", "127.0.0.1", 8080],
  ["[::]:8090", "::", 8090],
  ["localhost:0", "localhost", 0],
  ["gateway.depot.example:65535", "gateway.depot.example", 65_535],
])("%s is a place to listen", (text, host, port) => {
  expect(parseAddress(text)).toEqual({ host, port });
});

test.each(["8080", ":8080", "127.0.0.1", "127.0.0.1:65536", "[nonsense]:80", "::1:80", "http://x:80", "x:"])(
  "%s is not",
  (text) => {
    expect(parseAddress(text)).toBeNull();
  },
);

test("only addresses of this machine count as loopback", () => {
  const hosts = [
    "127.0.0.1",
    "127.1.2.3",
    "localhost",
    "::1",
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "127.evil.example",
  ];
  expect(hosts.filter(isLoopback)).toEqual(["127.0.0.1", "127.1.2.3", "localhost", "::1"]);
});
