import { expect, test } from "vitest";
import { isLoopback, network, parseAddress, urlHost } from "../../../src/config/fields/address.ts";

test.each([
  ["127.0.0.1:8080", "127.0.0.1", 8080],
  ["[::]:8090", "::", 8090],
  ["localhost:0", "localhost", 0],
  ["gateway.depot.example:65535", "gateway.depot.example", 65_535],
])("%s is a valid address of a listener", (text, host, port) => {
  expect(parseAddress(text)).toEqual({ host, port });
});

test.each(["8080", ":8080", "127.0.0.1", "127.0.0.1:65536", "[nonsense]:80", "::1:80", "http://x:80", "x:"])(
  "%s is not valid",
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

test("a network is an address, or one with the length of its prefix", () => {
  for (const good of ["127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"]) expect(network.parse(good)).toBe(good);
  for (const bad of ["10.0.0.0/33", "fd00::/129", "proxy.example", "10.0.0/8", "", "loopback"])
    expect(network.safeParse(bad).success).toBe(false);
});

test("a listener on all addresses is reached from the same machine", () => {
  const hosts = ["0.0.0.0", "::", "::1", "fd00::5", "10.0.0.1", "localhost"];
  expect(hosts.map(urlHost)).toEqual(["127.0.0.1", "[::1]", "[::1]", "[fd00::5]", "10.0.0.1", "localhost"]);
});
