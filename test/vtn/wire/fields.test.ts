import { expect, test } from "vitest";
import { z } from "zod";
import { by, fieldsOf, folded, list, optionally, spelling, text } from "../../../src/vtn/wire/fields.ts";

const names = spelling(["ID", "programID"]);
const reader = (found: unknown) => (found === "good" ? 1 : { problem: "not good" });

test("field names are read in any case, into the spelling of the contract", () => {
  expect(fieldsOf(names, { id: "a", PROGRAMid: "b", other: "c" })).toEqual({ ID: "a", programID: "b" });
});

test("the contract's own spelling wins over another, wherever it stands", () => {
  expect(fieldsOf(names, { id: "other", ID: "own" })).toEqual({ ID: "own" });
  expect(fieldsOf(names, { ID: "own", id: "other" })).toEqual({ ID: "own" });
});

test("null counts as absent", () => {
  expect(fieldsOf(names, { ID: null, id: "a", programID: null })).toEqual({ ID: "a" });
});

test("F64 nothing can reach a prototype", () => {
  const fields = fieldsOf(names, JSON.parse('{"__proto__":{"ID":"evil"},"constructor":{"ID":"evil"}}'));
  expect(fields).toEqual({});
  expect(Object.getPrototypeOf(fields)).toBe(Object.prototype);
  expect(Reflect.get({}, "ID")).toBeUndefined();
});

test.each([null, undefined, 5, "ID", [], true])("%j has no fields", (raw) => {
  expect(fieldsOf(names, raw)).toBeUndefined();
});

test("a reader's problem becomes the issue at its path", () => {
  const schema = folded("a thing", { A: by(reader), B: optionally(reader, 0), list: list(by(reader)) });
  expect(schema.parse({ a: "good", b: null })).toEqual({ A: 1, B: 0, list: [] });
  const bad = schema.safeParse({ a: "good", LIST: ["good", "bad"] });
  expect(bad.error?.issues.map(({ path, message }) => ({ path, message }))).toEqual([
    { path: ["list", 1], message: "not good" },
  ]);
});

test("what is no object, no list, no text is said in words", () => {
  const schema = folded("a thing", { list: list(z.unknown()), text });
  const messages = (found: unknown) => schema.safeParse(found).error?.issues.map(({ message }) => message);
  expect(messages([])).toEqual(["[] is not a thing; expected a JSON object"]);
  expect(messages(undefined)).toEqual(["missing; expected a thing: a JSON object"]);
  expect(messages({ list: {}, text: 5 })).toEqual([
    "{} is not a list; expected a JSON array",
    "5 is not a text; expected a JSON string",
  ]);
});

test("a list ends at its first bad entry, and tells its place", () => {
  const numbers = list(z.number());
  expect(numbers.parse(undefined)).toEqual([]);
  expect(numbers.parse([1, 2])).toEqual([1, 2]);
  const read = numbers.safeParse([1, "a", "b"]);
  expect(read.error?.issues.map(({ path }) => path)).toEqual([[1]]);
});
