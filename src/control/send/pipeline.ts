import { exhaustMap, filter, interval, merge, mergeMap, type Observable, range } from "rxjs";

import type { ControlState } from "../state.ts";
import { chargerState } from "./chargerState.ts";
import type { ChargerId } from "../../domain/units.ts";
import type { ControlPorts } from "../ports.ts";

const EVERY = 1_000;
/** Publishes on their way at once: less than commands may have. */
const WINDOW = 5;

/**
 * Keeps each charger's published state (DESIGN 6.2) true, at an unhurried pace: commands go first. Each broker has a
 * pace of its own: a slow one delays nobody on another.
 */
export function states(depot: ControlState, ports: ControlPorts): Observable<unknown> {
  const brokers = new Set([...depot.chargers.values()].map(({ broker }) => broker));
  return merge(...[...brokers].map((broker) => statesOf(broker, depot, ports)));
}

function statesOf(broker: string, depot: ControlState, ports: ControlPorts): Observable<unknown> {
  const isQuiet = (): boolean => depot.toSend.isEmpty(broker);
  const isHere = (id: ChargerId): boolean => depot.chargers.get(id)?.broker === broker;
  return interval(EVERY).pipe(
    filter(isQuiet),
    exhaustMap(() => {
      // Drawn from by hand: thousands waiting in an operator's buffer cost more than their publishes.
      const line = [...depot.dirty].filter(isHere).values();
      return range(0, WINDOW).pipe(mergeMap(() => publishStates(depot, ports, line, isQuiet)));
    }),
  );
}

/** Publishes how one charger of the line after another stands, until one cannot be told, or commands wait. */
async function publishStates(
  depot: ControlState,
  ports: ControlPorts,
  line: Iterable<ChargerId>,
  mayGoOn: () => boolean,
): Promise<void> {
  for (const id of line) {
    if (!mayGoOn()) return;
    depot.dirty.delete(id);
    const charger = depot.chargers.get(id);
    if (charger === undefined) continue;
    const verdict = depot.verdictOn(charger, ports.now());
    const [record, why] = [depot.commands.get(id), depot.whyOf(charger)];
    const state = chargerState(verdict, record, depot.presenceOf(id), why, depot.silence.has(id));
    const { ok } = await ports.publishState(id, JSON.stringify(state));
    if (ok) continue;
    depot.dirty.add(id);
    return;
  }
}
