import { expect, test } from "vitest";
import { nameIn, numberIn, truthIn, valueAt, versionIn } from "../../../src/chargers/profile/payload.ts";

test.each([
  [16, 16],
  ["16", 16],
  [" 16.0 ", 16],
  ["-5e3", -5000],
  ["", null],
  ["null", null],
  ["NaN", null],
  ["nil", null],
  [null, null],
  ["sixteen", undefined],
  ["0x10", undefined],
  ["1e999", undefined],
  [true, undefined],
  [[16], undefined],
])("%j is the number %s", (raw, number) => {
  expect(numberIn(raw)).toBe(number);
});

test.each([
  [true, true],
  ["True", true],
  ["1", true],
  [1, true],
  ["Offline", false],
  [0, false],
  ["None", null],
  [null, null],
  ["2", undefined],
  [{}, undefined],
])("%j is the truth %s", (raw, truth) => {
  expect(truthIn(raw)).toBe(truth);
});

test("names are text on one line in one Unicode form", () => {
  expect(nameIn("Bu\u0308s 7")).toBe("B\u00fcs 7");
  expect(nameIn(4711)).toBe("4711");
  expect(nameIn("")).toBeNull();
  expect(nameIn("a\nb")).toBeUndefined();
  expect(nameIn("x".repeat(257))).toBeUndefined();
});

test("a payload that is declared unknown as a whole is unknown in all its parts", () => {
  for (const path of ["$", "$[11]", "$.a.b", "$[#]"]) expect(valueAt(null, path, 0)).toBeNull();
});

test("a path leads to what is there, and never to what objects inherit", () => {
  const json = { a: [{ b: 1 }, { b: 2 }] };
  expect(valueAt(json, "$.a[1].b", null)).toBe(2);
  expect(valueAt(json, "$.a[#].b", 0)).toBe(1);
  for (const path of ["$.x", "$.a[2]", "$.a.length", "$.constructor", "$.a[0].b.c", "$.a[#]"])
    expect(valueAt(json, path, null)).toBe(path === "$.a.length" ? 2 : undefined);
});

test("the version of a firmware is one short line, whatever was sent", () => {
  expect(versionIn(" 1.4.2 ")).toBe("1.4.2");
  expect(versionIn(60)).toBe("60");
  expect(versionIn("a\u0000\n\u202eb")).toBe("a b");
  expect(versionIn("\ud800x")).toBe("x");
  expect(versionIn(`x${"\u{1f50c}".repeat(500)}`)).toBe(`x${"\u{1f50c}".repeat(31)}`);
  expect(versionIn("x".repeat(100_000))).toBe("x".repeat(64));
  for (const nothing of [null, "", " ", "unknown", "\u0007"]) expect(versionIn(nothing)).toBeNull();
  for (const other of [{}, ["1.0"]]) expect(versionIn(other)).toBeUndefined();
});
