import { expect, test } from "vitest";
import { warningsIn } from "../support/aConfiguration.ts";

test("the least configuration warns of nothing", () => {
  expect(warningsIn({})).toEqual([]);
});

test("secrets over plain http are warned about, except on this machine", () => {
  expect(
    warningsIn({ vtn: { baseUrl: "http://api.example", tokenUrl: "http://127.0.0.1:1/token" } }),
  ).toEqual(["vtn.baseUrl: http://api.example, over which secrets travel in the clear"]);
});

test("a webhook without auth is warned about, unless none was written", () => {
  expect(warningsIn({ webhook: {} })).toHaveLength(1);
  expect(warningsIn({ webhook: { auth: "none" } })).toEqual([]);
});

test("doors that stand open to the network are warned about", () => {
  expect(warningsIn({ operator: { listen: "0.0.0.0:8080" } })).toHaveLength(1);
  const listen = "[::]:1883";
  expect(warningsIn({ mqtt: { url: undefined, embedded: { listen } } })).toHaveLength(1);
  expect(
    warningsIn({
      mqtt: { url: undefined, embedded: { listen }, username: "u", password: { env: "SECRET" } },
    }),
  ).toEqual([]);
});

test("a site without chargers is warned about", () => {
  expect(warningsIn({ chargers: [] })).toEqual(["chargers: no chargers"]);
});
