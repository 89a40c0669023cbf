import {
  type CommandRecord,
  type Command,
  commandId,
  isRetried,
  isSteady,
  isToBeFreed,
  MOST_RESENDS,
  nextJudgement,
  reallySent,
} from "../../domain/command.ts";
import type { Reason } from "../../domain/reason.ts";
import type { Desired } from "../../domain/setpoint.ts";
import { after, type Instant, type ChargerId, earlier, later, type Millis } from "../../domain/units.ts";

/*
 * The life of a command: its transitions, by the function that makes each. `Progress` (domain/command.ts) has the
 * states. Around a trial (`lent`, `returned`), a start and a failed commit the record is replaced as a whole.
 *
 *   newCommand            observed
 *       |     observe mode    ^
 *       v  ------------------/
 *    planned <---+ publishFailed: back-off, the next evaluation publishes again
 *       |    \---+
 *       |
 *       | published: the broker acknowledged          +---+ published again: refresh, retry
 *       v                                             v   |
 *    acknowledged ------------------------------------+---+
 *       |                            answered by the charger, sometimes before the broker
 *       +--------> accepted | refused <---> the other answer
 *       |              |         |
 *       v              v         v   measured, from `judgeAt` on
 *    followed <------------------> notFollowed ---> refused (answered)
 *
 *    notFollowed: published again up to MOST_RESENDS times, each after twice the wait; then an alarm.
 *    After the alarm only a charger that follows steadily (`isSteady`) becomes `followed`.
 *    decidedAgain: the same content under a new number starts at `planned` once more.
 */

/** A decision that is not published yet. */
export const newCommand = (command: Command, replaces: Desired | null): CommandRecord => ({
  command,
  progress: "planned",
  sentAt: null,
  sends: 0,
  failures: 0,
  replaces,
  judgeAt: null,
  resends: 0,
});

/** A decision of observe mode: it replaces the last decision, but not the last command that was published. */
export function observedOnly(planned: CommandRecord, last: CommandRecord | undefined): CommandRecord {
  const standing = last === undefined ? null : reallySent(last);
  return { ...planned, progress: "observed", ...(standing === null ? {} : { standing }) };
}

/** The first publish that the broker acknowledged. Later ones are refreshes and retries. */
export const isFirstPublish = ({ progress, sentAt }: CommandRecord): boolean =>
  progress === "planned" || sentAt === null;

/** The broker acknowledged a publish. `refresh` null: the charger gets no refresh. */
export function published(
  record: CommandRecord,
  refresh: Millis | null | undefined,
  ramp: Millis,
  now: Instant,
): CommandRecord {
  const isFirst = isFirstPublish(record);
  const isRetry = !isFirst && isRetried(record, refresh);
  const resends = record.resends + (isRetry ? 1 : 0);
  return {
    ...record,
    resends,
    progress: record.progress === "planned" ? "acknowledged" : record.progress,
    sentAt: now,
    outAt: record.outAt ?? record.sentAt ?? now,
    sends: record.sends + 1,
    failures: 0,
    judgeAt: isFirst || isRetry ? nextJudgement(now, ramp, resends) : record.judgeAt,
  };
}

export const publishFailed = (record: CommandRecord): CommandRecord => ({
  ...record,
  failures: record.failures + 1,
});

/** Telemetry was compared with the setpoint. */
export const isJudged = ({ progress }: CommandRecord): boolean =>
  progress === "followed" || progress === "notFollowed";

/**
 * The charger accepted or refused it, or refuses it for another reason. Null: nothing new. Each refresh is answered too,
 * and a charger that refuses each refresh and draws little would alternate between refused and followed otherwise.
 */
export function answered(record: CommandRecord, isAccepted: boolean, refusal: string | null = null) {
  const next = isAccepted ? ({ progress: "accepted" } as const) : ({ progress: "refused", refusal } as const);
  const isSettled = record.progress === "followed" || (isAccepted && isJudged(record));
  const isSame = record.progress === next.progress && (isAccepted || record.refusal === refusal);
  return isSame || isSettled ? null : { ...record, ...next };
}

/** Telemetry shows the setpoint. After an alarm `progress` changes only once the charger follows steadily. */
export function followed(record: CommandRecord, ramp: Millis, now: Instant): CommandRecord {
  const next = { ...record, followedAt: record.followedAt ?? now };
  if (record.resends <= MOST_RESENDS) return { ...next, progress: "followed" };
  return isSteady(next, ramp, now) ? { ...next, progress: "followed", resends: 0 } : next;
}

/** Telemetry does not show the setpoint, but the next judgement is not due. Null: nothing new. */
export const followedNoLonger = (record: CommandRecord): CommandRecord | null =>
  record.followedAt == null ? null : { ...record, followedAt: null };

/** Telemetry does not show the setpoint when it should. Null: the alarm for it was raised before. */
export function notFollowed(record: CommandRecord, ramp: Millis, now: Instant): CommandRecord | null {
  const isForgotten = record.progress === "followed" && isSteady(record, ramp, now);
  const resends = isForgotten ? 0 : record.resends;
  if (resends > MOST_RESENDS) return null;
  return {
    ...record,
    progress: "notFollowed",
    followedAt: null,
    resends: resends + 1,
    judgeAt: nextJudgement(now, ramp, resends + 1),
  };
}

/** `notFollowed` used the last retry: an alarm follows. */
export const isAlarming = ({ resends }: CommandRecord): boolean => resends > MOST_RESENDS;

/** The retry has to wait, as the charger allows few writes. It does not count yet. */
export const retriedAt = (record: CommandRecord, at: Instant): CommandRecord => ({
  ...record,
  resends: record.resends - 1,
  judgeAt: at,
});

/** A charger that returns may have lost its setpoint. It gets the ramp time once more. */
export const rampRestarted = (record: CommandRecord, ramp: Millis, now: Instant): CommandRecord =>
  record.judgeAt === null
    ? record
    : { ...record, judgeAt: later(record.judgeAt, nextJudgement(now, ramp, 0)) };

/** The clock was set back: the charger has the time that it would have had. */
export function clockMovedBack(record: CommandRecord, ramp: Millis, now: Instant): CommandRecord {
  if (record.judgeAt === null) return record;
  const followedAt = record.followedAt == null ? null : earlier(record.followedAt, now);
  const judgeAt = earlier(record.judgeAt, nextJudgement(now, ramp, record.resends));
  return { ...record, judgeAt, followedAt };
}

/** A stored record, loaded after the clock was set back: it may have been sent in the future. */
export const loadedAt = (record: CommandRecord, ramp: Millis, now: Instant): CommandRecord =>
  record.sentAt !== null && record.sentAt > now ? clockMovedBack(record, ramp, now) : record;

/** A command with its content under a new number: after commissioning, which used higher numbers. */
export function decidedAgain(
  record: CommandRecord,
  number: Pick<Command, "epoch" | "seq">,
  replaces: Desired | null,
): CommandRecord {
  const { standing: _, outAt: __, ...rest } = record;
  return {
    ...rest,
    command: { ...record.command, ...number },
    replaces,
    progress: "planned",
    sentAt: null,
    sends: 0,
    judgeAt: null,
    isLent: false,
  };
}

/** Commissioning has the charger. Its sequence numbers are higher, so the command returns under a new one. */
export const lent = (record: CommandRecord): CommandRecord => ({ ...record, isLent: true });

/** Stored for the time of a trial, whose setpoints are unknown here. A release ends any of them, as it ends a pause. */
export function releaseWhileLent(release: Command, last: CommandRecord | undefined): CommandRecord {
  const sent = last === undefined ? null : reallySent(last);
  const standing = sent !== null && isToBeFreed(sent) ? { standing: sent } : {};
  return lent({ ...newCommand(release, { kind: "pause" }), ...standing });
}

/** The command before a trial that restored the charger. `trial`: its number is above those of the trial. */
export const returned = (before: CommandRecord, { epoch, seq }: Command): CommandRecord => ({
  ...before,
  command: { ...before.command, epoch, seq },
  isLent: false,
});

/** A release that was pending before a trial. In observe mode it waits for the next run in drive mode. */
export const leftObserved = (record: CommandRecord): CommandRecord => ({
  ...record,
  progress: "observed",
  isLent: false,
});

/** A published command is judged, at a start, from one ramp time after that. */
export const restored = (stored: CommandRecord, ramp: Millis): CommandRecord =>
  stored.sentAt === null ? stored : { ...stored, judgeAt: stored.judgeAt ?? after(stored.sentAt, ramp) };

/** After a failed commit. Failures are counted in memory only. The count must survive, in both directions. */
export const withFailuresOf = (stored: CommandRecord, { failures }: CommandRecord): CommandRecord => ({
  ...stored,
  failures,
});

/** After a failed commit: the publish went out, whether or not its outcome was stored. */
export function withOutcomeOf(stored: CommandRecord, lastSent: CommandRecord): CommandRecord {
  const { progress, sentAt, sends } = lastSent;
  if (stored.progress !== "planned" && stored.progress !== progress) return { ...stored, sentAt, sends };
  // Resends are counted in memory as well. Otherwise each failed commit would allow one more.
  const { judgeAt, resends } = lastSent.resends < stored.resends ? stored : lastSent;
  return { ...stored, progress, sentAt, sends, judgeAt, resends };
}

/** Failing publishes to a charger: since when, and the last reason. */
export interface PublishFailure {
  readonly since: Instant;
  readonly reason: string;
}

/** Last command of each charger, why it was decided, and what became of its publishes. */
export class Commands {
  readonly #records = new Map<ChargerId, CommandRecord>();
  readonly #reasons = new Map<ChargerId, Reason>();
  readonly #failures = new Map<ChargerId, PublishFailure>();
  readonly #refusedNumbers = new Map<ChargerId, string>();

  get size(): number {
    return this.#records.size;
  }

  get(charger: ChargerId): CommandRecord | undefined {
    return this.#records.get(charger);
  }

  values(): MapIterator<CommandRecord> {
    return this.#records.values();
  }

  [Symbol.iterator](): MapIterator<[ChargerId, CommandRecord]> {
    return this.#records.entries();
  }

  /** Null: not known. */
  reasonOf(charger: ChargerId): Reason | null {
    return this.#reasons.get(charger) ?? null;
  }

  /** The last command of its charger, or what is now known about it. */
  record(record: CommandRecord): void {
    this.#records.set(record.command.charger, record);
  }

  explain(charger: ChargerId, reason: Reason): void {
    this.#reasons.set(charger, reason);
  }

  forget(charger: ChargerId): void {
    this.#records.delete(charger);
    this.#reasons.delete(charger);
  }

  /** Before the stored commands are loaded. */
  clear(): void {
    this.#records.clear();
    this.#reasons.clear();
    this.#refusedNumbers.clear();
  }

  /** Since when publishes to this charger fail, and why the last one did. Undefined: the last one succeeded. */
  publishFailureOf(charger: ChargerId): PublishFailure | undefined {
    return this.#failures.get(charger);
  }

  publishFailed(charger: ChargerId, reason: string, now: Instant): void {
    const since = this.#failures.get(charger)?.since ?? now;
    this.#failures.set(charger, { since, reason });
  }

  publishSucceeded(charger: ChargerId): void {
    this.#failures.delete(charger);
  }

  /**
   * The charger refuses this command, which an earlier start decided, as it accepted a higher number. A failed commit
   * does not undo that: the stored command would be sent and refused again and again.
   */
  numberRefused(command: Command): void {
    this.#refusedNumbers.set(command.charger, commandId(command));
  }

  isNumberRefused(command: Command): boolean {
    return this.#refusedNumbers.get(command.charger) === commandId(command);
  }
}
