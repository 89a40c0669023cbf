import { createHash, generateKeyPairSync, type KeyObject, verify } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";

import { chainHash } from "../../src/domain/audit.ts";
import { type Fact, fact, printOf, sealed, START, type Format, serialized } from "../../src/proof/file.ts";
import { verifyProof } from "../../src/proof/verify.ts";
import { SITE_KEY } from "../support/aCharger.ts";
import { factsOf, PROOF_KEY, proofText, PUBLIC_KEY, sealedText } from "../support/aProof.ts";

const FORMATS = ["json", "csv"] as const satisfies readonly Format[];
const OTHER_KEY = new Uint8Array(32).fill(8);
const brokenIn = (
  text: string,
  siteKey: Uint8Array | null = SITE_KEY,
  publicKey: KeyObject | null = siteKey === null ? null : PUBLIC_KEY,
) => verifyProof(text, { siteKey, publicKey }).broken.map(({ line, reason }) => `${line}: ${reason}`);
const lineOf = (text: string, part: string): number =>
  text.split("\n").findIndex((line) => line.includes(part)) + 1;

test.each(FORMATS)(
  "an untouched proof in %s is whole, with the key and as far as that goes without",
  (format) => {
    const text = proofText(format);
    const whole = verifyProof(text, { siteKey: SITE_KEY, publicKey: PUBLIC_KEY });
    expect(whole.broken).toEqual([]);
    expect(whole.rows.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(whole.isSigned).toBe(true);
    expect(verifyProof(text, { siteKey: null, publicKey: null })).toEqual(whole);
    expect(verifyProof(text, { siteKey: null, publicKey: PUBLIC_KEY })).toEqual(whole);
  },
);

test.each(FORMATS)("any changed character in %s is found, with its line", (format) => {
  const text = proofText(format);
  const lines = text.trimEnd().split("\n");
  const place = fc
    .nat(lines.length - 1)
    .chain((line) => fc.record({ line: fc.constant(line), column: fc.nat((lines[line]?.length ?? 1) - 1) }));
  fc.assert(
    fc.property(
      place,
      fc.string({ unit: "binary", minLength: 0, maxLength: 1 }),
      ({ line, column }, other) => {
        const before = lines[line] ?? "";
        fc.pre(before[column] !== other && other !== "\n");
        const edited = lines.with(line, before.slice(0, column) + other + before.slice(column + 1));
        const keys = { siteKey: SITE_KEY, publicKey: null };
        const { broken } = verifyProof(`${edited.join("\n")}\n`, keys);
        expect(broken.map(({ line }) => line)).toContain(line + 1);
      },
    ),
    { numRuns: 1000 },
  );
});

test.each(FORMATS)("a removed, inserted or moved line in %s is found", (format) => {
  const lines = proofText(format).split("\n");
  const gaps = lines.slice(0, -1).map((_, index) => lines.toSpliced(index, 1).join("\n"));
  for (const text of gaps) expect(brokenIn(text)).not.toEqual([]);
  const [third = "", fourth = ""] = lines.slice(2, 4);
  expect(brokenIn(lines.toSpliced(2, 0, third).join("\n"))).not.toEqual([]);
  expect(brokenIn(lines.toSpliced(2, 2, fourth, third).join("\n"))).not.toEqual([]);
});

test("a proof with very many edited lines is judged", () => {
  const lines = proofText("json").split("\n");
  const [third = ""] = lines.slice(2, 3);
  const copies = Array<string>(130_000).fill(third);
  const text = [...lines.slice(0, 3), ...copies, ...lines.slice(3)].join("\n");
  expect(brokenIn(text).length).toBeGreaterThan(129_990);
});

test("an edited figure is found, with its line", () => {
  const text = proofText("json");
  const line = lineOf(text, '"what":"decided"');
  expect(brokenIn(text.replace('"value":16,"vehicle"', '"value":15,"vehicle"'))).toEqual([
    `${line}: "decided" of veh-214 (row 3 of the record) was changed, or a line before it was taken out or put in`,
  ]);
});

/** As a forger would who knows the format but not the key. */
function forged(change: (facts: readonly Fact[]) => readonly Fact[], format: Format): string {
  const facts = [...sealed(factsOf(), SITE_KEY, PROOF_KEY)].map(({ fact }) => fact);
  let print = START;
  const lines = [...change(facts.slice(0, -2)), ...facts.slice(-2)].map((fact) => {
    print = printOf(print, fact);
    return { fact, print };
  });
  return [...serialized(lines, format)].join("\n");
}

test.each(FORMATS)(
  "a forged proof in %s with all prints computed anew passes without the key, and never with it",
  (format) => {
    const text = forged(
      (facts) => facts.map((fact) => (fact.what === "energy" ? { ...fact, value: 99 } : fact)),
      format,
    );
    expect(brokenIn(text, null)).toEqual([]);
    const { length } = text.trimEnd().split("\n");
    const [seal, signature] = [
      `${length - 1}: the seal was not made with this site's key`,
      `${length}: the signature was not made with the private key of this public key`,
    ];
    expect(brokenIn(text)).toEqual([seal, signature]);
    expect(brokenIn(text, null, PUBLIC_KEY)).toEqual([signature]);
  },
);

const onRow = (seq: number, change: (row: Fact) => Partial<Fact>) =>
  forged(
    (facts) =>
      facts.map((fact) => (fact.what === "row" && fact.seq === seq ? { ...fact, ...change(fact) } : fact)),
    "json",
  );

test("an edited or renumbered row of the record is found by its own hash, even if all prints were computed again", () => {
  const edited = onRow(6, ({ words }) => ({ words: words?.replace("15.8", "16.8") ?? null }));
  const renumbered = onRow(6, () => ({ seq: 60 }));
  expect(brokenIn(edited, null)).toEqual([`${lineOf(edited, "16.8 A")}: row 6 does not have its own hash`]);
  expect(brokenIn(renumbered, null)).toEqual([
    `${lineOf(renumbered, '"seq":60')}: row 60 does not have its own hash`,
  ]);
});

test("a row edited together with its hash does not match the next row", () => {
  const edited = onRow(5, ({ words, previous }) => {
    const text = words?.replace("accepted", "refused") ?? "";
    return { words: text, hash: chainHash(previous ?? "", text) };
  });
  const next = lineOf(edited, '"words":"[6,');
  expect(brokenIn(edited, null)).toEqual([`${next}: row 6 does not follow row 5`]);
});

test("a truncated proof lacks its seal, and a proof of another site has a foreign one", () => {
  const lines = proofText("csv").split("\n");
  expect(brokenIn(lines.slice(0, -2).join("\n")).at(-1)).toMatch(/was cut off|is missing/);
  expect(brokenIn(`${lines.slice(0, -3).join("\n")}\n`, SITE_KEY, null)).toEqual([
    `${lines.length - 2}: is missing: a proof ends with its seal`,
  ]);
  expect(brokenIn(proofText("csv"), OTHER_KEY)).toEqual([
    `${lines.length - 2}: the seal was not made with this site's key`,
  ]);
});

test.each(FORMATS)(
  "a signature in %s is checked with the public key alone, and another key's is found",
  (format) => {
    const text = proofText(format);
    const { length } = text.trimEnd().split("\n");
    expect(brokenIn(text, null, PUBLIC_KEY)).toEqual([]);
    expect(brokenIn(text, null, generateKeyPairSync("ed25519").publicKey)).toEqual([
      `${length}: the signature was not made with the private key of this public key`,
    ]);
  },
);

/** As an earlier version wrote it, or somebody who took the signature away. */
const unsigned = (): string =>
  [...serialized([...sealed(factsOf(), SITE_KEY, PROOF_KEY)].slice(0, -1), "csv")].join("\n");

test("a proof without a signature passes with the site key, never with a public key", () => {
  const { length } = unsigned().trimEnd().split("\n");
  expect(verifyProof(unsigned(), { siteKey: SITE_KEY, publicKey: null })).toMatchObject({
    broken: [],
    isSigned: false,
  });
  expect(brokenIn(unsigned(), null, PUBLIC_KEY)).toEqual([
    `${length + 1}: is missing: this proof is not signed`,
  ]);
});

test("an invalid signature is found", () => {
  const lines = [...sealed(factsOf(), SITE_KEY, PROOF_KEY)];
  const fakes = ["", "zz", null].map((hash) => {
    const before = lines.at(-2)?.print ?? "";
    const fake = { ...(lines.at(-1)?.fact ?? fact("seal", "signature")), hash };
    return [
      ...serialized([...lines.slice(0, -1), { fact: fake, print: printOf(before, fake) }], "json"),
    ].join("\n");
  });
  for (const text of fakes) expect(brokenIn(text, null, PUBLIC_KEY)).toHaveLength(1);
});

test("the head of the record must be sealed with the same key", () => {
  const facts = factsOf().map((fact) => (fact.what === "head seal" ? { ...fact, hash: "00" } : fact));
  expect(brokenIn(sealedText(facts, "json"))).toEqual([
    expect.stringContaining("the head of the record was not sealed with this key"),
  ]);
  const headless = factsOf().filter(({ what }) => what !== "head");
  expect(brokenIn(sealedText(headless, "json"))).toEqual([
    expect.stringContaining("the head of the record was not sealed with this key"),
  ]);
});

test("a file that is not a proof fails", () => {
  for (const text of ["", "\n", "[]\n", "{}\n{}\n", "a,b\n1,2\n", "[1,\n2]\n", "null\n"])
    expect(brokenIn(text)).not.toEqual([]);
});

const sha = (...texts: readonly string[]) => createHash("sha256").update(texts.join("\n")).digest("hex");

test("a program written by docs/record-and-proof.md alone verifies a proof", () => {
  const lines = JSON.parse(proofText("json")) as readonly Record<string, string | number>[];
  const checked = lines.map(({ print, ...members }, index) => {
    const before = String(lines[index - 1]?.["print"] ?? "0".repeat(64));
    const sorted = Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    const { section, what, previous, words, hash } = members;
    const isRow = section === "record" && what === "row";
    return (
      print === sha(before, JSON.stringify(sorted)) &&
      (!isRow || hash === sha(String(previous), String(words)))
    );
  });
  expect(checked).toHaveLength(lines.length);
  expect(checked).not.toContain(false);
  const [seal, last] = lines.slice(-2);
  expect(last?.["what"]).toBe("signature");
  const signed = Buffer.from(`setpointd proof\n${seal?.["print"]}`);
  expect(verify(null, signed, PUBLIC_KEY, Buffer.from(String(last?.["hash"]), "hex"))).toBe(true);
});
