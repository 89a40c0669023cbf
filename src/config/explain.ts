import * as z from "zod";

/** Keys and indexes from the top of the file, e.g. `["chargers", 2, "current", "max"]`. */
export type Path = readonly PropertyKey[];

/** A mistake or a warning, without its line. */
export interface Finding {
  readonly path: Path;
  /** The present value, never a secret. */
  readonly found: string;
  /** The right value. */
  readonly expected: string;
}

/** A finding with its line. Also the form of a warning. */
export interface Mistake {
  /** `chargers[2].current.max`. "": the whole file. */
  readonly path: string;
  /** From 1. Null: not a line of the file. */
  readonly line: number | null;
  /** From 1. Null: the line is enough. */
  readonly column: number | null;
  readonly found: string;
  readonly expected: string;
}

/** `chargers[2].current.max`. Keys with other characters are quoted. */
export const pathText = (path: Path): string =>
  path
    .map((key, depth) => {
      if (typeof key === "number") return `[${key}]`;
      const name = String(key);
      if (!/^[\w-]+$/.test(name)) return `[${JSON.stringify(name)}]`;
      return depth === 0 ? name : `.${name}`;
    })
    .join("");

/** Further mistakes have the same cause. */
export const MOST_MISTAKES = 100;

/** Lines of the parts of a document. */
interface Lines {
  readonly lineOf: (path: Path) => number | null;
}

/** A finding with its place in a document. */
export const located =
  (source: Lines) =>
  ({ path, found, expected }: Finding): Mistake => ({
    path: pathText(path),
    line: source.lineOf(path),
    column: null,
    found,
    expected,
  });

/** A file with mistakes. */
export interface Refused {
  readonly ok: false;
  readonly mistakes: readonly Mistake[];
}

/** A document with mistakes: the first ones, by their lines. */
export const refused = (source: Lines, all: readonly Finding[]): Refused => ({
  ok: false,
  mistakes: all
    .map(located(source))
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    .slice(0, MOST_MISTAKES),
});

const SECRET_KEYS = new Set<PropertyKey>(["clientSecret", "secret", "password", "key"]);
/** Sections that contain a secret. A text in their place may be the secret itself. */
const SECRET_SECTIONS = new Set<PropertyKey>(["auth", "hmac", "bearer", "standardWebhooks"]);

/** Keys that name the place of a secret. A text there may be the secret itself. */
const SOURCES = new Set<PropertyKey>(["file", "env"]);

/** A file that is one text may be the secret itself, named by mistake. */
const isSecret = (path: Path): boolean =>
  path.length === 0 ||
  path.some((key) => SECRET_KEYS.has(key)) ||
  [SECRET_SECTIONS, SOURCES].some((names) => names.has(path.at(-1) ?? ""));

/** A password may contain any character, also @ and /. */
const withoutUser = (text: string): string =>
  /[:/].*@/s.test(text) ? text.replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, "$1***@") : text;

/** A value of the file for people. Texts that are or may be secrets are not shown. */
export function foundInWords(value: unknown, path: Path): string {
  if (value === undefined || value === null) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "string") {
    if (value.includes("-----BEGIN") || isSecret(path)) return "a text (not shown)";
    const shown = withoutUser(value);
    return `${JSON.stringify(shown.length > 80 ? `${shown.slice(0, 80)}...` : shown)} (text)`;
  }
  if (typeof value === "number") return `${value} (number)`;
  if (typeof value === "boolean") return `${value} (true or false)`;
  return "a section";
}

/** A block for each mistake: place, present value, right value. */
export const explain = (mistakes: readonly Mistake[], file: string): string =>
  mistakes
    .map(({ path, line, column, found, expected }) => {
      const where = [file, line, column].filter((part) => part !== null).join(":");
      return `${path === "" ? where : `${where}  ${path}`}\n  found     ${found}\n  expected  ${expected}\n`;
    })
    .join("\n");

/** Number of edits (insert, remove, replace, swap of neighbours) from `a` to `b`. */
function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    rows[i] = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const cost = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        replaced,
        swapped ? at(i - 2, j - 2) + 1 : Infinity,
      );
      rows[i]?.push(cost);
    }
  }
  return at(a.length, b.length);
}

const fold = (text: string): string => text.slice(0, 64).toLowerCase().replaceAll(/[-_ ]/g, "");

/** The known word nearest to `word`, whatever its case, "-" or "_". Null: none is near. */
export function nearest(word: string, known: readonly string[]): string | null {
  const wanted = fold(word);
  let best: string | null = null;
  // A candidate with fewer edits is nearer than all before it.
  let bound = Math.floor(Math.max(1, word.length / 3)) + 1;
  for (const candidate of known) {
    const name = fold(candidate);
    if (Math.abs(name.length - wanted.length) >= bound) continue;
    const edits = distance(wanted, name);
    if (edits >= bound) continue;
    [best, bound] = [candidate, edits];
    if (edits === 0) break;
  }
  return best;
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "a text (a text that looks like a number needs quotes)",
  number: "a number",
  boolean: "true or false",
  object: "a section: keys with values, indented below this one (or leave the key out where it is optional)",
  record: "a section: names with values, indented below this one",
  array: "a list: lines that start with a dash",
};

/** The right value, where the schema has no sentence of its own. For unknown keys: the known ones. */
export const sentence: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === "invalid_type") return TYPE_WORDS[issue.expected];
  if (issue.code === "invalid_value") return `one of: ${issue.values.join(", ")}`;
  if (issue.code === "invalid_key") return issue.issues[0]?.message;
  if (issue.code === "too_small") {
    const { minimum, inclusive = true, origin } = issue;
    return `${inclusive ? "at least" : "above"} ${minimum} ${countable(origin, minimum)}`.trim();
  }
  if (issue.code === "too_big") {
    const { maximum, inclusive = true, origin } = issue;
    return `${inclusive ? "at most" : "below"} ${maximum} ${countable(origin, maximum)}`.trim();
  }
  if (issue.code === "unrecognized_keys" && issue.inst instanceof z.ZodObject)
    return Object.keys(issue.inst.shape).join(", ");
  if (issue.code === "unrecognized_keys" && issue.inst instanceof z.ZodRecord) {
    const { keyType } = issue.inst;
    if (keyType instanceof z.ZodEnum) return keyType.options.join(", ");
  }
  return undefined;
};

function countable(origin: string, count: number | bigint): string {
  if (origin === "string") return count === 1 ? "character" : "characters";
  if (origin === "array") return count === 1 ? "entry" : "entries";
  return "";
}

/** The branch of a union that was meant, if possible one that knows all keys. The union's own sentence, if this is not clear. */
function innermost(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors
    .map((branch) => branch.flatMap(innermost))
    .filter((branch) => branch.every(({ path, code }) => path.length > 0 || code === "unrecognized_keys"));
  const knowing = meant.filter((branch) => branch.every(({ code }) => code !== "unrecognized_keys"));
  const [only, ...others] = knowing.length > 0 ? knowing : meant;
  if (only === undefined || others.length > 0) return [issue];
  return only.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
}

function valueAt(value: unknown, path: Path): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = Reflect.get(at, key);
  }
  return at;
}

/** Everything that the schema rejected in `value`. */
export const findings = (error: z.core.$ZodError, value: unknown): readonly Finding[] =>
  error.issues.flatMap(innermost).flatMap((issue): readonly Finding[] => {
    if (issue.code !== "unrecognized_keys")
      return [
        {
          path: issue.path,
          found:
            issue.code === "invalid_key"
              ? "a name that cannot be used"
              : foundInWords(valueAt(value, issue.path), issue.path),
          expected: issue.message,
        },
      ];
    const known = issue.message === "" ? [] : issue.message.split(", ");
    return issue.keys.map((key) => {
      const meant = nearest(key, known);
      const all = known.length === 0 ? "no key here" : `one of: ${issue.message}`;
      return {
        path: [...issue.path, key],
        found: "an unknown key",
        expected: meant === null ? all : `did you mean ${meant}? One of: ${issue.message}`,
      };
    });
  });
