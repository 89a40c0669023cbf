import type { Alarm, Notified } from "../domain/alarm.ts";
import { type Instant, type Millis, millis } from "../domain/units.ts";
import { backoff } from "../platform/clock.ts";
import {
  byUrgency,
  FIRST_RETRY,
  LONGEST_RETRY,
  type Notice,
  type NoticeForm,
  owedNotice,
} from "./notices.ts";
import type { AlarmRegistry } from "./registry.ts";

/** Answer to one request. `isRefused`: the receiver rejects this body, and would reject it again. */
export type NoticeAnswer =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly reason: string;
      readonly isRefused: boolean;
      readonly retryAfter: Millis | null;
    };

/** A receiver of alarms. */
export interface Receiver {
  readonly name: string;
  readonly form: NoticeForm;
  /** Sends JSON. Never throws. */
  readonly post: (body: string) => Promise<NoticeAnswer>;
}

export interface NotifierPorts {
  readonly now: () => Instant;
  readonly monotonic: () => Millis;
  readonly random: () => number;
  /** Queues the alarms for a commit. */
  readonly write: (alarms: readonly Alarm[]) => void;
  /** Counts notices by outcome. */
  readonly counted: (receiver: string, outcome: "sent" | "retried" | "refused", notices: number) => void;
  readonly log: {
    readonly info: (message: string) => void;
    readonly warn: (message: string) => void;
  };
}

/** A receiver that does not accept its notices. */
export interface FailingReceiver {
  readonly name: string;
  readonly since: Instant;
  readonly reason: string;
}

/**
 * Sends alarms to one receiver. Its queue is the registry: an alarm is owed while its delivered state is not its present
 * one. So the queue is stored with the alarms, and holds at most one notice of each.
 */
export class Notifier {
  readonly #receiver: Receiver;
  readonly #registry: AlarmRegistry;
  readonly #ports: NotifierPorts;
  /** Last delivery of each alarm in this run, by key: some repetitions are not stored. */
  readonly #lastSent = new Map<string, Notified>();
  #failures = 0;
  /** Monotonic. */
  #closedUntil: Millis = millis(-Infinity);
  #failing: FailingReceiver | null = null;
  /** True: a body was refused. The notices are sent one by one, to find the one that is at fault. */
  #isSingle = false;

  constructor(receiver: Receiver, registry: AlarmRegistry, ports: NotifierPorts) {
    this.#receiver = receiver;
    this.#registry = registry;
    this.#ports = ports;
  }

  get name(): string {
    return this.#receiver.name;
  }

  /** Null: the last request succeeded. */
  get failing(): FailingReceiver | null {
    return this.#failing;
  }

  /** Number of notices that wait. */
  get waiting(): number {
    return this.#owed().length;
  }

  /** Sends what is owed, until nothing is left or a request fails. */
  async send(): Promise<void> {
    const { form, post } = this.#receiver;
    const { now, monotonic } = this.#ports;
    if (monotonic() < this.#closedUntil) return;
    for (;;) {
      const owed = this.#owed().toSorted(byUrgency);
      const batch = owed.slice(0, this.#isSingle ? 1 : form.most);
      if (batch.length === 0) break;
      const answer = await post(JSON.stringify(form.body(batch, now())));
      if (answer.ok) this.#delivered(batch, "sent");
      else if (!answer.isRefused) return this.#failed(batch.length, answer.reason, answer.retryAfter);
      else if (batch.length === 1) this.#refused(batch, answer.reason);
      else this.#isSingle = true;
    }
    this.#isSingle = false;
  }

  #owed(): readonly Notice[] {
    const { name, form } = this.#receiver;
    const now = this.#ports.now();
    return this.#registry.all().flatMap((alarm) => {
      const last = this.#lastSent.get(alarm.key);
      const stored = alarm.notified[name];
      const isSame = last !== undefined && last.state === stored?.state && last.severity === stored.severity;
      const known = isSame ? { ...alarm, notified: { ...alarm.notified, [name]: last } } : alarm;
      const notice = owedNotice(known, name, form, now);
      return notice === null ? [] : [notice];
    });
  }

  #delivered(batch: readonly Notice[], outcome: "sent" | "refused"): void {
    const { form } = this.#receiver;
    const { now, write, counted, log } = this.#ports;
    const changed: Alarm[] = [];
    for (const { change, alarm } of batch) {
      const notified = { state: alarm.state, severity: alarm.severity, at: now() };
      this.#lastSent.set(alarm.key, notified);
      if (change === "repeated" && !form.storesRepeats) continue;
      const after = this.#registry.notified(alarm, this.name, notified);
      if (after !== null) changed.push(after);
    }
    for (const key of this.#lastSent.keys())
      if (this.#registry.get(key) === undefined) this.#lastSent.delete(key);
    if (changed.length > 0) write(changed);
    counted(this.name, outcome, batch.length);
    if (outcome === "refused") return;
    this.#failures = 0;
    if (this.#failing !== null) log.info(`alarms reach ${this.name} again`);
    this.#failing = null;
  }

  /** The receiver is not sent this state of the alarm again. */
  #refused(batch: readonly Notice[], reason: string): void {
    this.#fails(reason);
    this.#delivered(batch, "refused");
  }

  #failed(notices: number, reason: string, retryAfter: Millis | null): void {
    const { monotonic, random, counted } = this.#ports;
    this.#fails(reason);
    const pause = backoff(this.#failures, random(), FIRST_RETRY, LONGEST_RETRY);
    this.#failures += 1;
    this.#closedUntil = millis(monotonic() + Math.max(pause, retryAfter ?? 0));
    counted(this.name, "retried", notices);
  }

  #fails(reason: string): void {
    const { now, log } = this.#ports;
    if (this.#failing === null) log.warn(`alarms cannot be sent to ${this.name}: ${reason}`);
    this.#failing = { name: this.name, since: this.#failing?.since ?? now(), reason };
  }
}
