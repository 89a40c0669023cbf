import { expect, test } from "vitest";

import { pageAddress } from "../../src/daemon/standIn.ts";

const OPERATOR = {
  listen: { host: "127.0.0.1", port: 8080 },
  hosts: [],
  tls: null,
  trustProxy: false,
} as const;
const TLS = {} as Parameters<typeof pageAddress>[0]["tls"];

const at = (over: Partial<Parameters<typeof pageAddress>[0]>): string | null =>
  pageAddress({ ...OPERATOR, ...over }, 8080, "gw-1");

test("the address of the page is one that people can open", () => {
  expect(at({})).toBe("http://127.0.0.1:8080");
  expect(at({ listen: { host: "0.0.0.0", port: 8080 }, tls: TLS })).toBe("https://gw-1:8080");
  expect(at({ listen: { host: "10.0.0.7", port: 8080 }, tls: TLS })).toBe("https://10.0.0.7:8080");
  expect(at({ listen: { host: "fd00::7", port: 8080 }, tls: TLS })).toBe("https://[fd00::7]:8080");
});

test("of names that both gateways list, the machine's own counts", () => {
  const hosts = ["gw-2.depot.example", "gw-1.depot.example"];
  expect(at({ hosts, listen: { host: "0.0.0.0", port: 8080 }, tls: TLS })).toBe(
    "https://gw-1.depot.example:8080",
  );
  expect(at({ hosts: ["gw-1"], trustProxy: true })).toBe("https://gw-1");
});

test("behind a reverse proxy the page has the name of the proxy, or none that is known", () => {
  expect(at({ hosts: ["depot.example"], trustProxy: true })).toBe("https://depot.example");
  expect(at({ trustProxy: ["10.0.0.0/8"] })).toBeNull();
});
