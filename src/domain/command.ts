import type { Desired } from "./setpoint.ts";
import {
  type Millis,
  type Instant,
  type VehicleId,
  type EventId,
  type ChargerId,
  after,
  millis,
} from "./units.ts";

/** Values of a charger from before it was commanded, by their names in its profile. A release gives them back. */
export type OwnValues = Readonly<Record<string, string>>;

/** A decision for one charger, as stored and sent. A refresh repeats it with the same id and renews its lease. */
export interface Command {
  readonly charger: ChargerId;
  readonly epoch: number;
  readonly seq: number;
  readonly desired: Desired;
  /** End of the winner's window. Null: pause or release. */
  readonly until: Instant | null;
  readonly vehicle: VehicleId | null;
  /** The winning event. For a release: the event that just ended. */
  readonly event: EventId | null;
  readonly cause: Cause;
  readonly decidedAt: Instant;
  /** Kept from command to command, so that a restart during an event does not lose them. Absent: not known, or none. */
  readonly own?: OwnValues;
}

/**
 * Origin of a command.
 * `event`: an event holds. `ended`: the configured action at its end. `operator`: a person, by a hold or a release. `stop`: the daemon stops.
 * `held`: the next level has to wait. `observe`: observe mode frees a charger that an earlier run had limited.
 */
type Cause = "event" | "ended" | "operator" | "stop" | "held" | "observe";

/** `epoch-seq`. A charger accepts this number or a higher one. */
export const commandId = (command: Pick<Command, "epoch" | "seq">): string =>
  `${command.epoch}-${command.seq}`;

/** A lease lasts three refreshes, because two messages may be lost. */
export const leaseOf = (refresh: Millis): Millis => millis(refresh * 3);

/**
 * State of a command. control/send/commands.ts has its transitions and their diagram.
 *
 * - `planned`: decided and stored. No publish succeeded yet.
 * - `acknowledged`: the broker acknowledged a publish. It proves nothing about the charger.
 * - `accepted`, `refused`: the charger answered. Some makes never do.
 * - `followed`, `notFollowed`: telemetry shows the setpoint, or does not. Only a refusal takes the place of `notFollowed`.
 * - `observed`: decided in observe mode and never published. The charger counts as not commanded.
 */
type Progress = "planned" | "acknowledged" | "accepted" | "refused" | "followed" | "notFollowed" | "observed";

/**
 * Maximum re-sends of a command that is not followed. The wait doubles each time; after the last one an alarm follows.
 */
export const MOST_RESENDS = 3;

/** A command's re-sends are forgotten after it was followed for this many ramp times. */
const FORGOTTEN_AFTER = 10;

/**
 * True once the command was followed for long enough to rule out a second controller.
 * Without this wait, a controller that lets us win for a moment each time would never raise the alarm.
 */
export const isSteady = ({ followedAt }: CommandRecord, ramp: Millis, now: Instant): boolean =>
  followedAt != null && after(followedAt, millis(ramp * FORGOTTEN_AFTER)) <= now;

/** Next check of a command that was ignored `resends` times. */
export const nextJudgement = (now: Instant, ramp: Millis, resends: number): Instant =>
  after(now, millis(ramp * 2 ** resends));

/** Last command of a charger, and what is known about its delivery. */
export interface CommandRecord {
  readonly command: Command;
  readonly progress: Progress;
  /** Setpoint before this command. It shows whether a release was followed. Null: none from us. */
  readonly replaces: Desired | null;
  /** Last publish. Null: never. */
  readonly sentAt: Instant | null;
  readonly sends: number;
  /** First publish. Absent: never, or at `sentAt`. */
  readonly outAt?: Instant;
  /** Telemetry from this moment on judges the command. Null: the command never arrived. */
  readonly judgeAt: Instant | null;
  /** Re-sends because the command was not followed. Reset once `isSteady`. */
  readonly resends: number;
  /** Since when the command is followed. Null or absent: not followed, or never re-sent. */
  readonly followedAt?: Instant | null;
  /** Failed publishes since the last successful one. */
  readonly failures: number;
  /** The last command that was published, kept while observing or commissioning. Absent: none from us. */
  readonly standing?: CommandRecord;
  /**
   * Commissioning used this charger, perhaps until a crash. Its sequence numbers are higher, so the command needs a
   * new number.
   */
  readonly isLent?: boolean;
  /**
   * Decided after the clock was set back, for a charger that keeps a limit: the last time, by the clock before, at which
   * it was limited. Absent: it keeps none, or the clock was not set back.
   */
  readonly limitedAt?: Instant;
  /**
   * Reason of the latest refusal, the charger's own where it has one. Null: none. Absent: it did not refuse, or that is not
   * known.
   */
  readonly refusal?: string | null;
  /** A pause only: since when it waits for the release ramp to end. Absent: it does not. */
  readonly waitsSince?: Instant;
}

/** Answers to a command that the record alone has: a fan-out would store each command twice more otherwise. */
export interface Answers {
  /** Acknowledgement of the broker. Null: none. */
  readonly acknowledgedAt: Instant | null;
  /** The charger accepted it. */
  readonly isAccepted: boolean;
}

/** The stored command does not show whether it was answered: the record may. */
export const mayBeAnswered = ({ progress }: CommandRecord): boolean =>
  progress === "planned" || progress === "acknowledged";

/** A command as read from a store, with its answers by the record. */
export function withAnswers(record: CommandRecord, { acknowledgedAt, isAccepted }: Answers): CommandRecord {
  if (!mayBeAnswered(record)) return record;
  const isNews = record.progress === "planned" && acknowledgedAt !== null;
  const sent = isNews ? { progress: "acknowledged" as const, sentAt: acknowledgedAt, sends: 1 } : {};
  if (isAccepted) return { ...record, ...sent, progress: "accepted" };
  return isNews ? { ...record, ...sent } : record;
}

/** Last command that was published. Commands decided in observe mode do not count. Null: none. */
export const reallySent = (record: CommandRecord): CommandRecord | null =>
  record.progress === "observed" ? (record.standing ?? null) : record;

/** Setpoint that may apply to the charger after this command. A command that was never published changes nothing. */
export const desiredAfter = (
  { command, progress, sentAt, failures, replaces }: CommandRecord,
  mayHaveLeft: boolean,
): Desired | null => {
  // Observed commands count, so that observe mode shows the same decisions as drive mode.
  const isOut = sentAt !== null || failures > 0 || mayHaveLeft || progress === "observed";
  return isOut ? command.desired : replaces;
};

/**
 * Setpoint that applied before this command. A level or pause of an earlier run may have reached the charger, so its
 * readings are not the owner's.
 */
export const desiredBefore = ({ command, replaces }: CommandRecord, epoch: number): Desired | null =>
  command.epoch === epoch || command.desired.kind === "release" ? replaces : command.desired;

/** The charger is under a level or a pause of ours. In observe mode: of an earlier run. */
export function isLimiting(record: CommandRecord): boolean {
  const sent = reallySent(record);
  return sent !== null && sent.command.desired.kind !== "release";
}

/** The charger is limited by us, or its release was never published. */
export function isToBeFreed(record: CommandRecord): boolean {
  const sent = reallySent(record);
  if (sent === null) return false;
  const neverReleased = sent.sentAt === null && sent.replaces !== null && sent.replaces.kind !== "release";
  return isLimiting(sent) || neverReleased;
}

/**
 * True for a command that is retried by itself, because a charger without refresh (`refresh: null`) refused it or
 * does not show its release.
 * Also true for a charger that never sent telemetry. In observe mode, the one release of an older level ends with the
 * broker's acknowledgement.
 */
export function isRetried(
  { command, progress, resends }: CommandRecord,
  refresh: Millis | null | undefined,
): boolean {
  if (refresh !== null || resends >= MOST_RESENDS) return false;
  return progress === "refused" || (progress === "acknowledged" && command.desired.kind === "release");
}

/** The command was not followed since its last publish. Another controller may have changed the charger. */
export const isDoubted = ({ progress, sentAt, judgeAt, resends }: CommandRecord, ramp: Millis): boolean =>
  progress === "notFollowed" &&
  resends <= MOST_RESENDS &&
  sentAt !== null &&
  judgeAt !== null &&
  nextJudgement(sentAt, ramp, resends) < judgeAt;

/** Result of one publish. `retry`: another attempt may succeed. */
export type Sent =
  /** `own`: to be stored with the command. Undefined: not known, or its make restores none. */
  | { readonly ok: true; readonly own?: OwnValues | undefined }
  | { readonly ok: false; readonly retry: boolean; readonly reason: string };

/** A command before it receives its number. */
export interface Decision {
  readonly desired: Desired;
  readonly until: Instant | null;
  readonly vehicle: VehicleId | null;
  readonly event: EventId | null;
  readonly cause: Cause;
}

/** Whole seconds until a command expires: at its own end or its lease, whichever is first. */
export function secondsLeft({ until }: Command, lease: Millis, now: Instant): number {
  const left = until === null ? lease : Math.min(until - now, lease);
  return Math.ceil(left / 1000);
}

/** Result of a publish after the end of its command. */
export const PAST: Sent = { ok: false, retry: false, reason: "its time has passed" };
