import { millis, type Millis } from "../core/units.ts";
import { reads } from "./reads.ts";

const UNIT_MS = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** `500ms`, `30s`, `10m`, `2h`, `7d` (DESIGN 6.1). Null: not a duration; a bare number has no unit and is none. */
export function parseDuration(text: string): Millis | null {
  const [, digits, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = UNIT_MS.get(unit ?? "");
  return digits === undefined || unitMs === undefined ? null : millis(Number(digits) * unitMs);
}

/** A duration within bounds, both inclusive and spelled as in the file. */
export function duration(least: string, most: string) {
  const from = parseDuration(least) ?? 0;
  const to = parseDuration(most) ?? Infinity;
  return reads((text) => {
    const span = parseDuration(text);
    return span !== null && span >= from && span <= to ? span : null;
  }, `a duration from ${least} to ${most}: a whole number with its unit, e.g. 500ms, 30s, 10m, 2h or 7d`);
}
