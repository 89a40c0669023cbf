import type { Command } from "../core/control/command.ts";
import type { Depot } from "../core/depot.ts";
import { firstWhere } from "../core/reporting/bisect.ts";
import { type Reading, readingsOf, toldBy } from "../core/reporting/reading.ts";
import { thin } from "../core/reporting/thinning.ts";
import type { ChargerMessage } from "../core/site/telemetry.ts";
import type { ChargerId, Instant } from "../core/units.ts";

/** Of one charger in a minute, more messages than this are not stored: one that flips its state on and on (F95). */
const MOST_A_MINUTE = 120;
const MINUTE = 60_000;

/** What was kept of a charger, and how much of it in this minute. */
interface Shelf {
  readonly newest: Map<Reading["kind"], Reading>;
  /** When the last message was from, and what was not kept of it. */
  at: number;
  passedOver: readonly Reading[];
  minute: number;
  count: number;
}

const freshShelf = (): Shelf => ({ newest: new Map(), at: Infinity, passedOver: [], minute: 0, count: 0 });

/**
 * Turns what chargers say, and what they are told, into the readings worth keeping. On both sides of an edge (in
 * order) the message next to it is kept whole: a register is booked to one side of it or the other.
 */
export function collector(depot: Depot, edges: () => readonly Instant[]) {
  const shelves = new Map<ChargerId, Shelf>();

  const shelfOf = (charger: ChargerId): Shelf => {
    const shelf = shelves.get(charger) ?? freshShelf();
    shelves.set(charger, shelf);
    return shelf;
  };

  /** Everything next to an edge, otherwise what is worth it. */
  const choose = (shelf: Shelf, readings: readonly Reading[], at: Instant): readonly Reading[] => {
    const near = edges();
    const next = near[firstWhere(near, (edge) => edge > shelf.at)];
    const isAcross = next !== undefined && next <= at;
    const kept = isAcross ? [...shelf.passedOver, ...readings] : thin(shelf.newest, readings);
    shelf.at = at;
    shelf.passedOver = isAcross ? [] : readings.filter((reading) => !kept.includes(reading));
    return kept;
  };

  const keep = (shelf: Shelf, kept: readonly Reading[], now: Instant): readonly Reading[] => {
    if (kept.length === 0) return [];
    const minute = Math.floor(now / MINUTE);
    shelf.count = shelf.minute === minute ? shelf.count + 1 : 1;
    shelf.minute = minute;
    if (shelf.count > MOST_A_MINUTE) return [];
    for (const reading of kept) shelf.newest.set(reading.kind, reading);
    return kept;
  };

  return {
    /** Of one message: to be called once it has changed who is where. */
    heard(message: ChargerMessage, now: Instant): readonly Reading[] {
      if (message.kind !== "telemetry" || !depot.chargers.has(message.charger)) return [];
      const { charger, telemetry } = message;
      const occupant = depot.plugs.at(charger);
      const vehicle = occupant.kind === "vehicle" ? occupant.vehicle : null;
      const record = depot.commands.get(charger);
      const isOut = record !== undefined && record.sentAt !== null && record.progress !== "observed";
      const readings = readingsOf({ charger, vehicle }, telemetry, now, isOut ? record.command : null);
      const shelf = shelfOf(charger);
      return keep(shelf, choose(shelf, readings, readings[0]?.at ?? now), now);
    },

    /** Of one command that went out, its refreshes included: a charger may never say anything itself. */
    told(command: Command, now: Instant): readonly Reading[] {
      const shelf = shelfOf(command.charger);
      return keep(shelf, thin(shelf.newest, [toldBy(command, now)]), now);
    },
  };
}
