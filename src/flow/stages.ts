import { type ClockReading, jumpBetween } from "../core/clock.ts";
import { commandId, isDoubted, leaseOf } from "../core/control/command.ts";
import type { Depot } from "../core/depot.ts";
import type { Change, Committed } from "../core/ledger.ts";
import type { ChargerMessage } from "../core/site/telemetry.ts";
import { type ChargerId, type Instant, instant, iso, type Millis } from "../core/units.ts";
import { advance as advanced, nowhere } from "./advance.ts";
import { hear } from "./hear.ts";
import { free, listens, look } from "./look.ts";
import { outcome } from "./outcome.ts";
import type { Arrival, ControlPorts, Freeing, Touch } from "./ports.ts";
import { setBack } from "./setBack.ts";
import { type LastSent, startOver, wantsLease } from "./startOver.ts";
import { fallSilent, heardAgain } from "./silence.ts";
import { take } from "./take.ts";

const jumped = (jump: Millis, at: Instant): Change => ({
  kind: "audit",
  entry: {
    at,
    kind: "daemon",
    charger: null,
    vehicle: null,
    event: null,
    command: null,
    words: `the clock of this machine was set ${jump > 0 ? "forward" : "back"} by ${Math.abs(jump) / 1000} s: everything is looked at anew`,
    facts: {
      jumpMs: jump,
      outage: "clock",
      since: iso(instant(Math.min(at, at - jump))),
      over: true,
    },
  },
});

const touchesOf = (chargers: Iterable<ChargerId>, reassert = false): readonly Touch[] =>
  [...chargers].map((charger) => ({ charger, reassert }));

/** A look whose changes are on their way to the disk. */
export interface Pending {
  readonly number: number;
  readonly looked: readonly ChargerId[];
  /** Those of them that have something to be sent once it is there. */
  readonly send: readonly ChargerId[];
  readonly committed: Promise<Committed>;
}

/** The stages of control, bound to the picture they change and the ports they use: each does its part and writes it down. */
export function stagesOf(depot: Depot, ports: ControlPorts) {
  let looks = 0;
  let clock: ClockReading = { wall: ports.now(), monotonic: ports.monotonic() };
  const sent = new Map<ChargerId, LastSent>();
  /** Rows on publishes that did go out, lost with a failed commit: written with the next look. */
  let lacking: readonly Change[] = [];
  const restart = (): void => {
    lacking = startOver(depot, ports.remembered(), sent, ports.now());
  };

  const maySend = (charger: ChargerId): boolean =>
    !depot.inFlight.has(charger) && !depot.undurable.has(charger) && !depot.loans.has(charger);

  /**
   * At most one in flight per charger: one that is being sent to keeps its place and waits. Goes on where it stopped:
   * from the start, each call would step over everyone who has left the line before it.
   */
  let line = depot.toSend.values();
  const nextInLine = (): ChargerId | undefined => {
    const next = line.find(maySend);
    if (next !== undefined) return next;
    line = depot.toSend.values();
    return line.find(maySend);
  };

  const send = async (charger: ChargerId): Promise<void> => {
    const known = depot.commands.get(charger);
    if (known === undefined) return;
    const { command, replaces } = known;
    const lease = leaseOf(depot.settings.refresh);
    const from = ports.now();
    const came = await ports.send(command, lease, replaces, isDoubted(known, depot.settings.verdict.ramp));
    const rows = outcome(depot, command, came, { from, until: ports.now() }, ports.random());
    ports.write(rows);
    const record = depot.commands.get(charger);
    if (!came.ok || record === undefined || commandId(record.command) !== commandId(command)) return;
    const before = sent.get(charger);
    const isAgain = before !== undefined && commandId(before.record.command) === commandId(command);
    // Its record, where that goes with the row, may be newer by the time that the row can be written.
    const said = isAgain ? before.said : rows.filter(({ kind }) => kind === "audit");
    sent.set(charger, { record, said });
  };

  /** What time alone has changed; after a jump of the clock that is a matter of everyone. */
  const advance = (): readonly Touch[] => {
    const before = clock;
    clock = { wall: ports.now(), monotonic: ports.monotonic() };
    const jump = jumpBetween(before, clock);
    const { lookedAt } = depot;
    const changed = jump < 0 ? depot.replan(clock.wall) : [];
    if (jump < 0) setBack(depot, clock.wall);
    ports.write(changed.map((known) => ({ kind: "event", known })));
    const { touched, changes, late } = advanced(depot, clock.wall);
    ports.write(changes);
    // What had begun by then is on record: whoever starts next has not missed it.
    if (jump < 0 && lookedAt !== null) ports.write([{ kind: "looked", at: lookedAt }]);
    const fallen = fallSilent(depot, clock.monotonic, clock.wall, ports.isLinked);
    ports.write(fallen.changes);
    for (const words of fallen.warnings) ports.warn(words);
    if (jump !== 0) {
      ports.write([jumped(jump, clock.wall)]);
      return touchesOf(depot.chargers.keys());
    }
    for (const lateBy of late) ports.started(lateBy);
    return touchesOf(touched);
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
        if (!committed.ok) restart();
        arrivals.forEach(({ settle }, index) => {
          const counts = taken[index];
          if (!committed.ok) settle(committed);
          else if (counts !== undefined) settle({ ok: true, taken: counts });
        });
      });
      return touchesOf(touched);
    },

    advance,

    hear(message: ChargerMessage): readonly Touch[] {
      const { changes, touched, warning } = hear(depot, message, ports.now());
      const again = heardAgain(depot, message, ports.monotonic(), ports.now());
      ports.write([...again.changes, ...changes]);
      if (warning !== null) ports.warn(warning);
      return again.touched.length === 0 ? touched : [...touched, ...again.touched];
    },

    everyone(): readonly Touch[] {
      return touchesOf(depot.chargers.keys());
    },

    /** The broker is there again. What is on its way by now went to it, not to the one before. */
    brokerReturned(broker: string): readonly Touch[] {
      const back = [...depot.chargers.values()].filter((charger) => charger.broker === broker);
      for (const { id } of back) depot.silence.pardon(id, ports.monotonic());
      return back.map(({ id }) => ({ charger: id, reassert: !depot.inFlight.has(id) }));
    },

    allowStarts(): readonly Touch[] {
      depot.startsAllowed = true;
      // A clock that is believed again may be back by hours, and right again before anything else looks at the time.
      advance();
      ports.write(nowhere(depot, depot.vehicles.keys(), ports.now()));
      return touchesOf(depot.chargers.keys());
    },

    /** Settled after the commit, which holds the look that follows as well. */
    free({ chargers, settle }: Freeing): readonly Touch[] {
      ports.write(free(depot, chargers, ports.now()));
      void ports.durable().then(settle);
      return touchesOf(chargers, true);
    },

    handedBack(charger: ChargerId): readonly Touch[] {
      return touchesOf([charger], true);
    },

    look(touches: readonly Touch[]): Pending {
      ports.write(lacking);
      lacking = [];
      const { changes, send } = look(depot, touches, ports.now());
      ports.write(changes);
      looks += 1;
      return {
        number: looks,
        looked: touches.map(({ charger }) => charger),
        send,
        committed: ports.durable(),
      };
    },

    /** Puts chargers in line, once what was decided for them is on disk; answers how many. */
    async committed({ number, looked, send, committed }: Pending): Promise<number> {
      const { ok } = await committed;
      if (ok) {
        depot.undurable.clear();
        depot.unsaid.clear();
      } else restart();
      const now = ports.now();
      const line = ok ? send : looked.filter((id) => listens(depot, id) && wantsLease(depot, id, now));
      for (const charger of line) {
        // What left after this look is what it wanted sent: two looks may share a commit.
        if ((depot.inFlight.get(charger) ?? 0) < number) depot.toSend.add(charger);
      }
      return line.length;
    },

    /** Sends to one charger after another whatever holds when its turn comes, until nobody waits. */
    async sendWaiting(): Promise<void> {
      for (let charger = nextInLine(); charger !== undefined; charger = nextInLine()) {
        depot.toSend.delete(charger);
        depot.inFlight.set(charger, looks);
        await send(charger);
        depot.inFlight.delete(charger);
      }
    },
  };
}
