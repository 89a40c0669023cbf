import { z } from "zod";

import type { Target } from "../../../domain/event.ts";

/** Message for the person who has to correct the input: the value found, and the value expected. */
export interface Problem {
  readonly problem: string;
}

export const isProblem = (value: unknown): value is Problem =>
  typeof value === "object" && value !== null && "problem" in value;

const SHOWN = 60;
const shorten = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text);

/** Most list entries in an excerpt. */
const MOST_SHOWN = 4096;

/** JSON text of a found value with long lists cut, so that an oversized body does not cost time twice. */
export const brief = (found: unknown): string =>
  JSON.stringify(found, (_name, value: unknown) =>
    Array.isArray(value) && value.length > MOST_SHOWN ? value.slice(0, MOST_SHOWN) : value,
  ) ?? String(found);

/** A found value as JSON, at most about 60 characters. Expects a parsed value (json.ts caps its depth). */
export function shown(found: unknown): string {
  if (typeof found === "string") return JSON.stringify(shorten(found));
  // JSON.parse reads 1e999 as Infinity, and JSON.stringify would write it as null.
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

/** Matches most ids: nothing to normalize, nothing to reject. */
const PLAIN = /^[\x20-\x7e]{1,256}$/;
const CONTROL = /\p{Cc}/u;
/** Long runs of combining marks: normalizing them takes quadratic time. UAX #15 calls at most 30 marks in a row safe. */
const PILED = /\p{M}{31}/u;
/** Counts code points. */
const LENGTH = /^.{1,256}$/su;

/**
 * Reads an id and normalizes it to NFC. It must be well-formed Unicode of 1 to 256 characters without control
 * characters. So no two ids collide in a topic or in the store.
 */
export function readId(found: unknown): string | Problem {
  if (typeof found !== "string") return misfit(found, "an id", "a string of 1 to 256 characters");
  if (PLAIN.test(found)) return found;
  if (!found.isWellFormed()) return misfit(found, "an id", "well-formed Unicode, no lone surrogates");
  if (CONTROL.test(found)) return misfit(found, "an id", "no control characters");
  if (PILED.test(found)) return misfit(found, "an id", "at most 30 combining marks in a row");
  const normalized = found.normalize("NFC");
  return LENGTH.test(normalized) ? normalized : misfit(found, "an id", "1 to 256 characters");
}

/** Contract spelling of each field, by that spelling and by its lower case. */
export type Spelling<Name extends string> = ReadonlyMap<string, Name>;
export type Fields<Name extends string> = Readonly<Partial<Record<Name, unknown>>>;

export const spelling = <Name extends string>(names: readonly Name[]): Spelling<Name> =>
  new Map(
    names.flatMap((name): [string, Name][] => [
      [name.toLowerCase(), name],
      [name, name],
    ]),
  );

/**
 * The known fields in contract spelling. Undefined: no object. The exact spelling wins over another case;
 * null counts as absent. Unknown members such as `__proto__` are never copied.
 */
export function fieldsOf<Name extends string>(names: Spelling<Name>, raw: unknown): Fields<Name> | undefined {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return undefined;
  const fields: Partial<Record<Name, unknown>> = {};
  for (const [key, value] of Object.entries(raw)) {
    const name = value === null ? undefined : (names.get(key) ?? names.get(key.toLowerCase()));
    if (name !== undefined && (key === name || fields[name] === undefined)) fields[name] = value;
  }
  return fields;
}

/** Wraps a reader as a schema: its problem becomes the issue. */
export const by = <T>(reader: (found: unknown) => T | Problem) =>
  z
    .unknown()
    .optional()
    .transform((found, context): T => {
      const value = reader(found);
      if (!isProblem(value)) return value;
      context.addIssue({ code: "custom", message: value.problem });
      return z.NEVER;
    });

/** As `by`, for a field that may be absent. */
export const optionally = <T, Absent>(reader: (found: unknown) => T | Problem, absent: Absent) =>
  by((found): T | Absent | Problem => (found === undefined ? absent : reader(found)));

/** An object with field names in any case. */
export const folded = <Shape extends z.ZodRawShape>(what: string, shape: Shape) => {
  const names = spelling(Object.keys(shape));
  const object = z.object(shape, { error: ({ input }) => misfit(input, what, "a JSON object").problem });
  return z.preprocess((found) => fieldsOf(names, found) ?? found, object);
};

/** Text without further rules; absent is empty. */
export const text = z
  .string({ error: ({ input }) => misfit(input, "a text", "a JSON string").problem })
  .default("");

/** Limit far above the vehicles of any site: a larger event is rejected to save time and memory. */
const MOST_TARGET_VALUES = 100_000;
/** Limit far above the report descriptors of any event. */
const MOST_REPORT_DESCRIPTORS = 100;

const targetNames = spelling(["targetType", "values"]);
const descriptorNames = spelling(["targets"]);

/** A problem with its place in the event. */
interface Misfit {
  readonly path: readonly (string | number)[];
  readonly reason: string;
}

/**
 * Reads targets in plain loops instead of schemas, because 20,000 vehicles in one event are ordinary. Ends at
 * the first bad entry.
 */
export const targets = z
  .unknown()
  .optional()
  .transform((found, context): readonly Target[] => {
    if (found === undefined) return [];
    const read = Array.isArray(found) ? readTargets(found) : misfitAt([], found, "a list", "a JSON array");
    if (!("reason" in read)) return read;
    context.addIssue({ code: "custom", message: read.reason, path: [...read.path] });
    return z.NEVER;
  });

function readTargets(found: readonly unknown[]): readonly Target[] | Misfit {
  const read: Target[] = [];
  for (const [index, entry] of found.entries()) {
    const fields = fieldsOf(targetNames, entry);
    if (fields === undefined) return misfitAt([index], entry, "a target", "a JSON object");
    const { targetType = "", values = [] } = fields;
    if (typeof targetType !== "string")
      return misfitAt([index, "targetType"], targetType, "a text", "a JSON string");
    if (!Array.isArray(values)) return misfitAt([index, "values"], values, "a list", "an array of ids");
    const ids: string[] = [];
    for (const [place, value] of values.entries()) {
      const id = readId(value);
      if (isProblem(id)) return { path: [index, "values", place], reason: id.problem };
      ids.push(id);
    }
    read.push({ type: targetType, values: ids });
  }
  return read;
}

const misfitAt = (path: Misfit["path"], found: unknown, what: string, expected: string): Misfit => ({
  path,
  reason: misfit(found, what, expected).problem,
});

/** Counts targets and descriptors before any is read. Null: within the limits. */
export function overfull(event: {
  readonly targets?: unknown;
  readonly reportDescriptors?: unknown;
}): Misfit | null {
  const descriptors = Array.isArray(event.reportDescriptors) ? event.reportDescriptors : [];
  if (descriptors.length > MOST_REPORT_DESCRIPTORS) {
    const reason = `${descriptors.length} report descriptors; expected at most ${MOST_REPORT_DESCRIPTORS}`;
    return { path: ["reportDescriptors"], reason };
  }
  let room = MOST_TARGET_VALUES - valuesIn(event.targets, MOST_TARGET_VALUES);
  if (room < 0) return tooManyValues(["targets"]);
  for (const [index, descriptor] of descriptors.entries()) {
    room -= valuesIn(fieldsOf(descriptorNames, descriptor)?.targets, room);
    if (room < 0) return tooManyValues(["reportDescriptors", index, "targets"]);
  }
  return null;
}

const tooManyValues = (path: Misfit["path"]): Misfit => ({
  path,
  reason: `more than ${MOST_TARGET_VALUES} target values in one event; expected at most as many`,
});

/** A target without values counts as one. Stops counting above `most`. */
function valuesIn(found: unknown, most: number): number {
  if (!Array.isArray(found)) return 0;
  if (found.length > most) return found.length;
  let count = 0;
  for (const entry of found) {
    const values = fieldsOf(targetNames, entry)?.values;
    count += Array.isArray(values) ? Math.max(1, values.length) : 1;
    if (count > most) return count;
  }
  return count;
}
