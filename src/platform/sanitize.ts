/** Of what a partner writes, so much is repeated to people. */
const MOST = 128;
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** What a partner writes, in a sentence: no line of its own, no escape that a terminal would obey, no page of it. */
export function sanitizeForLog(text: string): string {
  const line = text.slice(0, MOST).toWellFormed().replaceAll(CONTROLS, "\uFFFD");
  return text.length > MOST ? `${line}...` : line;
}

/** Control and format characters (escape sequences, direction marks), line separators, lone surrogates. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const UNSAFE_BUT_LINES = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** Nearly all lines are plain, and the search for properties is slow. */
const PLAIN = /^[\x20-\x7e\n\t]*$/;

/** Foreign text on one line: everything that a terminal could obey, or that looks like another line, is written as an escape of JSON. */
export const oneLine = (text: string): string => text.replaceAll(UNSAFE, escaped);

/** As `oneLine`, for text of our own that has line breaks and tabs. JSON keeps its meaning. */
export const printable = (text: string): string =>
  PLAIN.test(text) ? text : text.replaceAll(UNSAFE_BUT_LINES, escaped);

const escaped = (character: string): string =>
  character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
