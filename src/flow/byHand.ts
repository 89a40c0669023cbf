import type { CommandRecord } from "../core/control/command.ts";
import { heldInWords } from "../core/control/pace.ts";
import type { Depot } from "../core/depot.ts";
import type { Committed } from "../core/ledger.ts";
import type { ChargerId } from "../core/units.ts";
import { limited } from "./stop.ts";

/** What came of a release by hand, for who asked for it. */
export interface Released {
  readonly ok: boolean;
  readonly words: string;
}

/** While observing. `standing`: what would have been freed. */
export function notReleased(standing: readonly CommandRecord[]): Released {
  const words = "observing: no command is published, a release neither";
  if (standing.length === 0) return { ok: true, words };
  const named = standing.map(({ command }) => command.charger).join(", ");
  return { ok: false, words: `${words}; still as told before: ${named}` };
}

/** After the look that a release by hand asks for, and its commit: who is freed now, and who only later, and why. */
export function released(
  depot: Depot,
  standing: readonly CommandRecord[],
  isLinked: (charger: ChargerId) => boolean,
  committed: Committed,
): Released {
  if (!committed.ok) return { ok: false, words: `nothing was released: ${committed.reason}` };
  if (standing.length === 0) return { ok: true, words: "nothing was limited" };
  const named = standing.map(({ command: { charger } }) => {
    const wait = waitOf(depot, charger, isLinked);
    return wait === null ? charger : `${charger} (${wait})`;
  });
  return { ok: true, words: `freed ${named.join(", ")}` };
}

/** Who is limited and not in the configuration any more cannot be told: whoever frees all of them has to hear of it. */
export function exceptThoseWhoLeft(depot: Depot, released: Released): Released {
  const left = limited(depot).filter(({ command }) => !depot.chargers.has(command.charger));
  if (!released.ok || left.length === 0) return released;
  const named = left.map(({ command }) => command.charger).join(", ");
  return {
    ok: false,
    words: `${released.words}, except what is not in this configuration: ${named} (put it back, release it, then take it out)`,
  };
}

function waitOf(depot: Depot, id: ChargerId, isLinked: (charger: ChargerId) => boolean): string | null {
  if (!isLinked(id)) return "not told yet, its broker is away: when that is back";
  if (depot.presenceOf(id).online === false) return "not told yet, it is offline: when it is back";
  const held = depot.held.get(id);
  if (held === undefined) return null;
  const why = heldInWords(held, depot.chargers.get(id)?.writesPerHour ?? null);
  return `not told yet, but by ${depot.wallClock(held.until)}: ${why}`;
}
