import { type Change, type Committed, type Lost, scopeOf } from "../domain/changes.ts";
import { commandId, desiredBefore, isDoubted, leaseOf } from "../domain/command.ts";
import type { CommitTime } from "../domain/store.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { type ChargerId, type Instant, type Millis, millis } from "../domain/units.ts";
import { beginUrgently, type ResumableTask } from "../platform/cooperative.ts";
import { evaluate } from "./decide/evaluate.ts";
import { EvaluatedMark, EvaluationQueue } from "./decide/evaluationQueue.ts";
import { free, type FreeingPart, Freeings } from "./decide/freeing.ts";
import { type Affected, ingestStage } from "./ingest/ingest.ts";
import { handleChargerMessage } from "./observe/chargerMessages.ts";
import { followRestart } from "./observe/recordRestarts.ts";
import { brokerReturned, lateAfterReturn, recordReturn } from "./observe/recordSilence.ts";
import type { Arrival, ControlPorts, Freeing } from "./ports.ts";
import { type LastSent, recoverAfterFailedCommit, retryLater } from "./recovery.ts";
import { PassageOfTime, reportingUnplugged } from "./schedule/advance.ts";
import { recordOutcome } from "./send/outcome.ts";
import { formatStranded } from "./send/release.ts";
import { sendersOf } from "./send/sendQueue.ts";
import { UnrecordedReleases } from "./send/unrecorded.ts";
import { type ChangeRequest, inOrder, type Reevaluation, reevaluationsOf, type Stage } from "./stage.ts";
import type { ControlState } from "./state.ts";

/** An evaluation whose changes are being committed. */
export interface Pending {
  readonly number: number;
  readonly evaluated: readonly Reevaluation[];
  readonly freed: readonly FreeingPart[];
  /** Chargers with a command to send after the commit. */
  readonly send: readonly ChargerId[];
  /** Request of the commit, monotonic clock. */
  readonly since: Millis;
  /** The commit is due now: a command, an answer or further chargers wait for it, or no publish would be delayed by it. */
  readonly isAwaited: boolean;
  readonly committed: Promise<Committed>;
}

/** Number of chargers that were queued at one broker. */
export interface QueuedAtBroker {
  readonly broker: string;
  readonly count: number;
}

const chargersOf = (reevaluations: readonly Reevaluation[]): readonly ChargerId[] =>
  reevaluations.map(({ charger }) => charger);

/** The stages of control, bound to the state they change and the ports they use. `pipeline.ts` has their order. */
export class Stages {
  /** They publish what is queued at each broker. */
  readonly senders: ReturnType<typeof sendersOf>;
  readonly #state: ControlState;
  readonly #ports: ControlPorts;
  readonly #time: PassageOfTime;
  readonly #queue: EvaluationQueue;
  readonly #freeings = new Freeings();
  readonly #mark: EvaluatedMark;
  readonly #unrecorded: UnrecordedReleases;
  readonly #ingest: ReturnType<typeof ingestStage>;
  /** The last publish to each charger. */
  readonly #sent = new Map<ChargerId, LastSent>();
  /** Last publish to each charger whose rows are written, and not known to be stored. */
  #unproven = new Map<ChargerId, LastSent>();
  /** Rows of publishes that were lost with a failed commit. The next evaluation writes them. */
  #lacking: readonly Change[] = [];

  constructor(state: ControlState, ports: ControlPorts) {
    this.#state = state;
    this.#ports = ports;
    this.#queue = new EvaluationQueue(state);
    this.#mark = new EvaluatedMark(state, this.#queue);
    this.#time = new PassageOfTime(state, ports, this.#mark, () => void this.#modeChanged());
    this.#unrecorded = new UnrecordedReleases(ports.writeUntilStored);
    this.senders = sendersOf(state.sendQueue, {
      windowOf: ports.windowOf,
      firstAttempt: ports.firstAttempt,
      maySend: (charger) => {
        const isRelease = state.commands.get(charger)?.command.cause === "observe";
        return state.barTo(isRelease ? "publishRelease" : "publish", charger) === null;
      },
      send: (charger) => this.#send(charger),
    });
    this.#ingest = ingestStage(state, {
      ...ports,
      durable: (when) => this.#durable(when),
      write: (changes) => {
        this.#mark.isDue ||= changes.some(({ kind }) => kind === "event");
        ports.write(changes);
      },
    });
  }

  ingest(arrivals: readonly Arrival[]): Affected {
    this.#mark.isListOpen = arrivals.every(({ isPart = false }) => isPart);
    if (!this.#hasUnseenStep()) return this.#ingest(arrivals);
    return this.#ingestAfterStep(arrivals);
  }

  async #ingestAfterStep(arrivals: readonly Arrival[]): Promise<readonly Reevaluation[]> {
    const byStep = await this.run([]);
    return [...byStep, ...(await this.#ingest(arrivals))];
  }

  /**
   * Runs stages in order. After a step back of the clock, the events that are open again are read first. A step is handled
   * before a stage takes the time from that clock: the clock may step back before the next boundary.
   */
  run(stages: readonly Stage[]): Affected {
    const all = this.#hasUnseenStep() ? [() => this.advance(), ...stages] : stages;
    return this.#time.withReopened(() => beginUrgently(inOrder(all), this.#ports.monotonic));
  }

  /** `allowStarts` handles the step while starts are blocked. */
  #hasUnseenStep(): boolean {
    return this.#state.barTo("start", null) === null && this.#time.hasStepped();
  }

  /** See `PassageOfTime`. */
  advance(): readonly Reevaluation[] {
    return this.#time.advance();
  }

  handleMessage(message: ChargerMessage): readonly Reevaluation[] {
    const [state, { now, monotonic, write, warn }] = [this.#state, this.#ports];
    const { charger } = message;
    const [before, wasSilent] = [state.presence.of(charger), state.silence.has(charger)];
    const { changes, reevaluations, warning } = handleChargerMessage(state, message, now());
    const returned = recordReturn(state, message, monotonic(), now());
    const restart = followRestart(state, message, before, wasSilent && !state.silence.has(charger), now());
    write([...returned.changes, ...changes, ...restart]);
    if (warning !== null) warn(warning);
    return reevaluations.concat(returned.reevaluations);
  }

  everyone(): readonly Reevaluation[] {
    for (const message of formatStranded(this.#state, this.#ports.now())) this.#ports.warn(message);
    return reevaluationsOf(this.#state.chargers.keys());
  }

  /** A broker is back. A publish in flight now went to it, not to the connection before. */
  brokerReturned(broker: string): ReturnType<typeof brokerReturned> {
    return brokerReturned(this.#state, broker, this.#ports.monotonic());
  }

  /** A broker returned a while ago, at `since`. */
  repeatAfterReturn({ broker, since }: { broker: string; since: Instant }): readonly Reevaluation[] {
    return reevaluationsOf(lateAfterReturn(this.#state, broker, since), true);
  }

  *allowStarts(): ResumableTask<readonly Reevaluation[]> {
    const state = this.#state;
    state.allowStarts();
    // A clock that is trusted again may have stepped by hours. Handle that before anything reads the time.
    this.#time.advance();
    this.#ports.write(yield* reportingUnplugged(state, state.vehicles.keys(), this.#ports.now()));
    return reevaluationsOf(state.chargers.keys());
  }

  /** Frees each charger with its evaluation. Settled after the commit of the last one. */
  free(freeing: Freeing): readonly Reevaluation[] {
    this.#freeings.add(freeing);
    return reevaluationsOf(freeing.chargers, true);
  }

  /** Applies a change that a person asks for. The keepalives of chargers follow a change of the mode. */
  change({ apply, settle }: ChangeRequest): readonly Reevaluation[] {
    const { mode } = this.#state;
    const before = mode.period;
    const { changes, reevaluations } = apply(this.#state, this.#ports.now());
    this.#ports.write(changes);
    const committed = mode.period === before ? this.#durable() : this.#modeChanged();
    void committed.then(settle);
    return reevaluations;
  }

  unlocked(charger: ChargerId): readonly Reevaluation[] {
    return reevaluationsOf([charger], true);
  }

  /**
   * Evaluates these chargers now if they are few, otherwise the first slice of all that wait. Null: too many commits are
   * open, so they wait for the end of one.
   */
  evaluate(reevaluations: readonly Reevaluation[]): Pending | null {
    return this.#evaluate(this.#queue.take(reevaluations));
  }

  /** Evaluates the next slice of the waiting chargers. Null: as of `evaluate`. */
  evaluateNext(): Pending | null {
    return this.#evaluate(this.#queue.next());
  }

  /** True: chargers still wait for their evaluation. */
  isBehind(): boolean {
    return !this.#queue.isEmpty;
  }

  /** Queues chargers once their decisions are committed. Returns the number queued at each broker. */
  async committed(pending: Pending): Promise<readonly QueuedAtBroker[]> {
    const { number, evaluated, freed, send, since, isAwaited, committed } = pending;
    const state = this.#state;
    const outcome = await committed;
    this.#queue.committed(isAwaited ? millis(this.#ports.monotonic() - since) : null);
    const now = this.#ports.now();
    let sendable = send;
    if (outcome.ok) {
      state.sendQueue.committed(number);
      state.schedule.committed(number);
    } else {
      retryLater(state, chargersOf(evaluated), now);
      for (const { chargers, by } of freed) this.#unrecorded.free(state, chargers, by, now);
      sendable = this.#unrecorded.sendable(state, evaluated, now);
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
  }

  #evaluate(reevaluations: readonly Reevaluation[] | null): Pending | null {
    if (reevaluations === null) return null;
    const { write, now: readNow, monotonic } = this.#ports;
    write(this.#lacking);
    this.#lacking = [];
    const now = readNow();
    const freed = this.#freeings.take(chargersOf(reevaluations));
    for (const { chargers, by } of freed) write(free(this.#state, chargers, by, now));
    const { changes, send } = evaluate(this.#state, reevaluations, now);
    write([...changes, ...this.#mark.take(now)]);
    const number = this.#state.sendQueue.endEvaluation();
    const since = monotonic();
    // Reports of chargers wait for a commit with a decision while commands are on their way, so that they delay none.
    const isBusySending = this.#queue.isEmpty && this.#state.sendQueue.isPublishing;
    const isAwaited = send.length > 0 || freed.length > 0 || !isBusySending;
    const committed = this.#durable(isAwaited ? "now" : "soon");
    return { number, evaluated: reevaluations, freed, send, since, isAwaited, committed };
  }

  /** Publishes the present command of a charger, and records the outcome. */
  async #send(charger: ChargerId): Promise<void> {
    const [state, ports] = [this.#state, this.#ports];
    const known = state.commands.get(charger);
    // A charger that went offline while it waited gets what holds on its return.
    if (known === undefined || state.barTo("queueRelease", charger) === "offline") return;
    const { command } = known;
    const before = desiredBefore(known, state.epoch);
    const lease = leaseOf(state.settings.refresh);
    const from = ports.now();
    const result = await ports.send(command, lease, before, isDoubted(known, state.settings.verdict.ramp));
    const rows = recordOutcome(state, command, result, { from, until: ports.now() }, ports.random());
    ports.write(rows);
    const record = state.commands.get(charger);
    if (!result.ok || record === undefined || commandId(record.command) !== commandId(command)) return;
    const last = this.#sent.get(charger);
    const isAgain = last !== undefined && commandId(last.record.command) === commandId(command);
    // A command record of this publish may be outdated by the time the rows are written.
    const sentRows = isAgain ? last.rows : rows.filter(({ kind }) => kind === "audit");
    const lastSent = { record, rows: sentRows };
    this.#sent.set(charger, lastSent);
    if (sentRows.length > 0) this.#unproven.set(charger, lastSent);
  }

  /** The port, which also rolls back what failed commits dropped, also where no stage waited for them. */
  async #durable(when: CommitTime = "now"): Promise<Committed> {
    const written = this.#unproven;
    this.#unproven = new Map();
    const committed = await this.#ports.durable(when);
    const lost = committed.ok ? committed.lost : committed;
    if (lost !== undefined && lost.dropped.length > 0) this.#rollBack(lost);
    if (lost === undefined) for (const each of written.values()) each.rows = [];
    else this.#unproven = new Map([...written, ...this.#unproven]);
    return committed;
  }

  #rollBack({ dropped, stored }: Lost): void {
    this.#mark.isDue = true;
    const scope = scopeOf(dropped);
    if (stored === null) throw new Error("a commit failed, and nothing can be read");
    const known = this.#unrecorded.over(scope, stored);
    const lacking = recoverAfterFailedCommit(this.#state, scope, known, this.#sent, this.#ports.now());
    this.#lacking = [...this.#lacking, ...lacking];
  }

  /** Keepalives of chargers follow the mode once it is stored. */
  async #modeChanged(): Promise<Committed> {
    const committed = await this.#durable();
    if (committed.ok) this.#ports.observe(this.#state.mode.current === "observe");
    return committed;
  }
}
