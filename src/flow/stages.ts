import { chargerState } from "../core/site/chargerState.ts";
import type { Depot } from "../core/depot.ts";
import type { ChargerMessage } from "../core/site/telemetry.ts";
import { after, type ChargerId, millis, seconds } from "../core/units.ts";
import { advance, nowhere } from "./advance.ts";
import { hear } from "./hear.ts";
import { free, look } from "./look.ts";
import { outcome } from "./outcome.ts";
import type { Arrival, ControlPorts, Touch } from "./ports.ts";
import { take } from "./take.ts";

/** After a failed commit the same chargers are looked at again so much later. */
const COMMIT_RETRY = seconds(5);
/** A lease lasts this many refreshes: two may be lost on the way. */
const REFRESHES_PER_LEASE = 3;

const touchesOf = (chargers: Iterable<ChargerId>, reassert = false): readonly Touch[] =>
  [...chargers].map((charger) => ({ charger, reassert }));

/** The stages of control, bound to the picture they change and the ports they use: each does its part and writes it down. */
export function stagesOf(depot: Depot, ports: ControlPorts) {
  const startOver = (): void => depot.restore(ports.remembered(), ports.now());

  /** At most one in flight per charger: one that is being sent to keeps its place and waits. */
  const nextInLine = (): ChargerId | undefined =>
    depot.toSend.values().find((charger) => !depot.inFlight.has(charger) && !depot.undurable.has(charger));

  const send = async (charger: ChargerId): Promise<void> => {
    const command = depot.commands.get(charger)?.command;
    if (command === undefined) return;
    const lease = millis(depot.settings.refresh * REFRESHES_PER_LEASE);
    const sent = await ports.send(command, lease);
    ports.write(outcome(depot, command, sent, ports.now(), ports.random()));
  };

  return {
    /** Intake and expansion. Each delivery is settled after the commit, which holds the look that follows as well. */
    take(arrivals: readonly Arrival[]): readonly Touch[] {
      const { changes, touched, ask, taken } = take(
        depot,
        arrivals.map(({ delivery }) => delivery),
      );
      ports.write(changes);
      if (ask.length > 0) ports.ask(ask);
      void ports.durable().then((committed) => {
        if (!committed.ok) startOver();
        arrivals.forEach(({ settle }, index) => {
          const counts = taken[index];
          if (!committed.ok) settle(committed);
          else if (counts !== undefined) settle({ ok: true, taken: counts });
        });
      });
      return touchesOf(touched);
    },

    /** What time alone has changed. */
    advance(): readonly Touch[] {
      const { touched, changes } = advance(depot, ports.now());
      ports.write(changes);
      return touchesOf(touched);
    },

    hear(message: ChargerMessage): readonly Touch[] {
      const { changes, touched, warning } = hear(depot, message, ports.now());
      ports.write(changes);
      if (warning !== null) ports.warn(warning);
      return touched;
    },

    everyone({ reassert }: { readonly reassert: boolean }): readonly Touch[] {
      return touchesOf(depot.chargers.keys(), reassert);
    },

    allowStarts(): readonly Touch[] {
      depot.startsAllowed = true;
      ports.write(nowhere(depot, depot.vehicles.keys(), ports.now()));
      return touchesOf(depot.chargers.keys());
    },

    free(chargers: readonly ChargerId[]): readonly Touch[] {
      ports.write(free(depot, chargers, ports.now()));
      return touchesOf(chargers, true);
    },

    look(touches: readonly Touch[]): readonly ChargerId[] {
      const { changes, send } = look(depot, touches, ports.now());
      ports.write(changes);
      return send;
    },

    /** Puts chargers in line, once what was decided for them is on disk; answers how many. */
    async committed(send: readonly ChargerId[]): Promise<number> {
      const committed = await ports.durable();
      if (!committed.ok) {
        startOver();
        for (const charger of send) depot.wake(charger, after(ports.now(), COMMIT_RETRY));
        return 0;
      }
      depot.undurable.clear();
      for (const charger of send) depot.toSend.add(charger);
      return send.length;
    },

    /** Sends to one charger after another whatever holds when its turn comes, until nobody waits. */
    async sendWaiting(): Promise<void> {
      for (let charger = nextInLine(); charger !== undefined; charger = nextInLine()) {
        depot.toSend.delete(charger);
        depot.inFlight.add(charger);
        await send(charger);
        depot.inFlight.delete(charger);
      }
    },

    /** The states that are no longer as published; asking takes them off the list. */
    statesToPublish(): readonly { readonly charger: ChargerId; readonly payload: string }[] {
      const now = ports.now();
      const dirty = [...depot.dirty];
      depot.dirty.clear();
      return dirty.flatMap((id) => {
        const charger = depot.chargers.get(id);
        if (charger === undefined) return [];
        const state = chargerState(
          depot.verdictOn(charger, now),
          depot.commands.get(id),
          depot.presenceOf(id),
          depot.why.get(id) ?? null,
        );
        return [{ charger: id, payload: JSON.stringify(state) }];
      });
    },
  };
}
