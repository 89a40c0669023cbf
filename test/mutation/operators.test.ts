import { expect, test } from "vitest";

import { mutantsOf, mutated } from "./operators.ts";

/** Every mutant of a text, as the text that would be tested. */
const mutants = (text: string): readonly string[] =>
  mutantsOf("src/a.ts", text).map((mutant) => mutated(text, mutant));

test("a condition is negated, its comparison gains or loses the equal case, and a small number grows by one", () => {
  expect(mutants("if (a < 2) b = a;")).toEqual([
    "if (!(a < 2)) b = a;",
    "if (a <= 2) b = a;",
    "if (a < 3) b = a;",
    "if (a < 2) ;",
  ]);
  expect(mutants("while (a >= b) i++;")).toEqual(["while (!(a >= b)) i++;", "while (a > b) i++;"]);
});

test("an equality in a condition is turned around once, not twice", () => {
  expect(mutants("const a = b === c ? d : e;")).toEqual(["const a = b !== c ? d : e;"]);
  expect(mutants("const a = b !== c;")).toEqual(["const a = b === c;"]);
});

test("and becomes or, and or becomes and", () => {
  expect(mutants("const a = b && c;")).toEqual(["const a = b || c;"]);
  expect(mutants("const a = b || c;")).toEqual(["const a = b && c;"]);
});

test("numbers are added instead of subtracted, texts are left alone", () => {
  expect(mutants("const a = b + c - d;")).toEqual(["const a = b - c - d;", "const a = b + c + d;"]);
  expect(mutants('const a = "x" + b;')).toEqual([]);
});

test("a statement that is only a call is dropped, also when it is awaited or made void", () => {
  expect(mutants("a(b);")).toEqual([";"]);
  expect(mutants("void a();")).toEqual([";"]);
  expect(mutants("const f = async () => { await a(); };")).toEqual([
    "const f = async () => { ; };",
    "const f = async () => { void a(); };",
  ]);
});

test("a constructor still calls its parent's: otherwise the module would not load", () => {
  expect(mutants("class A extends B { constructor() { super(); } }")).toEqual([]);
});

test("a function of several steps without a result is left at once, one with a result is not", () => {
  expect(mutants("function f() { i++; j++; }")).toContain("function f() { return; i++; j++; }");
  expect(mutants("function f() { i++; return i; }")).toEqual([]);
});

test("two steps in a row change places, and a value is not remembered", () => {
  expect(mutants("{ a = b(); i++; }")).toEqual(["{ i++; a = b(); }", "{ ; i++; }"]);
});

test("a default is always taken, the smaller becomes the larger, one of them becomes all of them", () => {
  expect(mutants("const a = b ?? c;")).toEqual(["const a = c;"]);
  expect(mutants("const a = Math.min(b, c);")).toEqual(["const a = Math.max(b, c);"]);
  expect(mutants("const a = b.some(c);")).toEqual(["const a = b.every(c);"]);
});

const statement = (where: string) => `const a = "SELECT a FROM b WHERE ${where}";`;

test("a statement of SQL compares at another edge, reads in the other order, or asks for one condition of two", () => {
  expect(mutants(statement("a <= ? AND b > ? ORDER BY c DESC"))).toEqual([
    statement("a < ? AND b > ? ORDER BY c DESC"),
    statement("a <= ? OR b > ? ORDER BY c DESC"),
    statement("a <= ? AND b >= ? ORDER BY c DESC"),
    statement("a <= ? AND b > ? ORDER BY c ASC"),
  ]);
  expect(mutants("const a = `SELECT max(a) FROM ${b}`;")).toEqual(["const a = `SELECT min(a) FROM ${b}`;"]);
  expect(mutants('const a = "3 < 4 AND 5";')).toEqual([]);
});

test("true becomes false, and large numbers and texts stay", () => {
  expect(mutants('const a = [true, false, 60_000, "1"];')).toEqual([
    'const a = [false, false, 60_000, "1"];',
    'const a = [true, true, 60_000, "1"];',
  ]);
});

test("types have no mutants", () => {
  expect(mutants("type A = { kind: true } | false; interface B { a: 1; b: A & true }")).toEqual([]);
  expect(mutants("const a = b as { ok: true }; function f(c: 1): asserts c is 1 {}")).toEqual([]);
});

test("a mutant knows its line and describes its change on one line, also behind characters of several bytes", () => {
  const text = "// ä 🚌\nconst a =\n  b &&\n  c;\n";
  expect(mutantsOf("src/a.ts", text)).toMatchObject([
    { file: "src/a.ts", line: 3, change: "`b && c` -> `b || c`" },
  ]);
  expect(mutants(text)).toEqual([text.replace("&&", "||")]);
});

test("an operator in a comment is not taken for the one that counts", () => {
  expect(mutants("const a = b /* && */ && c;")).toEqual([]);
});
