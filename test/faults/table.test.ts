import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { carriers, PAGE } from "./faults.ts";
import { carriersIn, faultsPage, unknownIds } from "./table.ts";

test("test/FAULTS.md is fresh: npm run faults writes it anew", () => {
  expect(readFileSync(PAGE, "utf8")).toBe(faultsPage(carriers()));
});

test("no title names an id that the failure model does not have", () => {
  expect(unknownIds(carriers())).toEqual([]);
  expect(unknownIds([{ file: "a", title: "b", ids: ["F01", "F99"] }])).toEqual(["a: F99"]);
});

test("ids are found only at the end of a title or before it", () => {
  const source = `test("what holds (F01, S7)", () => {
  test.for(["x"])('F04 S8: it is "kept"', async () => {
  expect(text).toBe("phase L1 (L1 to L3)");`;
  expect(carriersIn("a.test.ts", source)).toEqual([
    { file: "a.test.ts", title: "what holds (F01, S7)", ids: ["F01", "S7"] },
    { file: "a.test.ts", title: 'F04 S8: it is "kept"', ids: ["F04", "S8"] },
  ]);
});
