import { expect, test } from "vitest";
import { placeholdersIn, renderJson, renderText } from "../../../src/chargers/profile/render.ts";

const values = new Map<string, string | number>([
  ["id", "7"],
  ["current", 13.7],
  ["now.unix", 1_795_262_400],
]);

test("a text is a text, whatever is put in", () => {
  expect(renderText("c/{id}/at/{now.unix}", values)).toBe("c/7/at/1795262400");
  expect(renderText("150000 stays 150000, never 1.5e5", values)).toBe("150000 stays 150000, never 1.5e5");
});

test("a value that is one placeholder keeps its type, others become text", () => {
  expect(renderJson({ a: "{current}", "b-{id}": ["{id}", "{current} A", 1, null] }, values)).toEqual({
    a: 13.7,
    "b-7": ["7", "13.7 A", 1, null],
  });
});

test("the names in a template are found wherever they stand", () => {
  expect(placeholdersIn([{ topic: "{a}/{b}", json: { "{c}": ["{a}"] } }])).toEqual(["a", "b", "c"]);
  expect(placeholdersIn(undefined)).toEqual([]);
});

test("a name without a value is a bug", () => {
  expect(() => renderText("{nobody}", values)).toThrow("{nobody}");
});
