import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { configFrom, loadConfig } from "../../src/config/load.ts";
import { least } from "../support/aConfiguration.ts";

let directory = "";
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), "setpointd-"))));
afterEach(() => rmSync(directory, { recursive: true }));

function load(content: string | Buffer, env: Record<string, string> = {}) {
  const file = join(directory, "config.yaml");
  writeFileSync(file, content);
  return loadConfig(file, env);
}

test("a valid file is a configuration with its state beside it", () => {
  const result = load(stringify(least), { SECRET: "a secret of the tests" });
  expect(result).toMatchObject({ ok: true, warnings: [], config: { state: join(directory, "state") } });
});

test("a mistake has its line, and mistakes are in the order of the file", () => {
  const result = load(`${stringify(least)}operater: {}\n`.replace("id: bay-01", "id: bay 01"));
  const lines = stringify(least).split("\n");
  expect(result).toMatchObject({
    ok: false,
    mistakes: [
      { path: "chargers[0].id", line: lines.findIndex((line) => line.includes("bay-01")) + 1 },
      { path: "operater", line: lines.length },
    ],
  });
});

test("unreadable secrets and mistakes between keys are reported together", () => {
  const result = load(stringify({ ...least, webhook: { listen: "0.0.0.0:8080" } }));
  expect(result.ok ? [] : result.mistakes.map(({ path }) => path).toSorted()).toEqual([
    "operator.listen",
    "vtn.clientSecret",
  ]);
});

test.each([
  ["empty", ""],
  ["a list", "- a\n"],
  ["a text", "hello"],
  ["not UTF-8", Buffer.from([0xff, 0xfe, 0x00])],
  ["YAML with a tab", "site:\n\tid: x\n"],
])("a file that is %s has one clear mistake", (_, content) => {
  const result = load(content);
  expect(result.ok ? [] : result.mistakes).toHaveLength(1);
});

test("a file that is absent, a directory or huge has one clear mistake", () => {
  const huge = join(directory, "huge.yaml");
  writeFileSync(huge, "");
  truncateSync(huge, 17 * 1024 * 1024);
  const found = [join(directory, "absent.yaml"), directory, huge].map((file) => {
    const result = loadConfig(file, {});
    return result.ok ? "" : result.mistakes.map((mistake) => mistake.found).join();
  });
  expect(found).toEqual(["a file that does not exist", "a file that is a directory", "more than 16 MiB"]);
});

test("a repeated cause does not fill the screen", () => {
  const vehicles = Array.from({ length: 500 }, (_, n) => ({ id: `v${n}`, charger: "nowhere" }));
  const result = load(stringify({ ...least, vehicles }), { SECRET: "a secret of the tests" });
  expect(result.ok ? [] : result.mistakes).toHaveLength(100);
});

test("any value in the place of a section gives mistakes, never an exception", () => {
  const keys = [
    "site",
    "state",
    "vtn",
    "webhook",
    "operator",
    "mqtt",
    "brokers",
    "clock",
    "control",
    "chargers",
    "vehicles",
  ];
  fc.assert(
    fc.property(fc.constantFrom(...keys), fc.jsonValue(), (key, value) => {
      const result = configFrom(stringify({ ...least, [key]: value }), {
        env: { SECRET: "a secret of the tests" },
        directory,
      });
      return result.ok || result.mistakes.every(({ found, expected }) => found !== "" && expected !== "");
    }),
  );
});
