import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { JSON_SCHEMAS } from "../../packaging/jsonSchemas.ts";
import { loadSite } from "../../src/daemon/chargerModels.ts";
import { keysOf } from "../support/schemaKeys.ts";

const EXAMPLE = new URL("../../config/example.yaml", import.meta.url);
const text = readFileSync(EXAMPLE, "utf8");

/** All settings, those that are commented out ("#" without a space) included. */
const everything: unknown = parse(text.replaceAll(/^(\s*)#(?=\S)/gm, "$1"));

function pathsOf(value: unknown, path: string): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((entry) => pathsOf(entry, `${path}[]`));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const here = path === "" ? key : `${path}.${key}`;
    return [here, ...pathsOf(child, here)];
  });
}

test("the example works as soon as its secrets are there", () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  try {
    cpSync(EXAMPLE, join(directory, "config.yaml"));
    for (const name of ["vtn-client-secret", "webhook-secret", "mqtt-password"])
      writeFileSync(join(directory, name), "made for this very test\n", { mode: 0o600 });
    expect(loadSite(join(directory, "config.yaml"), {}).loaded).toMatchObject({ ok: true, warnings: [] });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("the example shows every key, in use or commented out", () => {
  const shown = new Set(pathsOf(everything, ""));
  expect(keysOf(JSON_SCHEMAS.site.text).filter(({ path }) => !shown.has(path))).toEqual([]);
});

test("the example explains every key with the schema's own sentence", () => {
  const prose = text.replaceAll(/\n\s*# /g, " ");
  expect(keysOf(JSON_SCHEMAS.site.text).filter(({ sentence }) => !prose.includes(sentence))).toEqual([]);
});

test("editors find the schema of the example", () => {
  expect(text.split("\n")[0]).toBe("# yaml-language-server: $schema=./setpointd.schema.json");
});
