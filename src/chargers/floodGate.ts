import { type Instant, seconds } from "../core/units.ts";

/** Retained topics come at once; a charger that tells everything every second stays below this for ever. */
const BURST = 200;
const PER_SECOND = 50;

/** Lets the messages of one charger through at a bounded rate, before anyone reads them (F95). */
export function floodGate(now: () => Instant): () => boolean {
  let left = BURST;
  let at = now();
  return () => {
    const passed = now() - at;
    at = now();
    // A clock that was set back gives nothing and takes nothing.
    left = Math.min(BURST, left + (Math.max(passed, 0) / seconds(1)) * PER_SECOND);
    if (left < 1) return false;
    left -= 1;
    return true;
  };
}
