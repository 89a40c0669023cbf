import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { jsonSchemaText, SCHEMA_FILE } from "../../src/config/jsonSchema.ts";
import { keysOf } from "../support/schemaKeys.ts";

test("the committed JSON Schema is fresh: node src/config/jsonSchema.ts --write", () => {
  expect(readFileSync(SCHEMA_FILE, "utf8")).toBe(jsonSchemaText());
});

test("every key has a sentence, which names its default", () => {
  const silent = keysOf(jsonSchemaText()).filter(({ sentence, preset }) => {
    const spelled = Array.isArray(preset) ? `[${preset.join(", ")}]` : String(preset);
    const sections = typeof preset === "object" && !Array.isArray(preset);
    return (
      !sentence.endsWith(".") ||
      (preset !== undefined && !sections && !sentence.includes(`Default ${spelled}`))
    );
  });
  expect(silent).toEqual([]);
});
