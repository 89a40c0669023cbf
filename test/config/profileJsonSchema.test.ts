import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { PROFILE_SCHEMA_FILE, profileSchemaText } from "../../src/config/jsonSchema.ts";
import { keysOf } from "../support/schemaKeys.ts";

const FOLDER = new URL("../../config/profiles/", import.meta.url);

test("the committed JSON Schema of profiles is fresh: npm run schema", () => {
  expect(readFileSync(PROFILE_SCHEMA_FILE, "utf8")).toBe(profileSchemaText());
});

test("every key has a sentence, with its default or the note that it is required", () => {
  const silent = keysOf(profileSchemaText()).filter(
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
