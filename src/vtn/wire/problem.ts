/** What was found on the wire and what would be right, for the person who has to correct it. */
export interface Problem {
  readonly problem: string;
}

export const isProblem = (value: unknown): value is Problem =>
  typeof value === "object" && value !== null && "problem" in value;

const SHOWN = 60;
const shorten = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text);

/** A found value as JSON, at most about 60 characters of it. Expects what JSON.parse made (json.ts caps its depth). */
export function shown(found: unknown): string {
  if (typeof found === "string") return JSON.stringify(shorten(found));
  // JSON reads 1e999 as Infinity and would write it as null.
  if (typeof found === "number") return String(found);
  return shorten(JSON.stringify(found) ?? String(found));
}

/** `"abc" is not a timespan; expected hh:mm:ss`, or `missing; expected a timespan: hh:mm:ss`. */
export const misfit = (found: unknown, what: string, expected: string): Problem => ({
  problem:
    found === undefined || found === null
      ? `missing; expected ${what}: ${expected}`
      : `${shown(found)} is not ${what}; expected ${expected}`,
});
