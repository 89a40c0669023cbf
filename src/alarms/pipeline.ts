import { exhaustMap, firstValueFrom, type Observable, Subject } from "rxjs";

import { type Alarm, type AlarmFact, alarmView } from "../domain/alarm.ts";
import { auditRow } from "../domain/audit.ts";
import type { Change, Stored, NotStored } from "../domain/changes.ts";
import type { Sent } from "../domain/command.ts";
import type { Instant } from "../domain/units.ts";
import type { ResumableTask } from "../platform/cooperative.ts";
import { every, fanIn, tickEnd$ } from "../platform/scheduling.ts";
import type { Notifier } from "./notifier.ts";
import { type Acknowledged, type AlarmRegistry, isStoredChange } from "./registry.ts";

/** Ports of the alarms. */
export interface AlarmPorts {
  readonly now: () => Instant;
  /** Changes of the site so far, those of alarms excepted. */
  readonly changes: () => number;
  /** All facts that hold now. A large site takes several turns of the event loop. */
  readonly facts: () => Promise<readonly AlarmFact[]>;
  /** True: nothing in the last `facts` shows whether the fact of this alarm still holds. */
  readonly isUndecided: (alarm: Alarm) => boolean;
  /** Runs the steps, with breaks for the event loop. */
  readonly runInSteps: <Result>(steps: ResumableTask<Result>) => Promise<Result>;
  /** Queues changes for a commit, also after a failed one. Does not wait for it. */
  readonly write: (changes: readonly Change[]) => void;
  /** Commits changes now. Not ok: none of them is stored. */
  readonly commit: (changes: readonly Change[]) => Promise<Stored>;
  /** This alarm changed. */
  readonly announce: (key: string) => void;
  /** Publishes a retained message. `path` comes after `<prefix>/<site>/`. Never throws. */
  readonly publish: (path: string, payload: string) => Promise<Sent>;
}

/** Alarms that are written in one turn of the event loop. */
const PART = 500;
/** Ms. All chargers are walked each time. */
const EVERY = 2_000;
/** Rounds of which one walks the chargers while nothing changes on the site: only time opens and clears alarms then. */
const QUIET_ROUNDS = 5;

/** The alarms of a site with their effects: stored, announced and published. */
export class Alarms {
  readonly registry: AlarmRegistry;
  readonly #ports: AlarmPorts;
  /** Keys of alarms whose published state is not the present one. */
  readonly #unpublished = new Set<string>();
  #acknowledging: Promise<unknown> = Promise.resolve();
  /** Changes of the site before the last observation. */
  #changes = -1;
  /** Rounds since then. */
  #skipped = 0;

  constructor(registry: AlarmRegistry, ports: AlarmPorts) {
    this.registry = registry;
    this.#ports = ports;
  }

  /**
   * Observes the facts, publishes what changed and notifies receivers. `brokerUp$`: the site's own, "", may have lost its
   * retained messages.
   */
  follow(brokerUp$: Observable<string>, notifiers: readonly Notifier[] = []): Observable<unknown> {
    const all = (): void => {
      for (const { key } of this.registry.all()) this.#unpublished.add(key);
    };
    all();
    return fanIn<void>((join) => {
      join(brokerUp$, (broker) => {
        if (broker === "") all();
      });
      const observed$ = new Subject<void>();
      const observed = (): void => {
        if (this.#unpublished.size > 0) observed$.next();
      };
      // A slow broker delays no observation.
      join(observed$.pipe(exhaustMap(() => this.#publish())));
      join(every(EVERY, () => this.#round(observed), 0));
      // A receiver that is slow skips rounds, and delays no other one.
      for (const notifier of notifiers) join(every(EVERY, () => notifier.send()));
    });
  }

  /** Undefined: nothing is observed in this round. */
  #round(observed: () => void): Promise<void> | undefined {
    this.#skipped += 1;
    if (this.#ports.changes() !== this.#changes || this.#skipped >= QUIET_ROUNDS)
      return this.observe().then(observed);
    observed();
    return undefined;
  }

  /** Applies the facts that hold now. */
  async observe(): Promise<void> {
    this.#skipped = 0;
    this.#changes = this.#ports.changes();
    const { now, facts, isUndecided, write, runInSteps } = this.#ports;
    const found = await facts();
    const observing = this.registry.observing(found, now(), isUndecided);
    const { opened, updated, cleared, toStore } = await runInSteps(observing);
    for (const changed of [opened, updated, cleared]) for (const alarm of changed) this.#announce(alarm);
    // A broker that returns may open or clear an alarm for each of 20,000 chargers.
    for (let from = 0; from < toStore.length; from += PART) {
      if (from > 0) await firstValueFrom(tickEnd$);
      write(toStore.slice(from, from + PART).map((key) => this.#stateOf(key)));
    }
  }

  /** The present state of an alarm, to be stored. */
  #stateOf(key: string): Change {
    const alarm = this.registry.get(key);
    return alarm === undefined ? { kind: "alarmForgotten", key } : { kind: "alarm", alarm };
  }

  /** Silences an alarm once that is stored, with a row in the record. One person at a time: a second is refused. */
  acknowledge(key: string, by: string, note: string): Promise<Acknowledged | NotStored> {
    const done = this.#acknowledging.then(() => this.#acknowledge(key, by, note));
    this.#acknowledging = done;
    return done;
  }

  async #acknowledge(key: string, by: string, note: string): Promise<Acknowledged | NotStored> {
    const { now, commit } = this.#ports;
    const at = now();
    const before = this.registry.get(key);
    const planned = this.registry.acknowledged(key, { at, by, note });
    if ("refused" in planned) return planned;
    const { alarm } = planned;
    const message = `${by} acknowledged the alarm ${key}: ${alarm.message}`;
    const committed = await commit([
      { kind: "alarm", alarm },
      auditRow("operator", at, message, { facts: { acknowledged: key, by, note } }),
    ]);
    const apply = (): Acknowledged => {
      const current = this.registry.get(key);
      // The alarm cleared, or got graver, during the commit. That state is stored behind the acknowledgement.
      if (current !== undefined && isStoredChange(before, current)) return { alarm: current };
      const done = this.registry.acknowledge(key, { at, by, note });
      this.#announce(alarm);
      return done;
    };
    if (committed.ok) return apply();
    void committed.isStored?.then((isStored) => isStored && apply());
    return committed;
  }

  #announce({ key }: Alarm): void {
    this.#unpublished.add(key);
    this.#ports.announce(key);
  }

  /** Stops at a publish that fails. The next round tries again. */
  async #publish(): Promise<void> {
    for (const key of this.#unpublished) {
      this.#unpublished.delete(key);
      const alarm = this.registry.get(key);
      const isShown = alarm !== undefined && alarm.state !== "cleared";
      const payload = isShown ? JSON.stringify(alarmView(alarm)) : "";
      const sent = await this.#ports.publish(`alarms/${key}`, payload);
      // The broker refuses this topic: the next change, or the next connection, tries again.
      if (sent.ok || !sent.retry) continue;
      this.#unpublished.add(key);
      return;
    }
  }
}
