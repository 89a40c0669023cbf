import type { Json } from "../../domain/audit.ts";

/** Spellings of "unknown" by Go, Python, JavaScript and people. `Infinity` is not a measurement either. */
const UNKNOWN = new Set(["", "null", "nil", "none", "-", "nan", "unknown", "unavailable", "undefined"]);

/** Texts that mean no value. "unknown" is none of them: it may be the name of an error. */
const NOTHING = new Set(["", "null", "nil", "none", "-", "nan"]);

const YES = new Set(["true", "1", "yes", "on", "connected", "online"]);
const NO = new Set(["false", "0", "no", "off", "disconnected", "offline"]);

/** A number, or a text that is one. Null: declared unknown. Undefined: no number. */
export function numberIn(raw: Json): number | null | undefined {
  if (raw === null) return null;
  const text = textOf(raw);
  if (text === null) return undefined;
  if (isUnknown(text)) return null;
  if (typeof raw === "boolean" || !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** A percentage. Null: outside 0 to 100, as 255 or -1 of a charger that cannot read it. */
export const percentIn = (value: number): number | null => (value >= 0 && value <= 100 ? value : null);

/** True or false in any spelling. Null: declared unknown. Undefined: neither. */
export function truthIn(raw: Json): boolean | null | undefined {
  const text = raw === null ? "" : textOf(raw)?.toLowerCase();
  if (text === undefined) return undefined;
  if (YES.has(text)) return true;
  if (NO.has(text)) return false;
  return isUnknown(text) ? null : undefined;
}

/** A name of one line. Null: declared unknown, which means no vehicle. */
export function nameIn(raw: Json): string | null | undefined {
  if (raw === null) return null;
  const text = textOf(raw);
  if (text === null) return undefined;
  if (isUnknown(text)) return null;
  return /^\P{Cc}{1,256}$/u.test(text) && text.isWellFormed() ? text.normalize("NFC") : undefined;
}

/** Longest version of a firmware that is shown. */
const LONGEST_VERSION = 64;
/** Control and format characters, line separators and lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu;

/** A version of a firmware: one line, cut short. Null: declared unknown. Undefined: a list or an object. */
export function versionIn(raw: Json): string | null | undefined {
  if (raw === null) return null;
  const text = textOf(raw);
  if (text === null) return undefined;
  const line = text
    .slice(0, 4 * LONGEST_VERSION)
    .replaceAll(UNPRINTABLE, " ")
    .trim();
  // The cut may leave the half of a character.
  const version = line.slice(0, LONGEST_VERSION).replaceAll(UNPRINTABLE, "").normalize("NFC");
  return isUnknown(version) ? null : version;
}

/** The text on the wire, trimmed. Null: a list or an object. */
export const textOf = (raw: Json): string | null =>
  typeof raw === "object" && raw !== null ? null : String(raw).trim();

/** Declared unknown, for values whose other spellings have a meaning. */
export const isNothing = (text: string): boolean => NOTHING.has(text.toLowerCase());

const isUnknown = (text: string): boolean => UNKNOWN.has(text.toLowerCase());

/**
 * The value at a path. Undefined: no such member. `place`: index for `[#]`. Every path in null leads to
 * null.
 */
export function valueAt(json: Json, path: string, place: number | null): Json | undefined {
  if (json === null) return null;
  let at: Json | undefined = json;
  for (const [, member, index] of path.matchAll(/\.([A-Za-z_][\w-]*)|\[(\d+|#)\]/g)) {
    if (typeof at !== "object" || at === null) return undefined;
    const key: string | number = member ?? (index === "#" ? (place ?? -1) : Number(index));
    const held: unknown = Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined;
    // JSON.parse returns nothing but JSON.
    at = held as Json | undefined;
  }
  return at;
}

/** Longest payload, in bytes or characters. A longer one is not parsed. */
export const LARGEST_PAYLOAD = 64 * 1024;

/** Undefined: not JSON. */
export function parsed(payload: string): Json | undefined {
  try {
    // JSON.parse returns JSON.
    return JSON.parse(payload) as Json;
  } catch {
    return undefined;
  }
}

/** The payload as text. Undefined: not UTF-8, or too long. */
export function decoded(payload: Buffer): string | undefined {
  if (payload.length > LARGEST_PAYLOAD) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(payload);
  } catch {
    return undefined;
  }
}
