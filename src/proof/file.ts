import { createHmac, createPublicKey, type KeyObject, sign, verify } from "node:crypto";

import { chainHash } from "../domain/audit.ts";

/** One line of a proof: flat, so that it is the same in JSON and in a table. Null: does not apply. */
export interface Fact {
  readonly section: "proof" | "asked" | "summary" | "vehicle" | "site" | "report" | "record" | "seal";
  readonly what: string;
  readonly vehicle: string | null;
  readonly charger: string | null;
  /** Command id, `epoch-seq`. */
  readonly command: string | null;
  /** ISO, UTC. */
  readonly from: string | null;
  readonly until: string | null;
  readonly value: number | null;
  readonly unit: string | null;
  /** For people. Never empty, and without line breaks. */
  readonly words: string | null;
  /** The row of the record that says so. */
  readonly seq: number | null;
  /** Hash of the row before that one. */
  readonly previous: string | null;
  readonly hash: string | null;
}

/** A fact with the hash that binds it to all lines before it. */
export interface Printed {
  readonly fact: Fact;
  readonly print: string;
}

type Said = Partial<Omit<Fact, "section" | "what">>;

/** A fact of which only what applies is told. */
export const fact = (section: Fact["section"], what: string, { words = null, ...said }: Said = {}): Fact => ({
  section,
  vehicle: null,
  charger: null,
  command: null,
  from: null,
  until: null,
  value: null,
  unit: null,
  seq: null,
  previous: null,
  hash: null,
  ...said,
  what,
  words: words === null || words === "" ? null : oneLine(words),
});

/** Where an event's name has line breaks, a line of the proof must not. */
const oneLine = (words: string): string => words.replaceAll(/[\r\n]/g, " ").toWellFormed();

/** Measured figures, to the Wh and W: three digits of a kilo. */
export const kilo = (value: number): number => Math.round(value) / 1000;

/** How a proof is written down: JSON for programs, CSV for a table. Both say the same, under the same seal. */
export type Format = "json" | "csv";

/** Where a line stands among the facts. */
interface Place {
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

interface Spelling {
  /** Lines before the first fact. */
  readonly heading: readonly string[];
  readonly spell: (printed: Printed, place: Place) => string;
  /** Null: not a line of a proof. A line that reads well may still not be spelled as we do. */
  readonly read: (line: string) => Printed | null;
}

/** In the order of the table. */
const COLUMNS = [
  "section",
  "vehicle",
  "charger",
  "command",
  "what",
  "from",
  "until",
  "value",
  "unit",
  "words",
  "seq",
  "previous",
  "hash",
] as const satisfies readonly (keyof Fact)[];

const SECTIONS: ReadonlySet<string> = new Set<Fact["section"]>([
  "proof",
  "asked",
  "summary",
  "vehicle",
  "site",
  "report",
  "record",
  "seal",
]);

const ALPHABETICAL = [...COLUMNS, "print" as const].toSorted();

/** Members in alphabetical order, without those that do not apply: one fact has one spelling. */
function canonical(members: Fact & { readonly print?: string }): string {
  const told: Record<string, string | number> = {};
  for (const name of ALPHABETICAL) {
    const value = members[name] ?? null;
    if (value !== null) told[name] = value;
  }
  return JSON.stringify(told);
}

/** An array of flat objects, each on a line of its own. */
const json: Spelling = {
  heading: [],
  spell: ({ fact, print }, { isFirst, isLast }) =>
    `${isFirst ? "[" : ""}${canonical({ ...fact, print })}${isLast ? "]" : ","}`,
  read: (line) => {
    const text = line.replace(/^\[/, "").replace(/[,\]]$/, "");
    try {
      const members: unknown = JSON.parse(text);
      return typeof members === "object" && members !== null
        ? printedOf(new Map(Object.entries(members)))
        : null;
    } catch {
      return null;
    }
  },
};

/** RFC 4180, with the mark by which spreadsheets know UTF-8. */
const csv: Spelling = {
  heading: [`\uFEFF${[...COLUMNS, "print"].join(",")}`],
  spell: ({ fact, print }) =>
    [...COLUMNS.map((column) => fact[column]), print].map((value) => cell(value)).join(","),
  read: (line) => {
    const cells = cellsIn(line);
    const members = [...COLUMNS, "print"].map((column, index): readonly [string, unknown] => {
      const text = cells[index] ?? "";
      const isNumber = column === "value" || column === "seq";
      return [column, text === "" ? null : isNumber ? Number(text) : text];
    });
    return printedOf(new Map(members));
  },
};

export const SPELLINGS: Readonly<Record<Format, Spelling>> = { json, csv };

/** The whole proof as lines of text, without their ends; the last one is empty. */
export function* spelled(lines: Iterable<Printed>, format: Format): Generator<string> {
  const { heading, spell } = SPELLINGS[format];
  yield* heading;
  let before: Printed | null = null;
  let isFirst = true;
  for (const line of lines) {
    if (before !== null) {
      yield spell(before, { isFirst, isLast: false });
      isFirst = false;
    }
    before = line;
  }
  if (before !== null) yield spell(before, { isFirst, isLast: true });
  yield "";
}

/** The spelling of a text by its look, whichever of its first characters was changed. */
export const formatOf = ([first = "", second = ""]: readonly string[]): Format =>
  first.startsWith("[") || second.startsWith("{") ? "json" : "csv";

function printedOf(members: ReadonlyMap<string, unknown>): Printed | null {
  const text = (name: string): string | null => {
    const value = members.get(name);
    return typeof value === "string" ? value : null;
  };
  const number = (name: string): number | null => {
    const value = members.get(name);
    return typeof value === "number" ? value : null;
  };
  const [section, what, print] = [text("section"), text("what"), text("print")];
  if (section === null || !isSection(section) || what === null || print === null) return null;
  return {
    print,
    fact: {
      ...fact(section, what),
      vehicle: text("vehicle"),
      charger: text("charger"),
      command: text("command"),
      from: text("from"),
      until: text("until"),
      value: number("value"),
      unit: text("unit"),
      words: text("words"),
      seq: number("seq"),
      previous: text("previous"),
      hash: text("hash"),
    },
  };
}

const isSection = (text: string): text is Fact["section"] => SECTIONS.has(text);

/** What a spreadsheet would take for a formula, and what already looks so marked. */
const RISKY = /^['=+\-@]/;

function cell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = RISKY.test(value) ? `'${value}` : value;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function cellsIn(line: string): readonly string[] {
  const cells = line.matchAll(/(?<=^|,)(?:"(?:[^"]|"")*"|[^,]*)(?=,|$)/g);
  return [...cells].map(([text]) => {
    const plain = text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
    return plain.startsWith("'") ? plain.slice(1) : plain;
  });
}

/** Before the first line. */
export const START = "0".repeat(64);

/** Binds a fact to the line before it, so that an edited, added or missing line shows, and where. */
export const printOf = (previous: string, fact: Fact): string => chainHash(previous, canonical(fact));

/** Over the last print and so over everything: anyone can compute prints, but only the holder of the site key this. */
export const sealOf = (siteKey: Uint8Array, print: string): string =>
  createHmac("sha256", siteKey).update(`proof\n${print}`).digest("hex");

/** What is signed: over everything above, as the seal is, and told apart from whatever else a key may sign. */
const signedText = (print: string): Buffer => Buffer.from(`setpointd proof\n${print}`);

/** Ed25519, hex. Anyone who has the public key can check it, and only the holder of the private one make it. */
const signatureOf = (proofKey: KeyObject, print: string): string =>
  sign(null, signedText(print), proofKey).toString("hex");

export const isSignedBy = (publicKey: KeyObject, print: string, signature: string): boolean =>
  verify(null, signedText(print), publicKey, Buffer.from(signature, "hex"));

/** The public key as it is passed around: base64 of its SPKI form. */
const publicText = (key: KeyObject): string =>
  createPublicKey(key).export({ format: "der", type: "spki" }).toString("base64");

/** The facts with their prints, then the seal and the signature; one at a time, as there may be very many. */
export function* sealed(facts: Iterable<Fact>, siteKey: Uint8Array, proofKey: KeyObject): Generator<Printed> {
  let print = START;
  const printed = (fact: Fact): Printed => {
    print = printOf(print, fact);
    return { fact, print };
  };
  for (const each of facts) yield printed(each);
  yield printed(
    fact("seal", "seal", {
      hash: sealOf(siteKey, print),
      words: "HMAC-SHA256 with the site's key over the print of the line above, which stands for all lines",
    }),
  );
  yield printed(
    fact("seal", "signature", {
      hash: signatureOf(proofKey, print),
      words: `Ed25519 over the print of the line above; this site's public key should be ${publicText(proofKey)}`,
    }),
  );
}
