import { type Fact, fact, type Printed } from "./fact.ts";

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
export function canonical(members: Fact & { readonly print?: string }): string {
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
