import type { Desired } from "./setpoint.ts";
import {
  type Instant,
  type VehicleId,
  type EventId,
  type ChargerId,
  after,
  type Millis,
  millis,
} from "./units.ts";

/** One decision for one charger, as it is stored and sent. Sent again with the same id, it renews its lease. */
export interface Command {
  readonly charger: ChargerId;
  readonly epoch: number;
  readonly seq: number;
  readonly desired: Desired;
  /** The winner's own window end; null for pause and release. */
  readonly until: Instant | null;
  readonly vehicle: VehicleId | null;
  /** The winner; for a release the event that just ended. */
  readonly event: EventId | null;
  readonly cause: Cause;
  readonly decidedAt: Instant;
}

/**
 * What a command stands on: an event that holds, what was configured for its end, a person, our own stop, or that
 * what is to come has to wait; or a start that only observes, which lets go of what an earlier run left limited.
 */
type Cause = "event" | "ended" | "operator" | "stop" | "held" | "observe";

/** `epoch-seq`: a charger accepts what is not lower than its last. */
export const commandId = (command: Pick<Command, "epoch" | "seq">): string =>
  `${command.epoch}-${command.seq}`;

/** A lease lasts three refreshes: two may be lost on the way. */
export const leaseOf = (refresh: Millis): Millis => millis(refresh * 3);

/** How far a command has come. */
type Progress =
  | "planned"
  | "acknowledged"
  | "accepted"
  | "refused"
  /** Measured: the charger does, or does not do, what it was told. Only these close a command. */
  | "followed"
  | "notFollowed"
  /** Decided in observe mode: it never went out, and the charger counts as never commanded. */
  | "observed";

/** An ignored command is sent again this often, each time after twice the wait; then it is an alarm (DESIGN 5.6). */
export const MOST_RESENDS = 3;

/** Ramp times that a command has to be followed before its re-sends are forgotten (DESIGN 5.6). */
const FORGOTTEN_AFTER = 10;

/**
 * It has been followed for so long that nobody else controls the charger any more. Something that lets us win for a
 * moment each time would else never be an alarm.
 */
export const isSteady = ({ followedAt }: CommandRecord, ramp: Millis, now: Instant): boolean =>
  followedAt != null && after(followedAt, millis(ramp * FORGOTTEN_AFTER)) <= now;

/** When a command that was ignored for the `resends`th time is looked at again. */
export const nextJudgement = (now: Instant, ramp: Millis, resends: number): Instant =>
  after(now, millis(ramp * 2 ** resends));

/** The last command of a charger, with what is known of its way. */
export interface CommandRecord {
  readonly command: Command;
  readonly progress: Progress;
  /** What it was told before, which tells whether a release was followed; null: nothing by us. */
  readonly replaces: Desired | null;
  /** Last time it went out, null: never. */
  readonly sentAt: Instant | null;
  readonly sends: number;
  /** First time it went out; absent: never, or at `sentAt`. */
  readonly outAt?: Instant;
  /** Telemetry from then on judges it; null: it never arrived. */
  readonly judgeAt: Instant | null;
  /** How often it was sent again because it was not followed; kept until it was followed for `FORGOTTEN_AFTER`. */
  readonly resends: number;
  /** Since when it has been seen to be followed; null or absent: it is not, or was not sent again before. */
  readonly followedAt?: Instant | null;
  /** Failed publishes since the last that worked. */
  readonly failures: number;
  /** While observing, or commissioning: what the charger was really told last, and stands under; absent: nothing by us. */
  readonly standing?: CommandRecord;
  /** Commissioning has it, or was cut off: its numbers are above this one, so that it must be said with another. */
  readonly isLent?: boolean;
}

/** What the charger was really told last: what is decided while observing goes nowhere. Null: nothing by us. */
export const reallySent = (record: CommandRecord): CommandRecord | null =>
  record.progress === "observed" ? (record.standing ?? null) : record;

/** What a charger stands under, perhaps, after this command: one that never left changed nothing. */
export const desiredAfter = (
  { command, progress, sentAt, failures, replaces }: CommandRecord,
  mayHaveLeft: boolean,
): Desired | null => {
  // What is only observed counts as told, so that observing shows what driving would do.
  const isOut = sentAt !== null || failures > 0 || mayHaveLeft || progress === "observed";
  return isOut ? command.desired : replaces;
};

/**
 * What a charger was told before this command, by us. A level or a pause of an earlier run has reached it, perhaps:
 * what it shows then is not its owner's.
 */
export const desiredBefore = ({ command, replaces }: CommandRecord, epoch: number): Desired | null =>
  command.epoch === epoch || command.desired.kind === "release" ? replaces : command.desired;

/** Its charger is kept by us at less than it would take by itself: also while observing, if it was before. */
export function isLimiting(record: CommandRecord): boolean {
  const sent = reallySent(record);
  return sent !== null && sent.command.desired.kind !== "release";
}

/** Its charger is limited by us, or was and never got the release: somebody has to free it. */
export function isToBeFreed(record: CommandRecord): boolean {
  const sent = reallySent(record);
  if (sent === null) return false;
  const neverReleased = sent.sentAt === null && sent.replaces !== null && sent.replaces.kind !== "release";
  return isLimiting(sent) || neverReleased;
}

/**
 * The charger did not take its command, or does not show that it was released; and as each write wears it, it gets no
 * refresh (null). Then the command is retried by itself, also where the charger was never heard. In observe mode the
 * one release of a level from before is not retried once the broker has it.
 */
export function isRetried(
  { command, progress, resends }: CommandRecord,
  refresh: Millis | null | undefined,
): boolean {
  if (refresh !== null || resends >= MOST_RESENDS) return false;
  return progress === "refused" || (progress === "acknowledged" && command.desired.kind === "release");
}

/** It was seen not to be followed since it went out last: somebody may have taken the charger from us. */
export const isDoubted = ({ progress, sentAt, judgeAt, resends }: CommandRecord, ramp: Millis): boolean =>
  progress === "notFollowed" &&
  resends <= MOST_RESENDS &&
  sentAt !== null &&
  judgeAt !== null &&
  nextJudgement(sentAt, ramp, resends) < judgeAt;

/** What became of one publish. The one who knows says whether another try can help. */
export type Sent =
  | { readonly ok: true }
  | { readonly ok: false; readonly retry: boolean; readonly reason: string };

/** An operator freed a charger from the events that then held it; later events still apply. */
export interface Hold {
  readonly charger: ChargerId;
  readonly events: readonly EventId[];
  readonly since: Instant;
  /** The latest end of those events' windows on this charger. */
  readonly until: Instant;
}

/** A new command in the making: all but its number. */
export interface Decision {
  readonly desired: Desired;
  readonly until: Instant | null;
  readonly vehicle: VehicleId | null;
  readonly event: EventId | null;
  readonly cause: Cause;
}
