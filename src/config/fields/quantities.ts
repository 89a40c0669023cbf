import * as z from "zod";

import { parseDuration, watts } from "../../domain/units.ts";

/**
 * A text that `read` accepts (null: rejected). `expected` is the sentence for people: it states the right
 * value, never what is wrong.
 */
export const reads = <T>(read: (text: string) => T | null, expected: string | ((text: string) => string)) => {
  const sentence = typeof expected === "string" ? expected : expected("");
  return z.string({ error: sentence }).transform((text, context): T => {
    const value = read(text);
    if (value !== null) return value;
    context.addIssue({ code: "custom", message: typeof expected === "string" ? expected : expected(text) });
    return z.NEVER;
  });
};

/** A level of an MQTT topic: no wildcard, no separator, no leading "$" or ".". */
const LEVEL = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}";

/** An id that is used as a topic level and in the MQTT client id. */
export const topicName = z
  .string({ error: 'a text of 1 to 64 letters, digits, "-", "_" or "." (not first); a number needs quotes' })
  .regex(new RegExp(`^${LEVEL}$`));

/** Topic levels joined by "/", without a leading or trailing one. */
export const topicPrefix = z
  .string({ error: 'topic levels of letters, digits, "-", "_" and ".", e.g. setpointd or depot/charging' })
  .regex(new RegExp(`^${LEVEL}(/${LEVEL}){0,7}$`));

/** A duration within bounds, both inclusive and written as in the file. */
export function duration(least: string, most: string) {
  const from = parseDuration(least) ?? 0;
  const to = parseDuration(most) ?? Infinity;
  return reads((text) => {
    const span = parseDuration(text);
    return span !== null && span >= from && span <= to ? span : null;
  }, `a duration from ${least} to ${most}: a whole number with its unit, e.g. 500ms, 30s, 10m, 2h or 7d`);
}

/** A number, with its unit in the message. Bounds are inclusive. */
export const quantity = (least: number, most: number, unit: string, example: number) =>
  z
    .number({ error: `a number of ${unit} from ${least} to ${most}, e.g. ${example}` })
    .min(least)
    .max(most);

/** A whole number. Bounds are inclusive. */
export const count = (least: number, most: number) =>
  z
    .int({ error: `a whole number from ${least} to ${most}` })
    .min(least)
    .max(most);

/** kW in the file, whole watts in the program. More than 10 MW was meant as watts. */
export const kilowatts = (least: number) =>
  quantity(least, 10_000, "kW", 22).transform((kW) => watts(Math.round(kW * 1000)));
