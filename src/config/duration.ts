import { parseDuration } from "../core/duration.ts";
import { reads } from "./reads.ts";

/** A duration within bounds, both inclusive and spelled as in the file. */
export function duration(least: string, most: string) {
  const from = parseDuration(least) ?? 0;
  const to = parseDuration(most) ?? Infinity;
  return reads((text) => {
    const span = parseDuration(text);
    return span !== null && span >= from && span <= to ? span : null;
  }, `a duration from ${least} to ${most}: a whole number with its unit, e.g. 500ms, 30s, 10m, 2h or 7d`);
}
