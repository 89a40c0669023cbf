import { filter, interval, map, type Observable, tap } from "rxjs";

import { type Instant, instant, iso, type Millis, millis, seconds } from "../core/units.ts";
import type { ControlPorts } from "./ports.ts";

const CHECK_EVERY = seconds(1);
/** A shorter gap is a busy machine. */
const SHORTEST = seconds(5);

/**
 * Records that this process stood still: its event loop was blocked, or the process was suspended. Nothing was received
 * or sent meanwhile. Emits how long.
 */
export function standstill({
  now,
  monotonic,
  write,
}: Pick<ControlPorts, "now" | "monotonic" | "write">): Observable<Millis> {
  let before = monotonic();
  return interval(CHECK_EVERY).pipe(
    map(() => {
      const tick = monotonic();
      const stood = millis(tick - before - CHECK_EVERY);
      before = tick;
      return stood;
    }),
    filter((stood) => stood >= SHORTEST),
    tap((stood) => write([row(stood, now())])),
  );
}

const row = (stood: Millis, at: Instant) =>
  ({
    kind: "audit",
    entry: {
      at,
      kind: "daemon",
      charger: null,
      vehicle: null,
      event: null,
      command: null,
      words: `setpointd stood still for ${Math.round(stood / 1000)} s: nothing was received or sent meanwhile`,
      facts: { outage: "setpointd", since: iso(instant(at - stood)), over: true },
    },
  }) as const;
