import type { Json } from "../../domain/audit.ts";

/** How chargers spell that they do not know: Go, Python, JavaScript and people (`Infinity` is no measurement either). */
const UNKNOWN = new Set(["", "null", "nil", "none", "-", "nan", "unknown", "unavailable", "undefined"]);

/** Those of them that are no words of people: "unknown" may well be the name of an error. */
const NOTHING = new Set(["", "null", "nil", "none", "-", "nan"]);

const YES = new Set(["true", "1", "yes", "on", "connected", "online"]);
const NO = new Set(["false", "0", "no", "off", "disconnected", "offline"]);

/** A number, or a text that is one; null: declared unknown; undefined: says nothing. */
export function numberIn(raw: Json): number | null | undefined {
  if (raw === null) return null;
  const text = textOf(raw);
  if (text === null) return undefined;
  if (isUnknown(text)) return null;
  if (typeof raw === "boolean" || !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** True or false however it is spelled; null: declared unknown; undefined: says nothing. */
export function truthIn(raw: Json): boolean | null | undefined {
  const text = raw === null ? "" : textOf(raw)?.toLowerCase();
  if (text === undefined) return undefined;
  if (YES.has(text)) return true;
  if (NO.has(text)) return false;
  return isUnknown(text) ? null : undefined;
}

/** A name of one line; null: declared unknown, which is how "nobody" is said. */
export function nameIn(raw: Json): string | null | undefined {
  if (raw === null) return null;
  const text = textOf(raw);
  if (text === null) return undefined;
  if (isUnknown(text)) return null;
  return /^\P{Cc}{1,256}$/u.test(text) && text.isWellFormed() ? text.normalize("NFC") : undefined;
}

/** As the wire spells it, without space around; null: a list or an object has no spelling. */
export const textOf = (raw: Json): string | null =>
  typeof raw === "object" && raw !== null ? null : String(raw).trim();

/** Declared unknown, where any other word would mean something. */
export const isNothing = (text: string): boolean => NOTHING.has(text.toLowerCase());

const isUnknown = (text: string): boolean => UNKNOWN.has(text.toLowerCase());

/** Where a path leads; undefined: nowhere. `place` is what `[#]` stands for. Of what is null as a whole all is. */
export function valueAt(json: Json, path: string, place: number | null): Json | undefined {
  if (json === null) return null;
  let at: Json | undefined = json;
  for (const [, member, index] of path.matchAll(/\.([A-Za-z_][\w-]*)|\[(\d+|#)\]/g)) {
    if (typeof at !== "object" || at === null) return undefined;
    const key: string | number = member ?? (index === "#" ? (place ?? -1) : Number(index));
    const held: unknown = Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined;
    // What JSON.parse made holds nothing but JSON.
    at = held as Json | undefined;
  }
  return at;
}

/** Nothing a charger has to say is longer, in bytes or in characters; what is, is not looked at. */
export const LARGEST_PAYLOAD = 64 * 1024;

/** Undefined: it is not JSON. */
export function parsed(payload: string): Json | undefined {
  try {
    // What JSON.parse makes is JSON.
    return JSON.parse(payload) as Json;
  } catch {
    return undefined;
  }
}

/** As text; undefined: it is none, or too long. */
export function decoded(payload: Buffer): string | undefined {
  if (payload.length > LARGEST_PAYLOAD) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(payload);
  } catch {
    return undefined;
  }
}
