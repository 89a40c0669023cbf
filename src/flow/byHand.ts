import type { CommandRecord } from "../core/control/command.ts";
import { inWords } from "../core/control/setpoint.ts";
import { heldInWords } from "../core/control/pace.ts";
import type { Depot } from "../core/depot.ts";
import type { Committed } from "../core/ledger.ts";
import { findCharger, type FoundCharger } from "../core/site/findCharger.ts";
import type { ChargerId } from "../core/units.ts";
import { limited } from "./stranded.ts";

/** What came of a release by hand, for who asked for it. */
export interface Released {
  readonly ok: boolean;
  readonly words: string;
}

/** The charger that a person means: by its id, or by VTN id or name of the vehicle on it. */
export const chargerIn = ({ chargers, vehicles, plugs }: Depot, target: string): FoundCharger =>
  findCharger(target, chargers.keys(), vehicles.values(), (vehicle) => plugs.where(vehicle));

/** While observing. `standing`: what would have been freed. */
export function notReleased(standing: readonly CommandRecord[]): Released {
  const words = "observing: no command is published, a release neither";
  if (standing.length === 0) return { ok: true, words };
  const named = standing.map(({ command }) => command.charger).join(", ");
  return {
    ok: false,
    words: `${words}; still as told before: ${named}. A start with control.onObserve: release frees them, once`,
  };
}

/** After the look that a release by hand asks for, and its commit: who is freed now, and who only later, and why. */
export function released(
  depot: Depot,
  standing: readonly CommandRecord[],
  isLinked: (charger: ChargerId) => boolean,
  committed: Committed,
): Released {
  const record = committed.ok ? "" : notRecorded(committed.reason);
  if (standing.length === 0) return { ok: true, words: `nothing was limited${record}` };
  const freed = standing.map((stood) => {
    const wait = waitOf(depot, stood.command.charger, isLinked);
    return wait === null ? freedFrom(depot, stood) : `${freedFrom(depot, stood)} (${wait})`;
  });
  return { ok: true, words: `freed ${freed.join("; ")}; ${limitedAgain(freed.length)}${record}` };
}

/** "bay-01 (Bus 214) from 16 A until 14:00:00, event EV-1". `stood`: its command before the release. */
export function freedFrom(depot: Depot, { command }: CommandRecord): string {
  const { charger, vehicle, desired, until, event } = command;
  const name = vehicle === null ? null : (depot.vehicles.get(vehicle)?.name ?? vehicle);
  return [
    name === null ? charger : `${charger} (${name})`,
    desired.kind === "release" ? " from the level before its release" : ` from ${inWords(desired)}`,
    until === null ? "" : ` until ${depot.wallClock(until)}`,
    event === null ? "" : `, event ${event}`,
  ].join("");
}

export const limitedAgain = (count: number): string =>
  `a new event limits ${count === 1 ? "it" : "them"} again`;

/** A release by hand goes out although the disk refuses. */
const notRecorded = (reason: string): string =>
  `; not on record yet, and undone by a restart before it is: ${reason}`;

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
