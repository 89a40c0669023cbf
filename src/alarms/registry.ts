import {
  type Acknowledgement,
  type Alarm,
  type AlarmFact,
  alarmKey,
  isGraver,
  type Notified,
} from "../domain/alarm.ts";
import { between, type Instant, type Millis, minutes, hours } from "../domain/units.ts";
import { inSteps, type ResumableTask, runToEnd } from "../platform/cooperative.ts";

/** A fact that returns sooner continues its alarm. */
const QUIET = minutes(5);
/** By kind, where it differs: chargers on a weak radio link leave and return often. */
const QUIET_OF: ReadonlyMap<string, Millis> = new Map([
  ["offline", minutes(15)],
  ["silent", minutes(15)],
]);
/** Time for which a cleared alarm is shown. */
const KEPT = hours(24);
/** Time after a start within which a fact of the last run may not be known again yet. */
const SETTLING = minutes(2);

/** Time passed, also right after the clock was set back: an alarm must not stay for as long as the clock was ahead. */
const elapsed = (from: Instant, now: Instant): number => Math.abs(between(from, now));

export const quietOf = (kind: string): Millis => QUIET_OF.get(kind) ?? QUIET;

/** Changes of one observation. */
export interface AlarmChanges {
  /** New alarms. */
  readonly opened: readonly Alarm[];
  /** Alarms whose fact ended or returned, or has another severity, sentence or remedy. */
  readonly updated: readonly Alarm[];
  readonly cleared: readonly Alarm[];
  /** Keys of alarms whose stored state differs, those that are no longer kept included. */
  readonly toStore: readonly string[];
}

/** Result of an acknowledgement. `refused`: what stands against it. */
export type Acknowledged =
  | { readonly alarm: Alarm }
  | { readonly refused: "unknown" | "cleared" | "acknowledged"; readonly alarm: Alarm | null };

/**
 * The alarms of a site.
 *
 * An alarm opens with its fact and clears with it. A fact that returns within the quiet time of its kind continues the
 * same alarm. Such an alarm clears only after its fact was gone for the quiet time: a flapping fact opens once.
 */
export class AlarmRegistry {
  readonly #alarms = new Map<string, Alarm>();
  readonly #startedAt: Instant;
  readonly #receivers: readonly string[];

  /** `receivers`: names of the receivers of notices. */
  constructor(stored: Iterable<Alarm>, startedAt: Instant, receivers: readonly string[] = []) {
    for (const alarm of stored) this.#alarms.set(alarm.key, alarm);
    this.#startedAt = startedAt;
    this.#receivers = receivers;
  }

  get(key: string): Alarm | undefined {
    return this.#alarms.get(key);
  }

  /** Cleared ones included, for a day. */
  all(): readonly Alarm[] {
    return [...this.#alarms.values()];
  }

  /**
   * Applies all facts that hold now. Of two with the same key the graver counts, else the first. `isUndecided`: nothing
   * shows now whether the fact of this alarm still holds, so the alarm stays as it is.
   */
  observe(facts: Iterable<AlarmFact>, now: Instant, isUndecided?: (alarm: Alarm) => boolean): AlarmChanges {
    return runToEnd(this.observing(facts, now, isUndecided));
  }

  /** `observe` in steps. An alarm may be acknowledged, or a notice accepted, between two steps. */
  *observing(
    facts: Iterable<AlarmFact>,
    now: Instant,
    isUndecided: (alarm: Alarm) => boolean = () => false,
  ): ResumableTask<AlarmChanges> {
    const opened: Alarm[] = [];
    const updated: Alarm[] = [];
    const cleared: Alarm[] = [];
    const toStore: string[] = [];
    const holding = new Map<string, AlarmFact>();
    yield* inSteps(facts, (fact) => {
      const key = alarmKey(fact);
      const other = holding.get(key);
      if (other === undefined || isGraver(fact.severity, other.severity)) holding.set(key, fact);
    });
    yield* inSteps(holding, ([key, fact]) => {
      const before = this.#alarms.get(key);
      const isNew = before === undefined || hasEnded(before, now);
      const alarm = isNew ? newAlarm(key, fact, now, this.#receivers) : continued(before, fact, now);
      this.#alarms.set(key, alarm);
      if (isNew) opened.push(alarm);
      else if (isNews(before, alarm)) updated.push(alarm);
      else return;
      if (isStoredChange(before, alarm)) toStore.push(key);
    });
    yield* inSteps(this.#alarms, ([key, before]) => {
      if (holding.has(key) || (before.clearedAt === null && isUndecided(before))) return;
      const after = this.#withoutFact(before, now);
      if (after === null) {
        this.#alarms.delete(key);
        toStore.push(key);
        return;
      }
      this.#alarms.set(key, after);
      if (after.state !== "cleared" && after.goneSince !== before.goneSince) updated.push(after);
      if (after.state !== "cleared" || before.state === "cleared") return;
      cleared.push(after);
      toStore.push(key);
    });
    return { opened, updated, cleared, toStore };
  }

  /** Silences an alarm. It stays until its fact ends. */
  acknowledge(key: string, acknowledgement: Acknowledgement): Acknowledged {
    const done = this.acknowledged(key, acknowledgement);
    if (!("refused" in done)) this.#alarms.set(key, done.alarm);
    return done;
  }

  /** The alarm as an acknowledgement leaves it. Changes nothing. */
  acknowledged(key: string, acknowledged: Acknowledgement): Acknowledged {
    const before = this.#alarms.get(key);
    if (before === undefined) return { refused: "unknown", alarm: null };
    if (before.state !== "open") return { refused: before.state, alarm: before };
    return { alarm: { ...before, state: "acknowledged", acknowledged } };
  }

  /** A receiver accepted a notice. Null: this alarm is no longer kept. */
  notified({ key, since }: Pick<Alarm, "key" | "since">, receiver: string, notified: Notified): Alarm | null {
    const before = this.#alarms.get(key);
    if (before === undefined || before.since !== since) return null;
    const alarm = { ...before, notified: { ...before.notified, [receiver]: notified } };
    this.#alarms.set(key, alarm);
    return alarm;
  }

  /** Null: no longer kept. */
  #withoutFact(before: Alarm, now: Instant): Alarm | null {
    if (before.clearedAt !== null) return elapsed(before.clearedAt, now) >= KEPT ? null : before;
    const isRestored = before.lastSeen < this.#startedAt;
    if (isRestored && elapsed(this.#startedAt, now) < SETTLING) return before;
    const goneSince = before.goneSince ?? now;
    const isGone = before.count === 1 || elapsed(goneSince, now) >= quietOf(before.kind);
    return isGone
      ? { ...before, state: "cleared", goneSince, clearedAt: goneSince }
      : { ...before, goneSince };
  }
}

/** Only these differences are stored. The others follow from the facts again after a restart. */
export const isStoredChange = (before: Alarm | undefined, alarm: Alarm): boolean =>
  before?.state !== alarm.state || before.since !== alarm.since || before.severity !== alarm.severity;

/** True: cleared for longer than the quiet time. The same fact opens a new alarm. */
const hasEnded = ({ kind, clearedAt }: Alarm, now: Instant): boolean =>
  clearedAt !== null && elapsed(clearedAt, now) >= quietOf(kind);

const newAlarm = (key: string, fact: AlarmFact, now: Instant, receivers: readonly string[]): Alarm => ({
  ...fact,
  key,
  state: "open",
  since: fact.since ?? now,
  lastSeen: now,
  goneSince: null,
  clearedAt: null,
  count: 1,
  acknowledged: null,
  notified: Object.fromEntries(receivers.map((name) => [name, null])),
});

/** A graver fact ends the silence of an acknowledgement. */
function continued(before: Alarm, { severity, message, action }: AlarmFact, now: Instant): Alarm {
  const acknowledged = isGraver(severity, before.severity) ? null : before.acknowledged;
  return {
    ...before,
    severity,
    message,
    action,
    state: acknowledged === null ? "open" : "acknowledged",
    acknowledged,
    lastSeen: now,
    goneSince: null,
    clearedAt: null,
    count: before.count + (before.goneSince === null ? 0 : 1),
  };
}

const isNews = (before: Alarm, alarm: Alarm): boolean =>
  before.count !== alarm.count ||
  before.severity !== alarm.severity ||
  before.message !== alarm.message ||
  before.action !== alarm.action;
