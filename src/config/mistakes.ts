/** Keys and indexes from the top of the file, e.g. `["chargers", 2, "current", "max"]`. */
export type Path = readonly PropertyKey[];

/** Something that is not as it should be, before its line is known. */
export interface Finding {
  readonly path: Path;
  /** What stands there, never a secret. */
  readonly found: string;
  /** What would be right. */
  readonly expected: string;
}

/** A finding as people get it. Also the shape of a warning. */
export interface Mistake {
  /** `chargers[2].current.max`; "": the file as a whole. */
  readonly path: string;
  /** From 1; null: no line of the file. */
  readonly line: number | null;
  /** From 1; null where the line is enough. */
  readonly column: number | null;
  readonly found: string;
  readonly expected: string;
}

/** `chargers[2].current.max`; keys that are no plain words are quoted. */
export const pathText = (path: Path): string =>
  path
    .map((key, depth) => {
      if (typeof key === "number") return `[${key}]`;
      const name = String(key);
      if (!/^[\w-]+$/.test(name)) return `[${JSON.stringify(name)}]`;
      return depth === 0 ? name : `.${name}`;
    })
    .join("");

const SECRET_KEYS = new Set<PropertyKey>(["clientSecret", "secret", "password", "key"]);
/** Sections with a secret in them: a text in their place may well be that secret. */
const SECRET_SECTIONS = new Set<PropertyKey>(["auth", "hmac", "bearer", "standardWebhooks"]);

const isSecret = (path: Path): boolean =>
  path.some((key) => SECRET_KEYS.has(key)) || SECRET_SECTIONS.has(path.at(-1) ?? "");

/** A password may hold any letter, an @ and a slash too. */
const withoutUser = (text: string): string =>
  /[:/].*@/s.test(text) ? text.replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, "$1***@") : text;

/** A value of the file in a few words; texts where a secret belongs, or that look like one, are not shown. */
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

/** For people, one block each: where, what was found, what would be right. */
export const explain = (mistakes: readonly Mistake[], file: string): string =>
  mistakes
    .map(({ path, line, column, found, expected }) => {
      const where = [file, line, column].filter((part) => part !== null).join(":");
      return `${path === "" ? where : `${where}  ${path}`}\n  found     ${found}\n  expected  ${expected}\n`;
    })
    .join("\n");
