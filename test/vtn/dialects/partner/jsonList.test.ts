import * as fc from "fast-check";
import { expect, test } from "vitest";

import { runToEnd } from "../../../../src/platform/cooperative.ts";
import { fieldsOf, spelling } from "../../../../src/vtn/dialects/partner/fields.ts";
import { eachEntry } from "../../../../src/vtn/dialects/partner/json.ts";

const names = spelling(["events"]);

/** The entries as they are cut, or that the body is refused. */
function cut(body: Uint8Array): readonly unknown[] | "refused" {
  const entries: unknown[] = [];
  const refused = runToEnd(
    eachEntry(body, names, "events", (entry) => {
      entries.push(entry);
      return null;
    }),
  );
  return refused === null ? entries : "refused";
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** The same by a JSON.parse of the whole body. */
function parsedWhole(body: Uint8Array): readonly unknown[] | "refused" {
  try {
    const value: unknown = JSON.parse(utf8.decode(body));
    const entries = Array.isArray(value) ? value : fieldsOf(names, value)?.events;
    return Array.isArray(entries) ? entries : "refused";
  } catch {
    return "refused";
  }
}

const white = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
/** JSON text with white space in it, and characters that mean something outside of strings in its strings. */
const jsonText = fc
  .tuple(
    fc.jsonValue({ maxDepth: 5 }),
    fc.array(fc.stringMatching(/^["\\[\]{},: é€😀\ufeff]{0,6}$/u), { maxLength: 4 }),
    fc.constantFrom(undefined, 1, "\t", "\r\n"),
  )
  .map(([value, strings, indent]) =>
    JSON.stringify([value, ...strings, { [strings[0] ?? "a"]: strings }], null, indent),
  );
const list = fc
  .tuple(white, fc.array(fc.tuple(white, jsonText, white), { maxLength: 5 }), white)
  .map(
    ([before, entries, after]) => `${before}[${entries.map((parts) => parts.join("")).join(",")}]${after}`,
  );
const memberName = fc.constantFrom(
  "events",
  "Events",
  "EVENTS",
  "event\\u0073",
  "__proto__",
  "1",
  "other",
  'a]\\"',
);
const member = fc.tuple(white, memberName, white, fc.oneof(list, jsonText, fc.constant("null")), white);
const wrapper = fc
  .array(member, { maxLength: 4 })
  .map(
    (members) => `{${members.map(([a, name, b, value, c]) => `${a}"${name}"${b}:${value}${c}`).join(",")}}`,
  );
const body = fc.oneof(list, wrapper, jsonText);

test("a list in pieces is always the list that JSON.parse makes of the whole, wrapped or not", () => {
  fc.assert(
    fc.property(body, (text) => {
      const bytes = Buffer.from(text);
      expect(cut(bytes)).toEqual(parsedWhole(bytes));
    }),
    { numRuns: 1_000 },
  );
});

test("a body that is broken anywhere is always refused as JSON.parse refuses the whole", () => {
  const fault = fc.record({
    at: fc.nat(),
    remove: fc.nat({ max: 3 }),
    insert: fc.oneof(
      fc.constantFrom("", ",", "[", "]", "{", "}", '"', "\\", ":", "1", "null", " ", "\ufeff", "\u00a0"),
      fc.constant(Uint8Array.of(0xff)),
      fc.constant(Uint8Array.of(0xc3)),
    ),
  });
  fc.assert(
    fc.property(body, fc.array(fault, { minLength: 1, maxLength: 2 }), (text, faults) => {
      let bytes = Buffer.from(text);
      for (const { at, remove, insert } of faults) {
        const from = at % (bytes.length + 1);
        const piece = typeof insert === "string" ? Buffer.from(insert) : Buffer.from(insert);
        bytes = Buffer.concat([bytes.subarray(0, from), piece, bytes.subarray(from + remove)]);
      }
      expect(cut(bytes)).toEqual(parsedWhole(bytes));
    }),
    { numRuns: 3_000 },
  );
});

test.each([
  ["a byte order mark before it", "\ufeff[1]"],
  ["two byte order marks", "\ufeff\ufeff[1]"],
  ["a byte order mark inside", "[\ufeff1]"],
  ["nothing between two commas", "[1,,2]"],
  ["a comma at the end", "[1,]"],
  ["a comma alone", "[,]"],
  ["the wrong bracket", "[1}"],
  ["brackets that cross", '[{"a":[1}]]'],
  ["something after the end", "[1] x"],
  ["something after a list in a wrapper", '{"events":[1] 2}'],
  ["no end", '["a'],
  ["two lists of one name", '{"events":[1],"events":[2]}'],
  ["two spellings", '{"EVENTS":[1],"events":[2],"Events":[3]}'],
  ["a spelling in another case", '{"EVENTS":[1]}'],
  ["null for the contract's spelling", '{"Events":[1],"events":null}'],
  ["a number for the contract's spelling", '{"Events":[1],"events":4}'],
  ["another list that is broken", '{"events":[1],"other":[1,]}'],
  ["a value that is broken", '{"events":[1],"other":tru}'],
  ["a member without a name", '{"events":[1],[2]}'],
  ["a member without a colon", '{"events" [1]}'],
  ["a member that is nothing", '{"events":}'],
  ["an empty wrapper", "{}"],
  ["a number", "1"],
  ["a text", '"[1]"'],
  ["nothing", " "],
])("a body with %s is read as JSON.parse reads it", (_what, text) => {
  const bytes = Buffer.from(text);
  expect(cut(bytes)).toEqual(parsedWhole(bytes));
});

test("a list of 16 MiB is cut in steps, none of which scans much or parses more than one entry", () => {
  const bytes = Buffer.from(`[${'{"a":["]",{}]}, '.repeat(50_000)}"${"x".repeat(1_000_000)}",1]`);
  let [entries, most, before] = [0, 0, 0];
  const steps = eachEntry(bytes, names, "events", () => {
    entries += 1;
    return null;
  });
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    most = Math.max(most, entries - before);
    before = entries;
  }
  expect([entries, most]).toEqual([50_002, 1]);
});

test("entries end where the reader wants no more", () => {
  let entries = 0;
  const refused = runToEnd(
    eachEntry(Buffer.from("[1,2,3,4"), names, "events", () =>
      (entries += 1) === 3 ? "three are enough" : null,
    ),
  );
  expect([entries, refused]).toEqual([3, { kind: "unparsable", reason: "three are enough" }]);
});

/** How many entries were passed on, and why the body was refused. */
function passed(text: string) {
  let entries = 0;
  const refused = runToEnd(
    eachEntry(Buffer.from(text), names, "events", () => {
      entries += 1;
      return null;
    }),
  );
  return [entries, refused];
}

test("too many values, and too deep nesting, are refused before the entry that holds them is parsed", () => {
  const many = { kind: "unparsable", reason: "more than 3000000 values" };
  expect(passed(`[1,{"targets":[${"{},".repeat(1_500_000)}{}]}]`)).toEqual([1, many]);
  expect(passed(`{"events":[1,{"targets":[${"{},".repeat(1_500_000)}{}]}]}`)).toEqual([0, many]);
  const deep = { kind: "unparsable", reason: "nested deeper than 32 levels" };
  expect(passed(`[1,${"[".repeat(32)}${"]".repeat(32)}]`)).toEqual([1, deep]);
  expect(passed(`[1,${"[".repeat(31)}${"]".repeat(31)}]`)).toEqual([2, null]);
});
