/** Maximum characters of foreign text in a sentence. */
const MOST = 128;
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Foreign text for use in a sentence: one line, no control characters, capped. */
export function sanitizeForLog(text: string): string {
  const line = text.slice(0, MOST).toWellFormed().replaceAll(CONTROLS, "\uFFFD");
  return text.length > MOST ? `${line}...` : line;
}

/** `EV-1, EV-2 and 3 more`. `count`: of all names, where not all of them are given. */
export function listed(names: readonly string[], most: number, count = names.length): string {
  const shown = names.slice(0, most);
  const more = count - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

/** Whole minutes: `5 min`, `2 h 5 min`. */
export const formatMinutes = (minutes: number): string =>
  minutes >= 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes} min`;

/** A regular noun with its number: `1 vehicle`, `2 vehicles`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Control and format characters (escape sequences, direction marks), line separators, lone surrogates. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const UNSAFE_BUT_LINES = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** Fast path: nearly all lines are plain, and matching Unicode properties is slow. */
const PLAIN = /^[\x20-\x7e\n\t]*$/;

/** Foreign text on one line. Characters that a terminal could obey become JSON escapes, line breaks as well. */
export const oneLine = (text: string): string => text.replaceAll(UNSAFE, escaped);

/** `oneLine` that keeps line breaks and tabs. JSON keeps its meaning. */
export const printable = (text: string): string =>
  PLAIN.test(text) ? text : text.replaceAll(UNSAFE_BUT_LINES, escaped);

const escaped = (character: string): string =>
  character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

/** Words of OpenSSL, between the number of a thread and a source file of its build. */
const OPENSSL = /:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/;

/** Text of a caught value. Not every library throws an `Error`. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const reason = OPENSSL.exec(message)?.[1];
  return reason === undefined ? message : `TLS: ${reason}`;
}

/** Code of an error: a text such as EAGAIN of the system, a number of MQTT. Undefined: it has none. */
export const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined;
