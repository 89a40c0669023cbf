import * as fc from "fast-check";
import { expect, test } from "vitest";

import { fact, type Fact, sealed, formatOf, LINE_FORMATS, serialized } from "../../src/proof/file.ts";
import { verifyProof } from "../../src/proof/verify.ts";
import { SITE_KEY } from "../support/aCharger.ts";
import { PROOF_KEY, proofText, sealedText } from "../support/aProof.ts";

const text = fc.option(
  fc.string({ unit: "binary", minLength: 1 }).map((words) => words.replaceAll(/[\r\n]/g, "") || "x"),
);
const someFact: fc.Arbitrary<Fact> = fc
  .record({
    vehicle: text,
    words: text,
    value: fc.option(fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => value + 0)),
    seq: fc.option(fc.nat()),
  })
  .map(({ vehicle, ...said }) =>
    fact("vehicle", "sent", { ...said, vehicle: vehicle?.toWellFormed() ?? null }),
  );

const NO_KEYS = { siteKey: null, publicKey: null };

test("every fact can be read back from JSON and CSV, and both have the same seal", () => {
  fc.assert(
    fc.property(fc.array(someFact, { minLength: 1 }), (facts) => {
      const lines = [...sealed(facts, SITE_KEY, PROOF_KEY)];
      for (const format of ["json", "csv"] as const) {
        const written = [...serialized(lines, format)].join("\n");
        expect(verifyProof(written, NO_KEYS).broken).toEqual([]);
        const { heading, read } = LINE_FORMATS[format];
        const back = written.split("\n").slice(heading.length, -1).map(read);
        expect(back).toEqual(lines);
      }
    }),
  );
});

test("JSON is an array with one fact per line, its members in order", () => {
  const written = proofText("json");
  const facts: unknown = JSON.parse(written);
  expect(facts).toHaveLength(written.split("\n").length - 1);
  expect(written.split("\n")[1]).toMatch(
    /^\{"print":"[0-9a-f]{64}","section":"proof","what":"event","words":"EV-7731"\},$/,
  );
});

test("CSV opens in a spreadsheet: byte order mark, heading, no formula", () => {
  const lines = proofText("csv").split("\n");
  expect(lines[0]).toBe(
    "\uFEFFsection,vehicle,charger,command,what,from,until,value,unit,words,seq,previous,hash,print",
  );
  expect(lines[2]).toMatch(/^proof,,,,event,,,,,EV-7731,,,,[0-9a-f]{64}$/);
  const formula = sealedText([fact("vehicle", "name", { words: '=HYPERLINK("x")' })], "csv");
  expect(formula).toContain(`"'=HYPERLINK(""x"")"`);
  expect(verifyProof(formula, NO_KEYS).broken).toEqual([]);
});

test("a line break in a name does not break a line", () => {
  const broken = sealedText(
    [fact("vehicle", "name", { words: "Bus\r\n214" }), fact("vehicle", "name", { words: "" })],
    "csv",
  );
  expect(broken.split("\n")).toHaveLength(6);
  expect(broken).toContain("Bus  214");
});

test("a null between facts passes through, where it stands, and changes no line", () => {
  const facts = [
    fact("vehicle", "name", { words: "Bus 214" }),
    fact("vehicle", "name", { words: "Bus 207" }),
  ];
  const [first = null, second = null] = facts;
  const whole = [...serialized(sealed(facts, SITE_KEY, PROOF_KEY), "json")];
  const inParts = [...serialized(sealed([first, null, second], SITE_KEY, PROOF_KEY), "json")];
  expect(inParts.filter((line) => line !== null)).toEqual(whole);
  expect(inParts.filter((line) => line === null)).toHaveLength(1);
});

test("without facts there is at most a heading", () => {
  expect([[...serialized([], "json")], [...serialized([], "csv")].length]).toEqual([[""], 2]);
});

test("the format is detected by the first two lines, even if one was edited", () => {
  expect([formatOf(["[{", "{"]), formatOf(["x", "{"]), formatOf(["[", "x"])]).toEqual([
    "json",
    "json",
    "json",
  ]);
  expect([formatOf([]), formatOf(["section", "proof"])]).toEqual(["csv", "csv"]);
});

test("a line that is not a fact is not read", () => {
  const lines = ["1", "null", "{", '{"section":"proof"}', '{"section":"sums","what":"a","print":"b"}'];
  expect(lines.map((line) => LINE_FORMATS.json.read(line))).toEqual(lines.map(() => null));
});
