import * as fc from "fast-check";
import { expect, test } from "vitest";
import { decodeJson } from "../../../../src/vtn/dialects/partner/json.ts";

const decoded = (text: string) => decodeJson(Buffer.from(text));
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

test("F63 a body may be 32 levels deep and no deeper", () => {
  expect(decoded(nested(32)).kind).toBe("json");
  expect(decoded(nested(33))).toEqual({ kind: "unparsable", reason: "nested deeper than 32 levels" });
  expect(decoded("[".repeat(1_000_000)).kind).toBe("unparsable");
  expect(decoded('{"a":'.repeat(33) + "1" + "}".repeat(33)).kind).toBe("unparsable");
});

const values = (count: number) => `[{"a":[${"1,".repeat(count)}1]}]`;

test("a body of more values than fit into memory is refused before it is parsed", () => {
  expect(decoded(values(2_900_000)).kind).toBe("json");
  expect(decoded(values(3_000_000))).toEqual({ kind: "unparsable", reason: "more than 3000000 values" });
});

test("the values of the largest list of the least events are taken, and those in strings are not counted", () => {
  expect(decoded(`[${'{"ID":"1"},'.repeat(88_087)}{}]`).kind).toBe("json");
  expect(decoded(`["${",[{".repeat(2_000_000)}"]`).kind).toBe("json");
});

test("F63 brackets inside strings are not depth", () => {
  const text = `${"[{".repeat(50)}\\"${"[".repeat(50)}`;
  expect(decoded(JSON.stringify({ text }))).toEqual({ kind: "json", value: { text } });
  expect(decoded(`"\\\\", ${nested(40)}`).kind).toBe("unparsable");
});

test("F37 what is not UTF-8 or not JSON is unparsable, and the reason does not quote it", () => {
  expect(decodeJson(Buffer.from([0x22, 0xff, 0x22]))).toEqual({ kind: "unparsable", reason: "not UTF-8" });
  expect(decodeJson(Buffer.from('{"a":1}', "utf16le")).kind).toBe("unparsable");
  expect(decoded('{"secret":')).toEqual({ kind: "unparsable", reason: "not JSON" });
  expect(decoded(" <html></html>")).toEqual({ kind: "unparsable", reason: "HTML or XML, not JSON" });
});

test("a byte order mark is no part of the body", () => {
  expect(decoded('\ufeff{"a":1}')).toEqual({ kind: "json", value: { a: 1 } });
});

test("a body of nothing but white space is empty", () => {
  expect(decoded("")).toEqual({ kind: "empty" });
  expect(decoded(" \r\n")).toEqual({ kind: "empty" });
});

test("F68 of two members with one name the last wins", () => {
  expect(decoded('{"a":1,"a":2}')).toEqual({ kind: "json", value: { a: 2 } });
});

test("any JSON that is not deep is always read as JSON.parse reads it", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 10 }), (text) => {
      expect(decoded(text)).toEqual({ kind: "json", value: JSON.parse(text) });
    }),
  );
});
