import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

import { NATIVE_ONLY } from "../../src/config/checks.ts";
import { fleetFrom, loadFleet, siteFrom, storedSite } from "../../src/config/fleet.ts";
import { JSON_SCHEMAS } from "../../packaging/jsonSchemas.ts";
import { keysOf } from "../support/schemaKeys.ts";

const textOf = (name: string): string =>
  readFileSync(new URL(`../../config/${name}`, import.meta.url), "utf8");
const example = textOf("example-fleet.yaml");
const exampleSite = textOf("example-site.yaml");

function place() {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const write = (name: string, text: string): void =>
    writeFileSync(join(directory, name), `${text}\n`, { mode: 0o600 });
  write("database-url", "postgres://setpointd:secret@127.0.0.1/setpointd");
  for (const name of ["vtn-client-secret", "webhook-secret", "mqtt-password"])
    write(name, "made for this very test, and long enough");
  write("site-keys", Buffer.alloc(32, 7).toString("base64"));
  return { env: {}, directory };
}

function aFleet(text = example) {
  const loaded = fleetFrom(text, place());
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.mistakes));
  return loaded.fleet;
}

const mistakesOf = (text: string) => {
  const loaded = fleetFrom(text, place());
  return loaded.ok ? [] : loaded.mistakes.map(({ path, found }) => `${path}: ${found}`);
};

type Loaded = ReturnType<typeof fleetFrom> | ReturnType<typeof siteFrom>;

const warned = (loaded: Loaded) => (loaded.ok ? loaded.warnings.map(({ path }) => path) : loaded.mistakes);

const expectedIn = (loaded: Loaded) => (loaded.ok ? "" : loaded.mistakes[0]?.expected);

/** Paths of the mistakes of a site. */
function shown(text: string) {
  const read = siteFrom(aFleet(), text, NATIVE_ONLY);
  return read.ok ? [] : read.mistakes.map(({ path }) => path);
}

test("both examples work as soon as the secrets are there", () => {
  const fleet = aFleet();
  expect(fleet).toMatchObject({ sitesAtMost: 10_000, database: { schema: "setpointd", lease: 10_000 } });
  const site = siteFrom(fleet, exampleSite, NATIVE_ONLY);
  expect(site).toMatchObject({
    ok: true,
    warnings: [],
    config: {
      site: { id: "depot-north", timezone: "Europe/Oslo" },
      vtn: { clientId: "fleet" },
      mqtt: { reach: { url: "mqtts://broker.fleet.example:8883" } },
      chargers: [{ id: "bay-01" }, { id: "bus-dc-1" }],
    },
  });
});

test("a site may override the broker, and is the same from the database", () => {
  const fleet = aFleet();
  const read = siteFrom(fleet, exampleSite.replace("#mqtt:", "mqtt:"), NATIVE_ONLY);
  if (!read.ok) throw new Error(JSON.stringify(read.mistakes));
  expect(read.config.mqtt.reach).toEqual({ kind: "url", url: "mqtt://10.20.0.5:1883" });
  const stored = storedSite(fleet, JSON.parse(JSON.stringify(read.value)), NATIVE_ONLY);
  expect(stored.ok && stored.config.chargers).toEqual(read.config.chargers);
});

test.each<[string, string, string]>([
  ["site: { id: x }\nvtn: {}", "vtn", "a key of the fleet"],
  ["site: { id: x }\nchargers: [{ id: a, current: { min: 40, max: 32 } }]", "chargers[0].current", "limits"],
  ["site: { id: x }\nvehicles: [{ id: v, charger: nowhere }]", "vehicles[0].charger", "an unknown charger"],
  ["site: { id: x }\nvehicles: [{ id: v }, { id: v }]", "vehicles[1].id", "a vehicle twice"],
  ["site: { id: x }\nmqtt: { embedded: {} }", "mqtt.embedded", "an embedded broker"],
  ["site: { id: x }\nmqtt: { url: 'mqtt://x', password: { file: none } }", "mqtt.password", "a broker"],
  ["chargers: []", "site", "no site"],
  ["[", "", "no YAML"],
])("a wrong site file is refused with its path: %s", (text, path) => {
  const read = siteFrom(aFleet(), text, NATIVE_ONLY);
  expect(read.ok ? [] : read.mistakes.map((each) => each.path)).toContain(path);
});

test("a wrong fleet file is refused with its path", () => {
  expect(mistakesOf(example.replace("listen: 127.0.0.1:8080", "listen: 0.0.0.0:8080"))).toEqual([
    expect.stringContaining("operator.access: open at 0.0.0.0"),
  ]);
  expect(mistakesOf(example.replace(/^ {2}postgres:\n( {4}.*\n)+/m, ""))).toEqual([
    expect.stringContaining("state.postgres"),
  ]);
  expect(mistakesOf(`${example}\nchargers: []`)).toEqual([expect.stringContaining("chargers")]);
  expect(mistakesOf(example.replace(/^ {4}siteKeys.*$/m, ""))).toEqual(["state.postgres.siteKeys: nothing"]);
  expect(
    mistakesOf(example.replace(/url: mqtts.*\n.*\n.*$/m, "embedded: { listen: '127.0.0.1:1' }")),
  ).toContainEqual("mqtt.embedded: a broker inside setpointd");
  expect(mistakesOf("[")).toHaveLength(1);
  expect(loadFleet("/nowhere/fleet.yaml", {})).toMatchObject({ ok: false, mistakes: [{ path: "" }] });
});

test("a fleet is warned of what a site is warned of, each file of its own keys", () => {
  const exposed = example.replace(/tokenUrl: https/, "tokenUrl: http").replace(/url: mqtts/, "url: mqtt");
  expect(warned(fleetFrom(exposed, place()))).toEqual(["vtn.tokenUrl", "mqtt.url"]);
  const site = "site: { id: x }\nvehicles: [{ id: v, departures: [{ at: '05:40', soc: 80 }] }]";
  const own = "mqtt: { url: 'mqtt://broker', username: u, password: { file: mqtt-password } }";
  expect(warned(siteFrom(aFleet(), site, NATIVE_ONLY))).toEqual([
    "vehicles[0].departures[0].soc",
    "chargers",
  ]);
  expect(warned(siteFrom(aFleet(), `${site}\n${own}`, NATIVE_ONLY))).toContain("mqtt.url");
});

test("a mistake in a site's own broker is shown once, and a repeated cause does not fill the screen", () => {
  expect(shown("site: { id: x }\nmqtt: { url: 'mqtt://x', password: { file: mqtt-password } }")).toEqual([
    "mqtt.password",
  ]);
  const vehicles = Array.from({ length: 500 }, (_, n) => ({ id: `v${n}`, name: 7 }));
  expect(shown(JSON.stringify({ site: { id: "x" }, vehicles }))).toHaveLength(100);
});

test("a file that cannot be read says why, and broken YAML names the example of its kind", () => {
  expect(loadFleet("/nowhere/fleet.yaml", {})).toMatchObject({
    mistakes: [{ found: "a file that does not exist" }],
  });
  expect(expectedIn(fleetFrom("[", place()))).toContain("/config/example-fleet.yaml");
  expect(expectedIn(siteFrom(aFleet(), "[", NATIVE_ONLY))).toContain("/config/example-site.yaml");
});

test("the committed JSON Schemas are fresh: npm run schema; and every key has a sentence", () => {
  for (const schema of [JSON_SCHEMAS.fleet, JSON_SCHEMAS.siteOfFleet]) {
    expect(schema.committed()).toBe(schema.text);
    expect(keysOf(schema.text).filter(({ sentence }) => !sentence.endsWith("."))).toEqual([]);
  }
  expect(example.split("\n")[0]).toBe("# yaml-language-server: $schema=./fleet.schema.json");
  expect(exampleSite.split("\n")[0]).toBe("# yaml-language-server: $schema=./site.schema.json");
});
