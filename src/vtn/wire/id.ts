import { misfit, type Problem } from "./problem.ts";

/** By far the most ids: nothing to normalize, nothing to reject. */
const PLAIN = /^[\x20-\x7e]{1,256}$/;
const CONTROL = /\p{Cc}/u;
/** Normalizing takes time by the square of such a run: UAX #15 calls text with at most 30 marks in a row safe. */
const PILED = /\p{M}{31}/u;
/** Counts code points. */
const LENGTH = /^.{1,256}$/su;

/**
 * An id, NFC-normalized: well-formed Unicode of 1 to 256 characters without control characters, so that
 * no two ids collide in a topic or in the store (failures F66).
 */
export function readId(found: unknown): string | Problem {
  if (typeof found !== "string") return misfit(found, "an id", "a string of 1 to 256 characters");
  if (PLAIN.test(found)) return found;
  if (!found.isWellFormed()) return misfit(found, "an id", "well-formed Unicode, no lone surrogates");
  if (CONTROL.test(found)) return misfit(found, "an id", "no control characters");
  if (PILED.test(found)) return misfit(found, "an id", "at most 30 combining marks in a row");
  const normalized = found.normalize("NFC");
  return LENGTH.test(normalized) ? normalized : misfit(found, "an id", "1 to 256 characters");
}
