import * as fc from "fast-check";
import { expect, test } from "vitest";

import { readId, isProblem } from "../../../../src/vtn/dialects/partner/fields.ts";
import { processorMs } from "../../../support/processorMs.ts";

test.each(["a", "EV-7731", "Bus 214 / æøå", "#+/$", "x".repeat(256), "🚌".repeat(256)])(
  "an id of %s is taken as it is",
  (id) => {
    expect(readId(id)).toBe(id);
  },
);

test("F66 composed and decomposed spellings are the same id", () => {
  expect(readId("A\u030A")).toBe("\u00C5");
  expect(readId("e\u0301".repeat(256))).toBe("\u00E9".repeat(256));
});

test("F66 letters with many accents are taken; a pile of marks that takes minutes to normalize is refused at once", () => {
  expect(readId(`z${"\u0301".repeat(30)}`)).toBe(`\u017A${"\u0301".repeat(29)}`);
  const took = processorMs(() => {
    expect(isProblem(readId(`a${"\u0301".repeat(250_000)}${"\u0323".repeat(250_000)}`))).toBe(true);
    expect(isProblem(readId(`${"\u0301".repeat(30)}a`.repeat(16_000)))).toBe(true);
  });
  expect(took).toBeLessThan(1000);
});

test.each([
  "",
  "x".repeat(257),
  "🚌".repeat(257),
  "\ud800",
  "a\u0000",
  "a\nb",
  "\u007f",
  "\u0085",
  5,
  null,
  undefined,
  ["a"],
])("F66 F67 an id of %j is refused", (found) => {
  expect(isProblem(readId(found))).toBe(true);
});

test("F66 two ids that are taken and differ never share their bytes", () => {
  const anyText = fc.string({ unit: "binary", minLength: 1 });
  fc.assert(
    fc.property(anyText, anyText, (one, other) => {
      const [left, right] = [readId(one), readId(other)];
      if (isProblem(left) || isProblem(right) || left === right) return;
      expect(Buffer.from(left).equals(Buffer.from(right))).toBe(false);
    }),
  );
});
