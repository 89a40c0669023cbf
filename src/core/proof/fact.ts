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
