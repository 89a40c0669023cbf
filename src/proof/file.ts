import { createHmac, createPublicKey, type KeyObject, sign, verify } from "node:crypto";

import { chainHash } from "../domain/audit.ts";

/** Line of a proof. It is flat, so that JSON and CSV hold the same. Null: does not apply. */
export interface Fact {
  readonly section:
    | "proof"
    | "asked"
    | "summary"
    | "vehicle"
    | "hold"
    | "observe"
    | "site"
    | "report"
    | "record"
    | "seal";
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
  /** Sentence for people. Never empty, and without line breaks. */
  readonly words: string | null;
  /** Row of the record that holds this fact. */
  readonly seq: number | null;
  /** Hash of the row before. */
  readonly previous: string | null;
  readonly hash: string | null;
}

/** A fact with its print: a hash over it and all lines before it. */
export interface Printed {
  readonly fact: Fact;
  readonly print: string;
}

type FactMembers = Partial<Omit<Fact, "section" | "what">>;

/** Creates a fact. Members that do not apply may be left out. */
export const fact = (
  section: Fact["section"],
  what: string,
  { words = null, ...members }: FactMembers = {},
): Fact => ({
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
  ...members,
  what,
  words: words === null || words === "" ? null : oneLine(words),
});

/** Replaces line breaks, which an event's name may have. */
const oneLine = (words: string): string => words.replaceAll(/[\r\n]/g, " ").toWellFormed();

/** Converts to kWh or kW, with three digits. */
export const kilo = (value: number): number => Math.round(value) / 1000;

/** File format of a proof: JSON for programs, CSV for a table. Both hold the same facts under the same seal. */
export type Format = "json" | "csv";

/** Position of a line among the facts. */
interface Place {
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

interface LineFormat {
  /** Lines before the first fact. */
  readonly heading: readonly string[];
  readonly write: (printed: Printed, place: Place) => string;
  /** Null: not a line of a proof. A readable line may still be written in another way than ours. */
  readonly read: (line: string) => Printed | null;
}

/** Columns of CSV, in order. */
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
  "hold",
  "observe",
  "site",
  "report",
  "record",
  "seal",
]);

const ALPHABETICAL = [...COLUMNS, "print" as const].toSorted();

/** Serializes members in alphabetical order, without nulls, so that a fact has exactly one spelling. */
function canonical(members: Fact & { readonly print?: string }): string {
  const present: Record<string, string | number> = {};
  for (const name of ALPHABETICAL) {
    const value = members[name] ?? null;
    if (value !== null) present[name] = value;
  }
  return JSON.stringify(present);
}

/** JSON array of flat objects, one per line. */
const json: LineFormat = {
  heading: [],
  write: ({ fact, print }, { isFirst, isLast }) =>
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

/** CSV as in RFC 4180, with a byte order mark: spreadsheets recognize UTF-8 by it. */
const csv: LineFormat = {
  heading: [`\uFEFF${[...COLUMNS, "print"].join(",")}`],
  write: ({ fact, print }) =>
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

export const LINE_FORMATS: Readonly<Record<Format, LineFormat>> = { json, csv };

/** Lines of the whole proof, without line ends. The last one is empty. A null passes through, see `proofFacts`. */
export function serialized(lines: Iterable<Printed>, format: Format): Generator<string>;
export function serialized(lines: Iterable<Printed | null>, format: Format): Generator<string | null>;
export function* serialized(lines: Iterable<Printed | null>, format: Format): Generator<string | null> {
  const { heading, write } = LINE_FORMATS[format];
  yield* heading;
  let before: Printed | null = null;
  let isFirst = true;
  for (const line of lines) {
    if (line === null) {
      yield line;
      continue;
    }
    if (before !== null) {
      yield write(before, { isFirst, isLast: false });
      isFirst = false;
    }
    before = line;
  }
  if (before !== null) yield write(before, { isFirst, isLast: true });
  yield "";
}

/** Detects the format by the first two lines, even if one of them was edited. */
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

/** Text that a spreadsheet reads as a formula, or that starts with our own escape character. */
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

/** Print before the first line. */
export const START = "0".repeat(64);

/** Print of a fact, chained to the line before it. So an edited, added or missing line is found, with its place. */
export const printOf = (previous: string, fact: Fact): string => chainHash(previous, canonical(fact));

/** HMAC over the last print, and so over all lines. Only the holder of the site key can compute it. */
export const sealOf = (siteKey: Uint8Array, print: string): string =>
  createHmac("sha256", siteKey).update(`proof\n${print}`).digest("hex");

/** Signed text. Its prefix distinguishes it from other texts that the key may sign. */
const signedText = (print: string): Buffer => Buffer.from(`setpointd proof\n${print}`);

/** Ed25519 signature, hex. The public key verifies it. */
const signatureOf = (proofKey: KeyObject, print: string): string =>
  sign(null, signedText(print), proofKey).toString("hex");

/** True: the print was signed with the private key of this public key. `signature`: hex. */
export const isSignedBy = (publicKey: KeyObject, print: string, signature: string): boolean =>
  verify(null, signedText(print), publicKey, Buffer.from(signature, "hex"));

/** Public key as base64 of its SPKI form. */
const publicText = (key: KeyObject): string =>
  createPublicKey(key).export({ format: "der", type: "spki" }).toString("base64");

/** Facts with their prints, then seal and signature. A generator: there may be very many. A null passes through. */
export function sealed(facts: Iterable<Fact>, siteKey: Uint8Array, proofKey: KeyObject): Generator<Printed>;
export function sealed(
  facts: Iterable<Fact | null>,
  siteKey: Uint8Array,
  proofKey: KeyObject,
): Generator<Printed | null>;
export function* sealed(
  facts: Iterable<Fact | null>,
  siteKey: Uint8Array,
  proofKey: KeyObject,
): Generator<Printed | null> {
  let print = START;
  const printed = (fact: Fact): Printed => {
    print = printOf(print, fact);
    return { fact, print };
  };
  for (const each of facts) yield each === null ? each : printed(each);
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
