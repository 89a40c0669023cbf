import * as z from "zod";

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
