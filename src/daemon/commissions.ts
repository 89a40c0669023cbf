import { setTimeout as sleep } from "node:timers/promises";

import type { ChargerConnections } from "../chargers/connections.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { acquireCharger, type Commissioned, commissioned, reasonNotTo } from "../commissioning/commission.ts";
import type { CommissioningLock } from "../control/decide/commissioningLock.ts";
import type { JudgeSettings } from "../control/observe/compliance.ts";
import type { ControlState } from "../control/state.ts";
import type { Change, Stored } from "../domain/changes.ts";
import type { Charger } from "../domain/charger.ts";
import type { Command, Sent } from "../domain/command.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import { type ChargerId, chargerId, type Instant, type Millis } from "../domain/units.ts";
import type { CommissionRequest } from "../operator/controlSocket.ts";
import { type ChargerBench, chargerBench } from "./commissioningBench.ts";

export interface DaemonCommissionsPorts {
  readonly state: ControlState;
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly settings: JudgeSettings;
  readonly connections: ChargerConnections;
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
const LOOK_MS = 20;

const refused = (complaint: string): Commissioned => ({ good: false, words: null, complaint });

/** Commissioning while the daemon runs: a charger is locked for its trial. Control may preempt the trial at any time. */
export class DaemonCommissions implements AsyncDisposable {
  readonly #ports: DaemonCommissionsPorts;
  readonly #running = new Map<ChargerId, Running>();

  constructor(ports: DaemonCommissionsPorts) {
    this.#ports = ports;
  }

  /** Messages of the charger under trial. Others are not kept. */
  handleMessage(message: ChargerMessage): void {
    this.#running.get(message.charger)?.bench.handleMessage(message);
  }

  /** The charger is restored and returned to control. */
  stop(charger: string): void {
    this.#running.get(chargerId(charger))?.lock.cancel();
  }

  /** `gone`: no client waits for this trial any more. */
  async try(
    request: CommissionRequest,
    progress: (words: string) => void,
    gone: AbortSignal,
  ): Promise<Commissioned> {
    const { state, profiles, connections, now } = this.#ports;
    const charger = state.chargers.get(chargerId(request.charger));
    const profile = charger === undefined ? undefined : profiles.get(charger.profile);
    if (charger === undefined || profile === undefined)
      return refused(
        `setpointd runs without a charger ${request.charger}: start it again with this configuration`,
      );
    const { id } = charger;
    if (this.#running.has(id) || state.locks.has(id)) return refused(`${id} is being commissioned already`);
    const why = request.force ? null : reasonNotTo(state, charger, now());
    if (why !== null) return refused(`${why}; --force tries it anyway`);
    if (!connections.isLinked(id)) return refused("the broker cannot be reached; nothing was tried");
    const resume = request.silence ? connections.pauseKeepalives(id) : null;
    if (typeof resume === "string") return refused(`its silence cannot be tried: ${resume}`);
    resume?.();
    return this.#tryAcquired(charger, profile, request.silence, progress, gone);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { lock } of this.#running.values()) lock.cancel();
    await Promise.allSettled([...this.#running.values()].map(({ ended }) => ended));
  }

  async #tryAcquired(
    charger: Charger,
    profile: Profile,
    silence: boolean,
    progress: (words: string) => void,
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
      lastTelemetry: state.presenceOf(id).telemetry,
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
      { charger, profile, silence, acquired, state, settings, shows, write, committed, progress },
      bench,
    );
    this.#running.set(id, { bench, lock, ended });
    try {
      return await ended;
    } finally {
      for (const resume of resumes) resume();
      endKeepalives();
      this.#running.delete(id);
      // Also after a bug: control would otherwise never command this charger again.
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
    while (state.sendQueue.isInFlight(command.charger)) await sleep(LOOK_MS);
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
