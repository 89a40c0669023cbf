import { z } from "zod";
import { isProblem, misfit, type Problem } from "./problem.ts";

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
 * The fields that the contract knows, in its spelling; undefined where there is no object. The exact spelling wins
 * over another case; null counts as absent. Nothing else is copied, `__proto__` least of all (failures F64).
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

/** One of our readers as a schema: what it could not read becomes the issue. */
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

/** The same for a field that may be absent. */
export const optionally = <T, Absent>(reader: (found: unknown) => T | Problem, absent: Absent) =>
  by((found): T | Absent | Problem => (found === undefined ? absent : reader(found)));

/** An object in whatever case its field names come. */
export const folded = <Shape extends z.ZodRawShape>(what: string, shape: Shape) => {
  const names = spelling(Object.keys(shape));
  const object = z.object(shape, { error: ({ input }) => misfit(input, what, "a JSON object").problem });
  return z.preprocess((found) => fieldsOf(names, found) ?? found, object);
};

/** Text without further rules; absent is empty. */
export const text = z
  .string({ error: ({ input }) => misfit(input, "a text", "a JSON string").problem })
  .default("");
