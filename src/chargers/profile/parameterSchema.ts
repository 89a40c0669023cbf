import * as z from "zod";

const PATTERN = "a regular expression for the whole value, e.g. [0-9]{6,8}";

const pattern = z.string({ error: PATTERN }).refine(
  (source) => {
    try {
      return new RegExp(source, "u") instanceof RegExp;
    } catch {
      return false;
    }
  },
  { error: PATTERN },
);

/** Where a parameter is found in another one. */
const found = z.strictObject({
  in: z.string().min(1).describe("The parameter that holds it. Required."),
  match: pattern.describe("A regular expression whose first group is it. Required."),
});

/** What a profile has to know of one charger. Without a default it is required, unless it is optional. */
export const parameter = z.strictObject({
  about: z.string().min(1).describe("What it is and where it is found, for people. Required."),
  default: z
    .union([z.string(), z.number()])
    .optional()
    .describe("Its value where the charger's params say nothing. Left out: required."),
  optional: z
    .boolean()
    .prefault(false)
    .describe(
      "It may be left out: topics with it are not read then, and a JSON value that is nothing else is null. Default false.",
    ),
  found: found.optional().describe("Its value where the params leave it out. Left out: see default."),
  type: z
    .enum(["text", "integer"])
    .prefault("text")
    .describe("An integer stays a number where it is a whole JSON value. Default text."),
  values: z.array(z.string()).min(1).optional().describe("The only values it may have. Left out: any."),
  pattern: pattern
    .optional()
    .describe("What the whole value has to match, as a regular expression. Left out: any."),
  form: z
    .string()
    .min(1)
    .optional()
    .describe("What pattern asks for, in words, e.g. 6 or 8 digits. Left out: the pattern is shown."),
  levels: z
    .enum(["one", "many"])
    .prefault("one")
    .describe(
      "Whether it may hold several topic levels with / between them, as prefixes do. Default one. Wildcards and control characters are refused always.",
    ),
});

export type Parameter = z.output<typeof parameter>;

/** A name that topics and payloads may use, chosen by the value of a parameter. */
export const derivedName = z.strictObject({
  of: z.string().min(1).describe("The parameter whose value chooses. Required."),
  is: z
    .record(z.string(), z.union([z.string(), z.number()]))
    .describe("For each of its values, what to put in. Required."),
});
