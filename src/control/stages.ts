import { type Change, type Committed, type Lost, scopeOf } from "../domain/changes.ts";
import { commandId, isDoubted, leaseOf, desiredBefore } from "../domain/command.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import type { CommitTime } from "../domain/store.ts";
import { type ChargerId, type Instant, millis } from "../domain/units.ts";
import { type ClockReading, jumpBetween } from "../platform/clock.ts";
import { beginUrgently, type ResumableTask } from "../platform/cooperative.ts";
import { free, evaluate } from "./decide/evaluate.ts";
import {
  EvaluatedMark,
  EvaluationQueue,
  Freeings,
  inOrder,
  type Pending,
  type Stage,
  type Waiting,
} from "./decide/waiting.ts";
import { type Affected, ingestStage } from "./ingest/ingest.ts";
import { NONE_READ } from "./ingest/knownEvents.ts";
import { condense } from "./ingest/summary.ts";
import { handleChargerMessage } from "./observe/chargerMessages.ts";
import { brokerReturned, lateAfterReturn, recordSilences, recordReturn } from "./observe/recordSilence.ts";
import { advanceHolds, type HoldRequest } from "./holds/lifecycle.ts";
import { advanceMode, type ModeRequest } from "./holds/observePeriod.ts";
import type { Arrival, ControlPorts, Freeing, Reevaluation } from "./ports.ts";
import {
  clockStepRow,
  onClockMovedBack,
  type LastSent,
  retryLater,
  recoverAfterFailedCommit,
} from "./recovery.ts";
import { advance as advanced, reportingUnplugged } from "./schedule/advance.ts";
import { recordOutcome } from "./send/outcome.ts";
import { formatStranded } from "./send/release.ts";
import { sendersOf } from "./send/sendQueue.ts";
import { UnrecordedReleases } from "./send/unrecorded.ts";
import type { ControlState } from "./state.ts";

const chargersOf = (reevaluations: readonly Reevaluation[]): readonly ChargerId[] =>
  reevaluations.map(({ charger }) => charger);

const reevaluationsOf = (chargers: Iterable<ChargerId>, reassert = false): readonly Reevaluation[] =>
  [...chargers].map((charger) => ({ charger, reassert }));

/** The stages of control, bound to the state they change and the ports they use. */
export function stagesOf(state: ControlState, ports: ControlPorts) {
  let evaluations = 0;
  const readClock = (): ClockReading => ({ wall: ports.now(), monotonic: ports.monotonic() });
  let clock = readClock();
  /** Events that are open again since the clock was set back, for the stages that run. */
  let reopened = NONE_READ;
  const sent = new Map<ChargerId, LastSent>();
  /** Publishes whose rows are written, and not known to be stored. */
  let unproven: LastSent[] = [];
  // A charger whose occupant comes from a stored command must send messages. A dead one keeps no claim.
  for (const charger of state.occupancy.recalled()) state.silence.noteMessage(charger, clock.monotonic);
  /** Rows of publishes that were lost with a failed commit. The next evaluation writes them. */
  let lacking: readonly Change[] = [];
  const unrecorded = new UnrecordedReleases(ports.writeUntilStored);
  const queue = new EvaluationQueue(state);
  const freeings = new Freeings();
  const mark = new EvaluatedMark(state, queue);
  const rollBack = (lost: Lost): void => {
    mark.isDue = true;
    const scope = scopeOf(lost.dropped);
    if (lost.stored === null) throw new Error("a commit failed, and nothing can be read");
    const stored = unrecorded.over(scope, lost.stored);
    lacking = [...lacking, ...recoverAfterFailedCommit(state, scope, stored, sent, ports.now())];
  };
  /** As the port. Rolls back what failed commits dropped, also where no stage waited for them. */
  const durable = async (when: CommitTime = "now"): Promise<Committed> => {
    const written = unproven;
    unproven = [];
    const committed = await ports.durable(when);
    const lost = committed.ok ? committed.lost : committed;
    if (lost !== undefined && lost.dropped.length > 0) rollBack(lost);
    if (lost === undefined) for (const each of written) each.rows = [];
    else unproven = [...written, ...unproven];
    return committed;
  };

  const send = async (charger: ChargerId): Promise<void> => {
    const known = state.commands.get(charger);
    if (known === undefined) return;
    const { command } = known;
    const before = desiredBefore(known, state.epoch);
    const lease = leaseOf(state.settings.refresh);
    const from = ports.now();
    const result = await ports.send(command, lease, before, isDoubted(known, state.settings.verdict.ramp));
    const rows = recordOutcome(state, command, result, { from, until: ports.now() }, ports.random());
    ports.write(rows);
    const record = state.commands.get(charger);
    if (!result.ok || record === undefined || commandId(record.command) !== commandId(command)) return;
    const last = sent.get(charger);
    const isAgain = last !== undefined && commandId(last.record.command) === commandId(command);
    // A command record of this publish may be outdated by the time the rows are written.
    const sentRows = isAgain ? last.rows : rows.filter(({ kind }) => kind === "audit");
    const lastSent = { record, rows: sentRows };
    sent.set(charger, lastSent);
    if (sentRows.length > 0) unproven.push(lastSent);
  };

  const senders = sendersOf(state.sendQueue, {
    windowOf: ports.windowOf,
    maySend: (charger) => {
      const isRelease = state.commands.get(charger)?.command.cause === "observe";
      return state.barTo(isRelease ? "publishRelease" : "publish", charger) === null;
    },
    send,
    evaluation: () => evaluations,
  });

  /** Keepalives of chargers follow the mode once it is stored. */
  const modeChanged = async (): Promise<Committed> => {
    const committed = await durable();
    if (committed.ok) ports.observe(state.mode.current === "observe");
    return committed;
  };

  /** Handles the passage of time. After a clock step every charger is affected. */
  const advance = (): readonly Reevaluation[] => {
    const before = clock;
    clock = readClock();
    const jump = jumpBetween(before, clock);
    const { evaluatedAt } = state.schedule;
    const changed = jump < 0 ? state.schedule.replan(clock.wall, reopened) : [];
    if (jump < 0) onClockMovedBack(state, clock.wall);
    ports.write(advanceHolds(state, jump, clock.wall));
    const mode = advanceMode(state, jump, clock.wall);
    if (mode !== null) {
      ports.write(mode.changes);
      void modeChanged();
    }
    ports.write(changed.map((known) => ({ kind: "event", known })));
    // After a clock step every charger is evaluated anyway, at once.
    const most = jump === 0 ? undefined : Infinity;
    const { affectedChargers: affected, changes, missed, late, ...step } = advanced(state, clock.wall, most);
    // Boundaries by a clock that was ahead show nothing of the clock now.
    mark.hasBoundaries = step.hasBoundaries || (mark.hasBoundaries && jump >= 0);
    // An event stays whole until all its ends are recorded.
    if (step.isComplete) void condense(state, clock.wall);
    ports.write(changes);
    mark.add(missed);
    // Windows that began by then are on record, so the next start does not report them as missed.
    if (jump < 0 && evaluatedAt !== null) ports.write(mark.write(evaluatedAt));
    const silences = recordSilences(state, clock.monotonic, clock.wall, ports.isLinked);
    ports.write(silences.changes);
    for (const words of silences.warnings) ports.warn(words);
    if (jump !== 0) {
      ports.write([clockStepRow(jump, clock.wall)]);
      return [...reevaluationsOf(state.chargers.keys()), ...(mode?.affectedChargers ?? [])];
    }
    for (const lateBy of late) ports.started(lateBy);
    return [
      ...reevaluationsOf([...affected, ...silences.affectedChargers]),
      ...(mode?.affectedChargers ?? []),
    ];
  };

  const evaluateNext = (reevaluations: readonly Reevaluation[]): Pending => {
    ports.write(lacking);
    lacking = [];
    const now = ports.now();
    const freed = freeings.take(chargersOf(reevaluations));
    for (const { chargers, by } of freed) ports.write(free(state, chargers, by, now));
    const { changes, send } = evaluate(state, reevaluations, now);
    ports.write([...changes, ...mark.take(now)]);
    evaluations += 1;
    const since = ports.monotonic();
    // While commands are on their way, what chargers report waits for a commit with a decision, so that it delays none.
    const isAwaited = send.length > 0 || freed.length > 0 || !queue.isEmpty || !state.sendQueue.isPublishing;
    const committed = durable(isAwaited ? "now" : "soon");
    return { number: evaluations, evaluated: reevaluations, freed, send, since, isAwaited, committed };
  };

  const ingest = ingestStage(state, {
    ...ports,
    durable,
    write: (changes) => {
      mark.isDue ||= changes.some(({ kind }) => kind === "event");
      ports.write(changes);
    },
  });

  return {
    ingest(arrivals: readonly Arrival[]): Affected {
      mark.isListOpen = arrivals.every(({ isPart = false }) => isPart);
      return ingest(arrivals);
    },

    /** Runs stages in order. After a step back of the clock, the events that are open again are read first. */
    run: (stages: readonly Stage[]): Affected =>
      state.known.withWhole(
        () => (jumpBetween(clock, readClock()) < 0 ? state.known.openAgain(ports.now()) : []),
        (read) => {
          reopened = read;
          return beginUrgently(inOrder(stages), ports.monotonic);
        },
      ),

    advance,

    handleMessage(message: ChargerMessage): readonly Reevaluation[] {
      const { changes, affectedChargers, warning } = handleChargerMessage(state, message, ports.now());
      const returned = recordReturn(state, message, ports.monotonic(), ports.now());
      ports.write([...returned.changes, ...changes]);
      if (warning !== null) ports.warn(warning);
      return affectedChargers.concat(returned.affectedChargers);
    },

    everyone(): readonly Reevaluation[] {
      for (const words of formatStranded(state, ports.now())) ports.warn(words);
      return reevaluationsOf(state.chargers.keys());
    },

    /** A broker is back. A publish in flight now went to it, not to the connection before. */
    brokerReturned: (broker: string) => brokerReturned(state, broker, ports.monotonic()),

    /** `since`: when the broker returned. */
    repeatAfterReturn: (broker: string, since: Instant): readonly Reevaluation[] =>
      reevaluationsOf(lateAfterReturn(state, broker, since), true),

    *allowStarts(): ResumableTask<readonly Reevaluation[]> {
      state.allowStarts();
      // A clock that is trusted again may have stepped by hours. Handle that before anything reads the time.
      advance();
      ports.write(yield* reportingUnplugged(state, state.vehicles.keys(), ports.now()));
      return reevaluationsOf(state.chargers.keys());
    },

    /** Frees each charger with its evaluation. Settled after the commit of the last one. */
    free(freeing: Freeing): readonly Reevaluation[] {
      freeings.add(freeing);
      return reevaluationsOf(freeing.chargers, true);
    },

    hold({ apply, settle }: HoldRequest): readonly Reevaluation[] {
      const { changes, affectedChargers, isRepeat } = apply(state, ports.now());
      ports.write(changes);
      void durable().then(settle);
      return reevaluationsOf(affectedChargers, isRepeat);
    },

    mode({ apply, settle }: ModeRequest): readonly Reevaluation[] {
      const { changes, affectedChargers } = apply(state, ports.now());
      ports.write(changes);
      void modeChanged().then(settle);
      return affectedChargers;
    },

    unlocked: (charger: ChargerId): readonly Reevaluation[] => reevaluationsOf([charger], true),

    /** Evaluates these chargers now if they are few, otherwise the first slice of all that wait. */
    evaluate: (reevaluations: readonly Reevaluation[]): Pending => evaluateNext(queue.take(reevaluations)),

    /** Evaluates the next slice of the waiting chargers. */
    evaluateNext: (): Pending => evaluateNext(queue.next()),

    /** True: chargers still wait for their evaluation. */
    isBehind: (): boolean => !queue.isEmpty,

    /** Queues chargers once their decisions are committed. Returns the number queued at each broker. */
    async committed({
      number,
      evaluated,
      freed,
      send,
      since,
      isAwaited,
      committed,
    }: Pending): Promise<readonly Waiting[]> {
      const outcome = await committed;
      if (isAwaited) queue.noteCommitTime(millis(ports.monotonic() - since));
      const now = ports.now();
      let sendable = send;
      if (outcome.ok) {
        state.sendQueue.committed();
        state.schedule.committed();
      } else {
        retryLater(state, chargersOf(evaluated), now);
        for (const { chargers, by } of freed) unrecorded.free(state, chargers, by, now);
        sendable = unrecorded.sendable(state, evaluated, now);
      }
      for (const { settle } of freed) settle(outcome);
      const added = new Map<string, number>();
      for (const charger of sendable) {
        // A publish after this evaluation already had its command: two evaluations may share a commit.
        if (state.sendQueue.leftAfter(charger) >= number) continue;
        const broker = state.chargers.get(charger)?.broker ?? "";
        state.sendQueue.add(broker, charger);
        added.set(broker, (added.get(broker) ?? 0) + 1);
      }
      return [...added].map(([broker, count]) => ({ broker, count }));
    },

    ...senders,
  };
}
