import type { Change } from "./core/ledger.ts";
import type { WallClock } from "./core/reason.ts";
import { between, type Instant, iso } from "./core/units.ts";

/** What is not ours and may be away. */
export type Neighbour = "partner" | "broker" | `broker ${string}`;

/** Puts on record from when until when the partner, or a broker, was away: a proof shows it beside what was missed. */
export function outages(
  write: (changes: readonly Change[]) => void,
  now: () => Instant,
  wallClock: WallClock,
) {
  const gone = new Map<Neighbour, Instant>();
  return {
    /** `since`: the last sign of it. Said once. */
    gone(who: Neighbour, since: Instant): void {
      if (gone.has(who)) return;
      gone.set(who, since);
      write([row(who, now(), `the ${who} is away since ${wallClock(since)}`, since, false)]);
    },

    /** The last sign of whoever is away. Null: nothing is known to be away. */
    awaySince: (who: Neighbour): Instant | null => gone.get(who) ?? null,

    /** Nothing, where it was there all the time. */
    back(who: Neighbour): void {
      const since = gone.get(who);
      if (since === undefined) return;
      gone.delete(who);
      const seconds = Math.round(between(since, now()) / 1000);
      write([row(who, now(), `the ${who} is there again after ${seconds} s`, since, true)]);
    },
  };
}

const row = (who: Neighbour, at: Instant, words: string, since: Instant, over: boolean): Change => ({
  kind: "audit",
  entry: {
    at,
    kind: "silence",
    charger: null,
    vehicle: null,
    event: null,
    command: null,
    words,
    facts: { outage: who, since: iso(since), ...(over ? { over } : {}) },
  },
});
