import { auditRow } from "../domain/audit.ts";
import type { Change, Committed, FailedCommit } from "../domain/changes.ts";
import { commandId, isDoubted, leaseOf, desiredBefore } from "../domain/command.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { type ChargerId, type Instant, instant, iso, type Millis, millis } from "../domain/units.ts";
import { type ClockReading, jumpBetween } from "../platform/clock.ts";
import { free, evaluate } from "./decide/evaluate.ts";
import { EvaluationQueue } from "./decide/evaluationQueue.ts";
import { ingest } from "./ingest/ingest.ts";
import { condense } from "./ingest/summary.ts";
import { handleChargerMessage } from "./observe/chargerMessages.ts";
import { recordSilences, recordReturn } from "./observe/recordSilence.ts";
import type { Arrival, ControlPorts, Freeing, Reevaluation } from "./ports.ts";
import {
  scopeOf,
  onClockMovedBack,
  type LastSent,
  retryLater,
  recoverAfterFailedCommit,
} from "./recovery.ts";
import { advance as advanced, reportUnplugged } from "./schedule/advance.ts";
import { recordOutcome } from "./send/outcome.ts";
import { type FreeingPart, Freeings } from "./send/release.ts";
import { formatStranded } from "./send/stranded.ts";
import { UnrecordedReleases } from "./send/unrecorded.ts";
import type { ControlState } from "./state.ts";

const jumped = (jump: Millis, at: Instant): Change =>
  auditRow(
    "daemon",
    at,
    `the clock of this machine was set ${jump > 0 ? "forward" : "back"} by ${Math.abs(jump) / 1000} s: everything is looked at anew`,
    {
      facts: {
        jumpMs: jump,
        outage: "clock",
        since: iso(instant(Math.min(at, at - jump))),
        over: true,
      },
    },
  );

const chargersOf = (touches: readonly Reevaluation[]): readonly ChargerId[] =>
  touches.map(({ charger }) => charger);

const reevaluationsOf = (chargers: Iterable<ChargerId>, reassert = false): readonly Reevaluation[] =>
  [...chargers].map((charger) => ({ charger, reassert }));

/** A look whose changes are on their way to the disk. */
export interface Pending {
  readonly number: number;
  readonly looked: readonly Reevaluation[];
  readonly freed: readonly FreeingPart[];
  /** Those of them that have something to be sent once it is there. */
  readonly send: readonly ChargerId[];
  /** Its commit was asked for, monotonic clock. */
  readonly since: Millis;
  readonly committed: Promise<Committed>;
}

/** Chargers that were put in line at one broker. */
interface Waiting {
  readonly broker: string;
  readonly count: number;
}

/** The stages of control, bound to the picture they change and the ports they use: each does its part and writes it down. */
export function stagesOf(depot: ControlState, ports: ControlPorts) {
  let looks = 0;
  let clock: ClockReading = { wall: ports.now(), monotonic: ports.monotonic() };
  const sent = new Map<ChargerId, LastSent>();
  // A charger that only a stored command says has a vehicle is expected to speak: one that is dead keeps no claim.
  for (const charger of depot.occupancy.recalled()) depot.silence.noteMessage(charger, clock.monotonic);
  /** Rows on publishes that did go out, lost with a failed commit: written with the next look. */
  let lacking: readonly Change[] = [];
  const unrecorded = new UnrecordedReleases(ports.writeUntilStored);
  const queue = new EvaluationQueue(depot);
  const freeings = new Freeings();
  /** Affected by the parts of a list that came so far. */
  const waiting = new Set<ChargerId>();
  /** The commit that memory was rolled back for last. An intake and the evaluation after it share a commit. */
  let rolledBack: FailedCommit | null = null;
  const rollBack = (failed: FailedCommit): void => {
    if (failed === rolledBack) return;
    rolledBack = failed;
    const scope = scopeOf(failed.dropped);
    const stored = unrecorded.over(scope, ports.stored(scope));
    lacking = [...lacking, ...recoverAfterFailedCommit(depot, scope, stored, sent, ports.now())];
  };

  const maySend = (charger: ChargerId): boolean => depot.barTo("publish", charger) === null;

  const send = async (charger: ChargerId): Promise<void> => {
    const known = depot.commands.get(charger);
    if (known === undefined) return;
    const { command } = known;
    const before = desiredBefore(known, depot.epoch);
    const lease = leaseOf(depot.settings.refresh);
    const from = ports.now();
    const came = await ports.send(command, lease, before, isDoubted(known, depot.settings.verdict.ramp));
    const rows = recordOutcome(depot, command, came, { from, until: ports.now() }, ports.random());
    ports.write(rows);
    const record = depot.commands.get(charger);
    if (!came.ok || record === undefined || commandId(record.command) !== commandId(command)) return;
    const last = sent.get(charger);
    const isAgain = last !== undefined && commandId(last.record.command) === commandId(command);
    // Its record, where that goes with the row, may be newer by the time that the row can be written.
    const said = isAgain ? last.said : rows.filter(({ kind }) => kind === "audit");
    sent.set(charger, { record, said });
  };

  /** What time alone has changed; after a jump of the clock that is a matter of everyone. */
  const advance = (): readonly Reevaluation[] => {
    const before = clock;
    clock = { wall: ports.now(), monotonic: ports.monotonic() };
    const jump = jumpBetween(before, clock);
    const { evaluatedAt: lookedAt } = depot.schedule;
    const changed = jump < 0 ? depot.schedule.replan(clock.wall) : [];
    if (jump < 0) onClockMovedBack(depot, clock.wall);
    ports.write(changed.map((known) => ({ kind: "event", known })));
    const { affectedChargers: touched, changes, late } = advanced(depot, clock.wall);
    condense(depot, clock.wall);
    ports.write(changes);
    // What had begun by then is on record: whoever starts next has not missed it.
    if (jump < 0 && lookedAt !== null) ports.write([{ kind: "evaluated", at: lookedAt }]);
    const fallen = recordSilences(depot, clock.monotonic, clock.wall, ports.isLinked);
    ports.write(fallen.changes);
    for (const words of fallen.warnings) ports.warn(words);
    if (jump !== 0) {
      ports.write([jumped(jump, clock.wall)]);
      return reevaluationsOf(depot.chargers.keys());
    }
    for (const lateBy of late) ports.started(lateBy);
    return reevaluationsOf([...touched, ...fallen.affectedChargers]);
  };

  const evaluateNext = (touches: readonly Reevaluation[]): Pending => {
    ports.write(lacking);
    lacking = [];
    const now = ports.now();
    const freed = freeings.take(chargersOf(touches));
    for (const { chargers } of freed) ports.write(free(depot, chargers, now));
    const { changes, send } = evaluate(depot, touches, now);
    ports.write(changes);
    looks += 1;
    const since = ports.monotonic();
    return { number: looks, looked: touches, freed, send, since, committed: ports.durable() };
  };

  return {
    /** Intake and expansion. Each delivery is settled after the commit, which holds the first evaluations as well. */
    take(arrivals: readonly Arrival[]): readonly Reevaluation[] {
      const {
        changes,
        affectedChargers: touched,
        fetchById: ask,
        results: taken,
      } = ingest(
        depot,
        arrivals.map(({ delivery }) => delivery),
      );
      ports.write(changes);
      if (ask.length > 0) ports.ask(ask);
      void ports.durable().then((committed) => {
        if (!committed.ok) rollBack(committed);
        arrivals.forEach(({ settle }, index) => {
          const counts = taken[index];
          if (!committed.ok) settle(committed);
          else if (counts !== undefined) settle({ ok: true, ingested: counts });
        });
      });
      for (const charger of touched) waiting.add(charger);
      if (arrivals.every(({ isPart = false }) => isPart)) return [];
      const touches = reevaluationsOf(waiting);
      waiting.clear();
      return touches;
    },

    advance,

    hear(message: ChargerMessage): readonly Reevaluation[] {
      const {
        changes,
        affectedChargers: touched,
        warning,
      } = handleChargerMessage(depot, message, ports.now());
      const returned = recordReturn(depot, message, ports.monotonic(), ports.now());
      ports.write([...returned.changes, ...changes]);
      if (warning !== null) ports.warn(warning);
      return returned.affectedChargers.length === 0 ? touched : [...touched, ...returned.affectedChargers];
    },

    everyone(): readonly Reevaluation[] {
      for (const words of formatStranded(depot, ports.now())) ports.warn(words);
      return reevaluationsOf(depot.chargers.keys());
    },

    /** The broker is there again. What is on its way by now went to it, not to the one before. */
    brokerReturned(broker: string): readonly Reevaluation[] {
      const back = [...depot.chargers.values()].filter((charger) => charger.broker === broker);
      for (const { id } of back) {
        depot.silence.restartTimer(id, ports.monotonic());
        depot.presence.expectReturn(id);
      }
      return back.map(({ id }) => ({ charger: id, reassert: !depot.sendQueue.isInFlight(id) }));
    },

    allowStarts(): readonly Reevaluation[] {
      depot.allowStarts();
      // A clock that is believed again may be back by hours, and right again before anything else looks at the time.
      advance();
      ports.write(reportUnplugged(depot, depot.vehicles.keys(), ports.now()));
      return reevaluationsOf(depot.chargers.keys());
    },

    /** Each charger is freed with its evaluation. Settled after the commit of the last one. */
    free(freeing: Freeing): readonly Reevaluation[] {
      freeings.add(freeing);
      return reevaluationsOf(freeing.chargers, true);
    },

    handedBack(charger: ChargerId): readonly Reevaluation[] {
      return reevaluationsOf([charger], true);
    },

    /** Evaluates these chargers now where they are few, else the first slice of all that wait. */
    look: (touches: readonly Reevaluation[]): Pending => evaluateNext(queue.take(touches, ports.now())),

    /** Evaluates the next slice of those that wait. */
    lookOn: (): Pending => evaluateNext(queue.next()),

    /** Chargers still wait for their evaluation. */
    isBehind: (): boolean => !queue.isEmpty,

    /** Puts chargers in line, once what was decided for them is on disk; answers how many wait at which broker. */
    async committed({ number, looked, freed, send, since, committed }: Pending): Promise<readonly Waiting[]> {
      const outcome = await committed;
      queue.noteCommitTime(millis(ports.monotonic() - since));
      const now = ports.now();
      let line = send;
      if (outcome.ok) {
        depot.sendQueue.committed();
        depot.schedule.committed();
      } else {
        rollBack(outcome);
        retryLater(depot, chargersOf(looked), now);
        for (const { chargers } of freed) unrecorded.free(depot, chargers, now);
        line = unrecorded.sendable(depot, looked, now);
      }
      for (const { settle } of freed) settle(outcome);
      const added = new Map<string, number>();
      for (const charger of line) {
        // What left after this look is what it wanted sent: two looks may share a commit.
        if (depot.sendQueue.leftAfter(charger) >= number) continue;
        const broker = depot.chargers.get(charger)?.broker ?? "";
        depot.sendQueue.add(broker, charger);
        added.set(broker, (added.get(broker) ?? 0) + 1);
      }
      return [...added].map(([broker, count]) => ({ broker, count }));
    },

    /**
     * Sends to one charger after another of a broker whatever holds when its turn comes, until nobody waits. At most
     * one in flight per charger: one that is being sent to keeps its place and waits.
     */
    async sendWaiting(broker: string): Promise<void> {
      const next = (): ChargerId | undefined => depot.sendQueue.take(broker, maySend);
      for (let charger = next(); charger !== undefined; charger = next()) {
        depot.sendQueue.startPublish(charger, looks);
        await send(charger);
        depot.sendQueue.endPublish(charger);
      }
    },
  };
}
