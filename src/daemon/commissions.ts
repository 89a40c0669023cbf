import { setTimeout as sleep } from "node:timers/promises";

import type { ChargerConnections } from "../chargers/connections.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import {
  type AskedBy,
  type Commissioned,
  commissioned,
  promiseOf,
  reasonNotTo,
  untried,
} from "../commissioning/commission.ts";
import { trialLevels } from "../commissioning/judgement.ts";
import { acquireCharger } from "../control/decide/commissioningAccess.ts";
import type { CommissioningLock } from "../control/decide/commissioningLock.ts";
import type { JudgeSettings } from "../control/observe/compliance.ts";
import type { ControlState } from "../control/state.ts";
import { auditRow, type Json } from "../domain/audit.ts";
import type { Change, Stored } from "../domain/changes.ts";
import type { Charger } from "../domain/charger.ts";
import type { Command, Sent } from "../domain/command.ts";
import { type Desired, viewOf } from "../domain/setpoint.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { type ChargerId, chargerId, type Instant, iso, type Millis } from "../domain/units.ts";
import { type Answer, asJson, conflict, FirstAnswers, starting } from "../operator/answer.ts";
import type { CommissionRequest } from "../operator/controlSocket.ts";
import { brokerTrials, noSuchCharger, type TrialApi } from "../operator/chargerActions.ts";
import { type ChargerBench, chargerBench } from "./commissioningBench.ts";

export interface DaemonCommissionsPorts {
  readonly state: ControlState;
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly settings: JudgeSettings;
  readonly connections: ChargerConnections;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
  readonly now: () => Instant;
  readonly write: (changes: readonly Change[]) => void;
  readonly committed: () => Promise<Stored>;
  /** The trial of a charger is over: control commands it again. */
  readonly returnToControl: (charger: ChargerId) => void;
}

interface Running {
  readonly bench: ChargerBench;
  readonly lock: CommissioningLock;
  readonly ended: Promise<unknown>;
}

/** Interval between checks whether control has sent its last command, ms. */
const CHECK_EVERY_MS = 20;

/** A trial that a person asked for over the API. It goes on when the page is closed. */
interface AskedTrial extends AskedBy {
  readonly since: Instant;
  readonly silence: boolean;
  readonly steps: { readonly at: Instant; readonly message: string }[];
  /** Null: it runs. */
  end: { readonly at: Instant; readonly result: Commissioned } | null;
}

/** No client hangs up on a trial of the API. */
const NEVER_GONE = new AbortController().signal;

/** Commissioning while the daemon runs: a charger is locked for its trial. Control may preempt the trial at any time. */
export class DaemonCommissions implements TrialApi, AsyncDisposable {
  readonly #ports: DaemonCommissionsPorts;
  readonly #running = new Map<ChargerId, Running>();
  /** The last one of each charger. */
  readonly #asked = new Map<ChargerId, AskedTrial>();
  /** By idempotency key. */
  readonly #answers = new FirstAnswers();
  readonly brokers: TrialApi["brokers"];

  constructor(ports: DaemonCommissionsPorts) {
    this.#ports = ports;
    const tryBrokers = async () => (await ports.connections.tryBrokers()).map(({ verdict }) => verdict);
    this.brokers = brokerTrials({ ...ports, tryBrokers });
  }

  /** Messages of the charger under trial. Others are not kept. */
  handleMessage(message: ChargerMessage): void {
    this.#running.get(message.charger)?.bench.handleMessage(message);
  }

  /** The charger is restored and returned to control. */
  cancel(charger: string): void {
    this.#running.get(chargerId(charger))?.lock.cancel();
  }

  /** `gone`: no client waits for this trial any more. */
  async try(
    request: CommissionRequest,
    progress: (message: string) => void,
    gone: AbortSignal,
  ): Promise<Commissioned> {
    const found = this.#find(request.charger);
    if (found === null)
      return untried(
        `setpointd runs without a charger ${request.charger}: start it again with this configuration`,
      );
    const { charger, profile } = found;
    const why = request.force ? null : reasonNotTo(this.#ports.state, charger, this.#ports.now());
    const bar = this.#barTo(charger, request.silence);
    if (bar !== null || why !== null) return untried(bar ?? `${why}; --force tries it anyway`);
    return this.#tryAcquired(charger, profile, { silence: request.silence, asked: null }, progress, gone);
  }

  get(name: string): Answer<Json> {
    const found = this.#find(name);
    return found === null ? noSuchCharger(this.#ports.state, name) : { ok: true, value: this.#view(found) };
  }

  async start(
    name: string,
    { silence, reason }: { readonly silence: boolean; readonly reason: string },
    by: string,
    key: string | null,
  ): Promise<Answer<Json>> {
    const request = JSON.stringify([name, silence, reason, by]);
    return this.#answers.once(key, request, async () => this.#start(name, silence, { by, reason }));
  }

  stop(name: string, by: string): Answer<Json> {
    const { write, now } = this.#ports;
    const found = this.#find(name);
    if (found === null) return noSuchCharger(this.#ports.state, name);
    const { id } = found.charger;
    const running = this.#running.get(id);
    if (running === undefined) return conflict("nothing was stopped", `${id} is not being commissioned`);
    if (!running.lock.isCut)
      write([
        auditRow("operator", now(), `commissioning of ${id} is stopped by ${by}`, {
          charger: id,
          facts: { by },
        }),
      ]);
    running.lock.cancel();
    return { ok: true, value: this.#view(found) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { lock } of this.#running.values()) lock.cancel();
    await Promise.allSettled([...this.#running.values()].map(({ ended }) => ended));
  }

  /** Null: there is no such charger. */
  #find(name: string): { readonly charger: Charger; readonly profile: Profile } | null {
    const { state, profiles } = this.#ports;
    const charger = state.chargers.get(chargerId(name));
    const profile = charger === undefined ? undefined : profiles.get(charger.profile);
    return charger === undefined || profile === undefined ? null : { charger, profile };
  }

  /** Reason why a charger cannot be tried at all now. Null: it can. */
  #barTo({ id }: Charger, silence: boolean): string | null {
    const { state, connections } = this.#ports;
    if (this.#running.has(id) || state.locks.has(id)) return `${id} is being commissioned already`;
    if (!connections.isLinked(id)) return "the broker cannot be reached; nothing was tried";
    const resume = silence ? connections.pauseKeepalives(id) : null;
    if (typeof resume === "string") return `its silence cannot be tried: ${resume}`;
    resume?.();
    return null;
  }

  /** Reason why a person should not try a charger now. Null: none. */
  #hindrance(charger: Charger, silence: boolean): string | null {
    return this.#barTo(charger, silence) ?? reasonNotTo(this.#ports.state, charger, this.#ports.now());
  }

  #start(name: string, silence: boolean, asked: AskedBy): Answer<Json> {
    const { now, isReady } = this.#ports;
    if (!isReady()) return starting;
    const found = this.#find(name);
    if (found === null) return noSuchCharger(this.#ports.state, name);
    const { charger, profile } = found;
    const why = this.#hindrance(charger, silence);
    if (why !== null) return conflict(`${charger.id} was not tried`, why);
    const trial: AskedTrial = { ...asked, silence, since: now(), steps: [], end: null };
    this.#asked.set(charger.id, trial);
    const progress = (message: string): void => void trial.steps.push({ at: now(), message });
    void this.#tryAcquired(charger, profile, { silence, asked }, progress, NEVER_GONE)
      // A bug in a trial must not end the control of all other chargers.
      .catch((error: unknown) => untried(`a bug: ${String(error)}`))
      .then((result) => (trial.end = { at: now(), result }));
    return { ok: true, value: this.#view(found) };
  }

  #view({ charger, profile }: { readonly charger: Charger; readonly profile: Profile }): Json {
    const promised = promiseOf(profile);
    const trial = this.#asked.get(charger.id);
    return {
      charger: charger.id,
      plan: {
        levels: asJson(trialLevels(charger).map(viewOf)),
        waitS: this.#ports.settings.ramp / 1000,
        silence: { effect: promised.effect, afterS: promised.after / 1000 },
      },
      hindrance: this.#hindrance(charger, false),
      run: trial === undefined ? null : trialView(trial),
    };
  }

  async #tryAcquired(
    charger: Charger,
    profile: Profile,
    { silence, asked }: { readonly silence: boolean; readonly asked: AskedBy | null },
    progress: (message: string) => void,
    gone: AbortSignal,
  ): Promise<Commissioned> {
    const { state, settings, connections, now, write, committed, returnToControl } = this.#ports;
    const { id } = charger;
    const acquired = acquireCharger(state, charger, now());
    const { lock, limit: standing } = acquired;
    const resumes: (() => void)[] = [];
    const endKeepalives = connections.resumeKeepalives(id);
    const bench = chargerBench({
      charger: id,
      before: standing,
      lastTelemetry: state.presence.of(id).telemetry,
      nextId: () => state.nextId(),
      now,
      send: (...order) => this.#send(lock, ...order),
      fallSilent: () => {
        const resume = connections.pauseKeepalives(id);
        if (typeof resume !== "string") resumes.push(resume);
      },
      isStopped: () => lock.isCut || gone.aborted,
      preemptedBy: () => lock.preemptedBy,
    });
    const shows = (): Desired | null => connections.shows(id);
    const ended = commissioned(
      { charger, profile, silence, asked, acquired, state, settings, shows, write, committed, progress },
      bench,
    );
    this.#running.set(id, { bench, lock, ended });
    try {
      return await ended;
    } finally {
      for (const resume of resumes) resume();
      endKeepalives();
      this.#running.delete(id);
      // The lock is released after a bug too: control would otherwise never command this charger again.
      lock.end();
      // A charger that control preempted is returned already.
      if (lock.preemptedBy === null) returnToControl(id);
    }
  }

  /** Waits for a publish of control that is in flight, so that neither overtakes the other. */
  async #send(
    lock: CommissioningLock,
    command: Command,
    lease: Millis,
    before: Desired | null,
  ): Promise<Sent> {
    const { state, connections, returnToControl } = this.#ports;
    const wears = (state.chargers.get(command.charger)?.writesPerHour ?? null) !== null;
    // Each publish of control has its deadline.
    while (state.sendQueue.isInFlight(command.charger)) await sleep(CHECK_EVERY_MS);
    if (lock.preemptedBy !== null) return { ok: false, retry: false, reason: lock.preemptedBy };
    lock.startPublish();
    let sent: Sent;
    try {
      sent = await connections.send(command, lease, before);
    } finally {
      lock.endPublish();
    }
    if (sent.ok && wears) state.writes.add(command.charger, command.decidedAt);
    if (lock.preemptedBy !== null) returnToControl(command.charger);
    return sent;
  }
}

const trialView = ({ since, by, reason, silence, steps, end }: AskedTrial): Json => ({
  since: iso(since),
  by,
  reason,
  silence,
  steps: steps.map(({ at, message }) => ({ at: iso(at), message })),
  endedAt: end === null ? null : iso(end.at),
  result:
    end === null
      ? null
      : {
          good: end.result.good,
          sentence: end.result.tried?.sentence ?? null,
          complaint: end.result.complaint,
          levels: end.result.tried?.levels ?? [],
        },
});
