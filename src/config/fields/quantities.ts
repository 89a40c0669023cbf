import * as z from "zod";

import { parseDuration, watts } from "../../domain/units.ts";

/**
 * A text that `read` understands (null: it does not). `expected` is the sentence that a person gets instead of
 * a stack trace: it says what would be right, never what is wrong.
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

/** One level of an MQTT topic: neither wildcard nor separator, and no leading "$" or "." (DESIGN 6.2). */
const LEVEL = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}";

/** An id that becomes a topic level, and part of the MQTT client id. */
export const topicName = z
  .string({ error: 'a text of 1 to 64 letters, digits, "-", "_" or "." (not first); a number needs quotes' })
  .regex(new RegExp(`^${LEVEL}$`));

/** Topic levels joined by "/", neither first nor last. */
export const topicPrefix = z
  .string({ error: 'topic levels of letters, digits, "-", "_" and ".", e.g. setpointd or depot/charging' })
  .regex(new RegExp(`^${LEVEL}(/${LEVEL}){0,7}$`));

/** A duration within bounds, both inclusive and spelled as in the file. */
export function duration(least: string, most: string) {
  const from = parseDuration(least) ?? 0;
  const to = parseDuration(most) ?? Infinity;
  return reads((text) => {
    const span = parseDuration(text);
    return span !== null && span >= from && span <= to ? span : null;
  }, `a duration from ${least} to ${most}: a whole number with its unit, e.g. 500ms, 30s, 10m, 2h or 7d`);
}

/** A number with its unit in the sentence; bounds are inclusive. */
export const quantity = (least: number, most: number, unit: string, example: number) =>
  z
    .number({ error: `a number of ${unit} from ${least} to ${most}, e.g. ${example}` })
    .min(least)
    .max(most);

/** A whole number; bounds are inclusive. */
export const count = (least: number, most: number) =>
  z
    .int({ error: `a whole number from ${least} to ${most}` })
    .min(least)
    .max(most);

/** kW in the file, whole watts inside. 10 MW is more than any outlet: such a number was meant in watts. */
export const kilowatts = (least: number) =>
  quantity(least, 10_000, "kW", 22).transform((kW) => watts(Math.round(kW * 1000)));
