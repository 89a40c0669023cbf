import { millis, type Millis } from "./units.ts";

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
