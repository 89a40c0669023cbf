import { merge, type Observable } from "rxjs";

import type { ControlState } from "../state.ts";
import { chargerState } from "./chargerState.ts";
import type { ChargerId } from "../../domain/units.ts";
import { every } from "../../platform/scheduling.ts";
import type { ControlPorts } from "../ports.ts";

const EVERY = 1_000;
/** Cap on publishes in flight. Lower than the cap for commands. A higher one delays the commands of other sites of a fleet. */
const WINDOW = 5;

/**
 * Publishes each charger's state whenever it changed. Commands go first.
 * Each broker has a queue of its own, so a slow one delays no other.
 */
export function states(state: ControlState, ports: ControlPorts): Observable<unknown> {
  const brokers = new Set([...state.chargers.values()].map(({ broker }) => broker));
  return merge(...[...brokers].map((broker) => statesOf(broker, state, ports)));
}

function statesOf(broker: string, state: ControlState, ports: ControlPorts): Observable<unknown> {
  const isQuiet = (): boolean => state.sendQueue.isEmpty(broker);
  const isHere = (id: ChargerId): boolean => state.chargers.get(id)?.broker === broker;
  return every(EVERY, () => {
    // Most rounds find nothing, and a process of a fleet has thousands in a second.
    if (state.feed.forPublishedState.isEmpty || !isQuiet()) return undefined;
    // Drawn one by one: thousands in an operator's buffer would cost more than their publishes.
    const line = [...state.feed.forPublishedState].filter(isHere).values();
    return Promise.all(Array.from({ length: WINDOW }, () => publishStates(state, ports, line, isQuiet)));
  });
}

/** Publishes the states of the chargers in `line`, until a publish fails or a command waits. */
async function publishStates(
  state: ControlState,
  ports: ControlPorts,
  line: Iterable<ChargerId>,
  mayGoOn: () => boolean,
): Promise<void> {
  const changed = state.feed.forPublishedState;
  for (const id of line) {
    if (!mayGoOn()) return;
    changed.remove(id);
    const charger = state.chargers.get(id);
    if (charger === undefined) continue;
    const verdict = state.verdictOn(charger, ports.now());
    const [record, why] = [state.commands.get(id), state.whyOf(charger)];
    const published = chargerState(verdict, record, state.presence.of(id), why, state.silence.has(id));
    const { ok } = await ports.publishState(id, JSON.stringify(published));
    if (ok) continue;
    changed.add(id);
    return;
  }
}
