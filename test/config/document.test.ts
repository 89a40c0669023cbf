import * as fc from "fast-check";
import { expect, test } from "vitest";
import { differences, firstKeys, readYaml } from "../../src/config/document.ts";
import { pathText } from "../../src/config/explain.ts";

const lines = (text: string, ...paths: readonly (readonly (string | number)[])[]) => {
  const read = readYaml(text);
  return read.ok ? paths.map((path) => read.source.lineOf(path)) : read.mistakes;
};

test("every value has its line, a missing one that of its deepest part present", () => {
  const text = "site:\n  id: a\nchargers:\n  - id: b\n  -\n    id: c\n    current: { max: 3 }\n";
  expect(
    lines(
      text,
      ["site"],
      ["site", "id"],
      ["site", "zone"],
      ["chargers", 1, "id"],
      ["chargers", 1, "current", "max"],
      ["x"],
    ),
  ).toEqual([1, 2, 1, 6, 7, null]);
});

test("values of an alias have the line of the anchor", () => {
  expect(lines("a: &one\n  x: 1\nb: *one\n", ["b", "x"])).toEqual([2]);
});

test("a merged section counts as written here", () => {
  const read = readYaml("a: &one { x: 1 }\nb: { <<: *one, y: 2 }\n");
  expect(read.ok && read.source.value).toEqual({ a: { x: 1 }, b: { x: 1, y: 2 } });
});

test("digits with leading zeros stay text", () => {
  const read = readYaml("a: 000001\nb: [0123, -007, 0012e3, 00]\nc: &x 08\nd: *x\n");
  expect(read.ok && read.source.value).toEqual({
    a: "000001",
    b: ["0123", "-007", "0012e3", "00"],
    c: "08",
    d: "08",
  });
});

test("all other numbers stay numbers", () => {
  const read = readYaml("a: [0, 10, -0, 0.5, 0x1F, 1e3]\nb: '007'\nc: !!int 007\n");
  expect(read.ok && read.source.value).toEqual({ a: [0, 10, -0, 0.5, 31, 1000], b: "007", c: 7 });
});

test("broken YAML is reported with line and column, without quoting the file", () => {
  const read = readYaml('site:\n\tid: "x"\npassword: "a"hunter2\n');
  expect(read.ok).toBe(false);
  expect(read).toMatchObject({ mistakes: [{ line: 2, column: 1 }, {}] });
  expect(JSON.stringify(read)).not.toContain("hunter2");
});

test.each([
  ["site: { id: a }\nvtn:\n  baseUrl: https://x\n   family: vtn\n  clientId: b\n", [4]],
  ["site:\n  id: a\n   timezone: UTC\nvtn:\n  family: vtn\n", [3]],
  ["chargers:\n  - id: bay-01\n current: { max: 32 }\n  - id: bay-02\n    current: { max: 32 }\n", [3]],
  ['site:\n\tid: a\n\ttimezone: UTC\npassword: "a"b\n', [2, 4]],
  ["a: 1\na: 2\nb: 1\nb: 2\n", [2, 4]],
])("a wrong indentation is one mistake at its line, beside others: %j", (text, where) => {
  const read = readYaml(text);
  const mistakes = read.ok ? [] : read.mistakes;
  expect(mistakes.map(({ line }) => line)).toEqual(where);
  expect(mistakes[0]?.expected).toContain("indented with as many spaces as its neighbours");
});

test("a text that begins with * and has no quotes is named at its place, without quoting it", () => {
  const read = readYaml("mqtt:\n  url: mqtt://127.0.0.1\n  username: *hunter2\n");
  expect(read).toMatchObject({
    mistakes: [{ line: 3, column: 13, found: expect.stringContaining("without its anchor") }],
  });
  expect(JSON.stringify(read)).not.toContain("hunter2");
});

test.each([
  ["empty", "# nothing\n"],
  ["nested without end", "[".repeat(100_000)],
  [
    "an alias bomb",
    `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n`,
  ],
  ["two documents", "a: 1\n---\nb: 2\n"],
  ["twice the same key", "a: 1\na: 2\n"],
])("a file that is %s is refused with a sentence", (_, text) => {
  const read = readYaml(text);
  expect(read.ok ? [] : read.mistakes.map(({ found }) => found)).not.toEqual([]);
});

test("reading a document never throws, whatever its text", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...Array.from("ab:-[]{}&*!|>'\"#%@\n\t ,?<")) }),
      (text) => typeof readYaml(text).ok === "boolean",
    ),
  );
});

test.each([
  ["site: { id: a }\nvtn:\n  ocpp: 1\n# stations:\n", ["site", "vtn"]],
  ["\"site\": 1\n'ocpp' : {}\n", ["site", "ocpp"]],
  ['{"site":"a","ocpp":{"path":"/"}}', ["site", "ocpp"]],
  ['{\n  "site": "a",\n  "stations": []\n}\n', ["site", "stations"]],
  ["  site: a\n  ocpp: {}\n", ["site", "ocpp"]],
  ["site: [\nocpp: {}\n", ["site", "ocpp"]],
  ["5", []],
  ["", []],
])("the first keys of %j are %j, in whatever style", (text, keys) => {
  expect([...firstKeys(text)]).toEqual(keys);
});

const valueOf = (text: string): unknown => {
  const found = readYaml(text);
  return found.ok ? found.source.value : null;
};

const differing = (before: string, after: string): readonly string[] =>
  differences(valueOf(before), valueOf(after)).map(({ path, change }) => `${pathText(path)} ${change}`);

test("two configurations differ at their members, and at entries of lists by their id", () => {
  const chargers = "chargers: [{ id: bay-01, phases: 3 }, { id: bay-02 }]";
  expect(differing(chargers, `# the same\n${chargers}`)).toEqual([]);
  expect(differing(chargers, "chargers: [{ id: bay-00 }, { id: bay-01, phases: 1 }]")).toEqual([
    "chargers.bay-00 added",
    "chargers.bay-01.phases changed",
    "chargers.bay-02 removed",
  ]);
  expect(differing("site: { board: [[a]] }\nvtn: x", "site: { board: [[b]], id: y }")).toEqual([
    "site.board changed",
    "site.id added",
    "vtn removed",
  ]);
  // Without an id each, a list differs as a whole.
  expect(differing("identities: [{ mac: x }]", "identities: [{ mac: y }]")).toEqual(["identities changed"]);
});
