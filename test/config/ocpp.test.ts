import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";

import { JSON_SCHEMAS } from "../../packaging/jsonSchemas.ts";
import { isOcppFile, loadOcppConfig, ocppConfigFrom } from "../../src/config/ocpp.ts";
import { keysOf } from "../support/schemaKeys.ts";

const EXAMPLE = new URL("../../config/ocpp-example.yaml", import.meta.url);
const text = readFileSync(EXAMPLE, "utf8");

function aFolder(): string {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const name of ["ocpp-mqtt-password", "cp-1"])
    writeFileSync(join(directory, name), "made for this very test\n", { mode: 0o600 });
  return directory;
}

test("the example works as soon as its secrets are there", () => {
  const directory = aFolder();
  const file = join(directory, "ocpp.yaml");
  cpSync(EXAMPLE, file);
  expect(loadOcppConfig(file, {})).toMatchObject({
    ok: true,
    warnings: [],
    config: {
      site: "depot-north",
      listen: { host: "0.0.0.0", port: 9000 },
      tags: null,
      stations: [
        { identity: "CP-1", connectors: [{ id: 1, charger: "bay-01", unit: null, stackLevel: null }] },
      ],
    },
  });
  expect(isOcppFile(file)).toBe(true);
  expect(isOcppFile(new URL("../../config/example.yaml", import.meta.url).pathname)).toBe(false);
  expect(isOcppFile(join(directory, "absent"))).toBe(false);
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ site: "depot", ocpp: {}, stations: [] }));
  expect(isOcppFile(file)).toBe(true);
});

test("a verb of the package finds the password of a station in the folder that the service passes on", () => {
  const directory = aFolder();
  const stations = aFolder();
  const text = JSON.stringify({ ...BASE, stations: [station({ password: { file: "station_cp-1" } })] });
  const env = { CREDENTIALS_DIRECTORY: directory, STATIONS_DIRECTORY: stations };
  expect(ocppConfigFrom(text, { env, directory })).toMatchObject({ ok: true });
  rmSync(join(stations, "cp-1"));
  expect(ocppConfigFrom(text, { env, directory })).toMatchObject({
    mistakes: [{ found: `${join(stations, "cp-1")}, which does not exist` }],
  });
  // The service itself has the credential.
  writeFileSync(join(directory, "station_cp-1"), "made for this very test\n", { mode: 0o600 });
  expect(ocppConfigFrom(text, { env, directory })).toMatchObject({ ok: true });
});

function pathsOf(value: unknown, path: string): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((entry) => pathsOf(entry, `${path}[]`));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const here = path === "" ? key : `${path}.${key}`;
    return [here, ...pathsOf(child, here)];
  });
}

test("the example shows every key, in use or commented out, but those of the broker", () => {
  const shown = new Set(pathsOf(parse(text.replaceAll(/^(\s*)#(?=\S)/gm, "$1")), ""));
  const missing = keysOf(JSON_SCHEMAS.ocpp.text).filter(
    ({ path }) => !shown.has(path) && !path.startsWith("mqtt.") && path !== "ocpp.authorize.tags",
  );
  expect(missing).toEqual([]);
});

test("the committed JSON Schema is fresh: npm run schema; and every key has a sentence", () => {
  expect(JSON_SCHEMAS.ocpp.committed()).toBe(JSON_SCHEMAS.ocpp.text);
  const silent = keysOf(JSON_SCHEMAS.ocpp.text).filter(({ sentence }) => !sentence.endsWith("."));
  expect(silent.map(({ path }) => path)).toEqual(["ocpp.authorize.tags"]);
  expect(text.split("\n")[0]).toBe("# yaml-language-server: $schema=./ocpp.schema.json");
});

const BASE = { site: "depot", mqtt: { url: "mqtt://127.0.0.1:1883" } };
const station = (more: object = {}) => ({
  identity: "CP-1",
  password: { file: "cp-1" },
  connectors: [{ id: 1, charger: "bay-01" }],
  ...more,
});

/** Paths of the mistakes. */
function mistakes(over: object): readonly string[] {
  const loaded = ocppConfigFrom(JSON.stringify({ ...BASE, ...over }), { env: {}, directory: aFolder() });
  return loaded.ok ? [] : loaded.mistakes.map(({ path }) => path);
}

test.each<[string, object, readonly string[]]>([
  [
    "a station twice",
    { stations: [station(), station()] },
    ["stations[1].identity", "stations[1].connectors[0].charger"],
  ],
  [
    "a connector twice",
    { stations: [station({ connectors: [1, 2].map((n) => ({ id: 1, charger: `bay-0${n}` })) })] },
    ["stations[0].connectors[1].id"],
  ],
  ["a station that anybody could be", { stations: [station({ password: undefined })] }, ["stations[0]"]],
  [
    "a certificate without an authority",
    { stations: [station({ certificate: "CP-1" })] },
    ["stations[0].certificate"],
  ],
  ["a status for everybody", { status: "0.0.0.0:9080" }, ["status"]],
  ["a broker of its own", { mqtt: { embedded: {} } }, ["mqtt.embedded"]],
  ["an identity with a slash", { stations: [station({ identity: "a/b" })] }, ["stations[0].identity"]],
  ["an unknown key", { ocpp: { listn: "0.0.0.0:9000" } }, ["ocpp.listn"]],
  [
    "a password that is not there",
    { stations: [station({ password: { file: "none" } })] },
    ["stations[0].password"],
  ],
])("%s is explained", (_what, over, paths) => {
  expect(mistakes(over)).toEqual(paths);
});

test("stations without a login are allowed where the configuration names them so, and tags are compared without case", () => {
  const over = {
    ocpp: { allowAnonymous: true, authorize: { tags: ["AbC"] } },
    stations: [station({ password: undefined })],
  };
  const loaded = ocppConfigFrom(JSON.stringify({ ...BASE, ...over }), { env: {}, directory: aFolder() });
  expect(loaded).toMatchObject({
    ok: true,
    config: { tags: new Set(["abc"]), stations: [{ password: null }] },
  });
});

test("a station without a login is accepted on loopback, with a warning, and refused elsewhere", () => {
  const stations = [station({ password: undefined })];
  const loadedAt = (listen: string) =>
    ocppConfigFrom(JSON.stringify({ ...BASE, ocpp: { listen }, stations }), {
      env: {},
      directory: aFolder(),
    });
  expect(loadedAt("127.0.0.1:9000")).toMatchObject({
    ok: true,
    warnings: [{ path: "stations[0]", found: "a station without password and certificate" }],
    config: { stations: [{ password: null }] },
  });
  expect(loadedAt("0.0.0.0:9000")).toMatchObject({
    ok: false,
    mistakes: [{ path: "stations[0]", expected: expect.stringContaining("allowAnonymous") }],
  });
});

test("a file that is absent or no YAML is explained as well", () => {
  expect(loadOcppConfig("/nowhere/ocpp.yaml", {})).toMatchObject({ ok: false });
  expect(ocppConfigFrom("a: [", { env: {}, directory: "/" })).toMatchObject({
    ok: false,
    mistakes: [{ expected: expect.stringContaining("/config/ocpp-example.yaml") }],
  });
});
