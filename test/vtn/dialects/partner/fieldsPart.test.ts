import { expect, test } from "vitest";
import {
  by,
  fieldsOf,
  folded,
  optionally,
  spelling,
  text,
} from "../../../../src/vtn/dialects/partner/fields.ts";

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
  const schema = folded("a thing", { A: by(reader), B: optionally(reader, 0) });
  expect(schema.parse({ a: "good", b: null })).toEqual({ A: 1, B: 0 });
  const bad = schema.safeParse({ a: "good", b: "bad" });
  expect(bad.error?.issues.map(({ path, message }) => ({ path, message }))).toEqual([
    { path: ["B"], message: "not good" },
  ]);
});

test("a value that is neither object nor text is reported with a sentence", () => {
  const schema = folded("a thing", { text });
  const messages = (found: unknown) => schema.safeParse(found).error?.issues.map(({ message }) => message);
  expect(messages([])).toEqual(["[] is not a thing; expected a JSON object"]);
  expect(messages(undefined)).toEqual(["missing; expected a thing: a JSON object"]);
  expect(messages({ text: 5 })).toEqual(["5 is not a text; expected a JSON string"]);
});
