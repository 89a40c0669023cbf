import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { PAGE_TYPES_FILE, pageTypesText, typesOf } from "../../packaging/pageTypes.ts";

test("the answers that the page reads are typed by docs/openapi.json: npm run schema", () => {
  expect(readFileSync(PAGE_TYPES_FILE, "utf8")).toBe(pageTypesText());
});

const typed = (schema: object): string =>
  typesOf({ components: { schemas: { Sample: schema } } })
    .split("\n")
    .slice(2)
    .join("\n")
    .replace("export type Sample = ", "")
    .trim();

test.each([
  [{ type: "integer", minimum: 0 }, "number;"],
  [{ type: ["string", "null"] }, "string | null;"],
  [{ const: true, type: "boolean" }, "true;"],
  [{ enum: ["A", "W"], type: "string" }, '"A" | "W";'],
  [{}, "unknown;"],
  [{ type: "array", items: { $ref: "#/components/schemas/Level" } }, "readonly Level[];"],
  [{ type: "array", items: { type: ["string", "null"] } }, "readonly (string | null)[];"],
  [{ type: "array", items: { type: "array", items: { type: "string" } } }, "readonly (readonly string[])[];"],
  [{ type: "array", prefixItems: [{ type: "number" }, {}] }, "readonly [number, unknown];"],
  [{ anyOf: [{ type: "array", items: { type: "number" } }, { type: "null" }] }, "readonly number[] | null;"],
  [
    { type: "object", additionalProperties: { type: "number" } },
    "export interface Sample {\n  readonly [name: string]: number;\n}",
  ],
  [
    { type: "object", properties: { a: { type: "string", description: "Why." }, b: {} }, required: ["a"] },
    "export interface Sample {\n  /** Why. */\n  readonly a: string;\n  readonly b?: unknown;\n}",
  ],
])("%j is typed", (schema, type) => {
  expect(typed(schema)).toBe(type);
});

test("a schema that no type is known for is refused with its place", () => {
  const schema = { type: "object", properties: { level: { oneOf: [] } } };
  expect(() => typed(schema)).toThrow("Sample.level: no type is known for oneOf");
});
