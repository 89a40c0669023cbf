import * as z from "zod";
import { nearest } from "./nearest.ts";
import { foundInWords, type Finding, type Path } from "./mistakes.ts";

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "a text (a text that looks like a number needs quotes)",
  number: "a number",
  boolean: "true or false",
  object: "a section: keys with values, indented below this one (or leave the key out where it is optional)",
  record: "a section: names with values, indented below this one",
  array: "a list: lines that start with a dash",
};

/** What would be right, where the schema itself has no sentence for it. For unknown keys: the known ones. */
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

/** Of a union, the branch whose shape was meant; the union's own sentence where that is not clear. */
function innermost(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors.filter((branch) =>
    branch.every((inner) => inner.path.length > 0 || inner.code === "unrecognized_keys"),
  );
  const [only] = meant;
  if (only === undefined || meant.length > 1) return [issue];
  return only.flatMap((inner) => innermost({ ...inner, path: [...issue.path, ...inner.path] }));
}

function valueAt(value: unknown, path: Path): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = Reflect.get(at, key);
  }
  return at;
}

/** All that the schema did not accept in `value`. */
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
    const known = issue.message.split(", ");
    return issue.keys.map((key) => {
      const meant = nearest(key, known);
      const all = `the keys here are ${issue.message}`;
      return {
        path: [...issue.path, key],
        found: "an unknown key",
        expected: meant === null ? all : `did you mean ${meant}? ${all}`,
      };
    });
  });
