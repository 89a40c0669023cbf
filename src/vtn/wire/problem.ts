/** What was found on the wire and what would be right, for the person who has to correct it. */
export interface Problem {
  readonly problem: string;
}

export const isProblem = (value: unknown): value is Problem =>
  typeof value === "object" && value !== null && "problem" in value;

const SHOWN = 60;
const shorten = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text);

/** No excerpt shows more entries of a list than this. */
const MOST_SHOWN = 4096;

/** JSON text of a found value, its long lists cut: what is there to cost time must not cost it once more. */
export const brief = (found: unknown): string =>
  JSON.stringify(found, (_name, value: unknown) =>
    Array.isArray(value) && value.length > MOST_SHOWN ? value.slice(0, MOST_SHOWN) : value,
  ) ?? String(found);

/** A found value as JSON, at most about 60 characters of it. Expects what JSON.parse made (json.ts caps its depth). */
export function shown(found: unknown): string {
  if (typeof found === "string") return JSON.stringify(shorten(found));
  // JSON reads 1e999 as Infinity and would write it as null.
  if (typeof found === "number") return String(found);
  return shorten(brief(found));
}

/** `"abc" is not a timespan; expected hh:mm:ss`, or `missing; expected a timespan: hh:mm:ss`. */
export const misfit = (found: unknown, what: string, expected: string): Problem => ({
  problem:
    found === undefined || found === null
      ? `missing; expected ${what}: ${expected}`
      : `${shown(found)} is not ${what}; expected ${expected}`,
});
