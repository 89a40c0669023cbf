import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { JSON_SCHEMAS } from "../../packaging/jsonSchemas.ts";
import { keysOf } from "../support/schemaKeys.ts";

const FOLDER = new URL("../../config/profiles/", import.meta.url);

test("the committed JSON Schema of profiles is fresh: npm run schema", () => {
  expect(JSON_SCHEMAS.profile.committed()).toBe(JSON_SCHEMAS.profile.text);
});

test("every key has a sentence, with its default or the note that it is required", () => {
  const silent = keysOf(JSON_SCHEMAS.profile.text).filter(
    ({ sentence, preset }) =>
      !sentence.endsWith(".") || (typeof preset === "string" && !sentence.includes(preset)),
  );
  expect(silent).toEqual([]);
});

test("editors find the schema of every profile", () => {
  for (const file of readdirSync(FOLDER))
    expect(readFileSync(new URL(file, FOLDER), "utf8").split("\n")[0]).toBe(
      "# yaml-language-server: $schema=../profile.schema.json",
    );
});
