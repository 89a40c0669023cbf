import { expect, test } from "vitest";
import { warningsIn } from "../support/aConfiguration.ts";

test("the smallest configuration has no warnings", () => {
  expect(warningsIn({})).toEqual([]);
});

test("secrets over plain http are warned about, except on this machine", () => {
  expect(
    warningsIn({ vtn: { baseUrl: "http://api.example", tokenUrl: "http://127.0.0.1:1/token" } }),
  ).toEqual(["vtn.baseUrl: http://api.example, over which secrets travel in the clear"]);
});

test.each(["/energy-coordination/v1", "/a/VTN/v1/events", "/vtn"])(
  "a baseUrl that ends in a path family, %s, is warned about",
  (path) => {
    const baseUrl = `https://api.example${path}`;
    expect(warningsIn({ vtn: { baseUrl: `${baseUrl}/` } })).toEqual([
      `vtn.baseUrl: ${baseUrl}, to which /energy-coordination/v1/events is added`,
    ]);
  },
);

test("a baseUrl with a path of its own has no warning", () => {
  expect(warningsIn({ vtn: { baseUrl: "https://api.example/vtn-gateway/depot" } })).toEqual([]);
});

test("a webhook without auth is warned about, unless auth is none", () => {
  expect(warningsIn({ webhook: {} })).toHaveLength(1);
  expect(warningsIn({ webhook: { auth: "none" } })).toEqual([]);
});

test("listeners that are open to the network are warned about", () => {
  const listen = "[::]:1883";
  expect(warningsIn({ mqtt: { url: undefined, embedded: { listen } } })).toHaveLength(1);
  expect(warningsIn({ brokers: { yard: { embedded: { listen } } } })).toEqual([
    expect.stringContaining("brokers.yard.embedded.listen"),
  ]);
  expect(
    warningsIn({
      mqtt: { url: undefined, embedded: { listen }, username: "u", password: { env: "SECRET" } },
    }),
  ).toEqual([]);
});

test("a site without chargers is warned about", () => {
  expect(warningsIn({ chargers: [] })).toEqual(["chargers: no chargers"]);
});

const broker = (url: string) => ({ mqtt: { url, username: "u", password: { env: "SECRET" } } });

test("a password sent in the clear to another host is warned about", () => {
  expect(warningsIn(broker("mqtt://10.0.0.7:1883"))).toEqual([
    "mqtt.url: mqtt://10.0.0.7:1883, over which the password travels in the clear",
  ]);
  expect(warningsIn(broker("ws://broker.example/mqtt"))).toHaveLength(1);
  for (const url of ["mqtts://10.0.0.7", "mqtt://127.0.0.1:1883"])
    expect(warningsIn(broker(url))).toEqual([]);
});

const withIdentity = (identity: object) =>
  warningsIn({ vehicles: [{ id: "v1", identities: [{ rfid: "04A2B3C4" }, identity] }] });

test("an identity that no charger can report is a warning: a kind that is misspelt, or a MAC address that is none", () => {
  expect(withIdentity({ mac: "zzz" })).toEqual([
    'vehicles[0].identities[1]: mac "zzz", which is no MAC address',
  ]);
  expect(withIdentity({ macx: "02:AA:BB:00:00:01" })).toEqual([
    'vehicles[0].identities[1]: the kind "macx", which no make is known to report',
  ]);
  for (const mac of ["02:AA:BB:00:00:01", "02-aa-bb-00-00-01", "02aabb000001", "02aabbfffe000001"])
    expect(withIdentity({ mac })).toEqual([]);
  for (const kind of ["evccid", "emaid", "vin", "name", "Rfid", "badge"])
    expect(withIdentity({ [kind]: "x" })).toEqual([]);
});
