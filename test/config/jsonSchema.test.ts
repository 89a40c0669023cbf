import { expect, test } from "vitest";

import { JSON_SCHEMAS } from "../../packaging/jsonSchemas.ts";
import { keysOf } from "../support/schemaKeys.ts";

test("the committed JSON Schema is fresh: npm run schema", () => {
  expect(JSON_SCHEMAS.site.committed()).toBe(JSON_SCHEMAS.site.text);
});

test("every key has a sentence, which names its default", () => {
  const silent = keysOf(JSON_SCHEMAS.site.text).filter(({ sentence, preset }) => {
    const spelled = Array.isArray(preset) ? `[${preset.join(", ")}]` : String(preset);
    const sections = typeof preset === "object" && !Array.isArray(preset);
    return (
      !sentence.endsWith(".") ||
      (preset !== undefined && !sections && !sentence.includes(`Default ${spelled}`))
    );
  });
  expect(silent).toEqual([]);
});
