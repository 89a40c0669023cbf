import type { Change } from "../../domain/changes.ts";
import { commandId, mayBeAnswered } from "../../domain/command.ts";
import type { ChargerMessage, Telemetry } from "../../domain/telemetry.ts";
import { type ChargerId, type Instant, later, millis, seconds } from "../../domain/units.ts";
import { chargingPhases, voltageInUse } from "../decide/limits.ts";
import { answered, isJudged, rampRestarted } from "../send/commands.ts";
import { outcomeRow } from "../send/outcome.ts";
import { NO_CHANGES, reevaluationsOf, type StageResult } from "../stage.ts";
import type { ControlState } from "../state.ts";
import { endBinding } from "./bindings.ts";
import { judge, noteOutnumbered } from "./judge.ts";
import { keepLimits, noteDraw } from "./keepLimits.ts";
import {
  type Age,
  ageOfMessage,
  hasEqualLag,
  measuredAt,
  type OwnClock,
  type Stamped,
  waitingSince,
  type Presence,
} from "./presence.ts";
import { recordOnlineChange } from "./recordSilence.ts";

/** Result of a message. `warning`: for the log. Null: none. */
export interface HandledMessage extends StageResult {
  readonly warning: string | null;
}

const NOTHING: HandledMessage = { ...NO_CHANGES, warning: null };
/** Shortest interval between published states that telemetry alone causes. */
const STATE_EVERY = seconds(30);

/** Handles one message from a charger: occupant, presence, and the answer to its command. */
export function handleChargerMessage(
  state: ControlState,
  message: ChargerMessage,
  now: Instant,
): HandledMessage {
  if (message.kind === "malformed" || !state.chargers.has(message.charger)) return NOTHING;
  const { charger } = message;
  const before = state.presence.of(charger);
  switch (message.kind) {
    case "telemetry":
      return handleTelemetry(state, message, before, now);
    case "online":
      return handleOnline(state, message, before, now);
    case "forgot":
      restartRampTime(state, charger, now);
      return { ...NOTHING, reevaluations: reevaluationsOf([charger], true) };
    case "unconfirmed": {
      const { kind: _, hasReported, ...rest } = message;
      return hasReported
        ? handleAcknowledgement(state, { ...rest, kind: "ack", accepted: false, value: null }, now)
        : recordUnconfirmed(state, message, now);
    }
    case "ack":
      state.presence.update(charger, { heardAt: now });
      return handleAcknowledgement(state, message, now);
  }
}

function handleOnline(
  state: ControlState,
  { charger, online, snapshot }: ChargerMessage & { readonly kind: "online" },
  before: Presence,
  now: Instant,
): HandledMessage {
  // "false" may be the last will, which the broker publishes. The charger itself sent nothing then.
  state.presence.update(charger, { heardAt: online ? now : before.heardAt, online });
  state.feed.announce("charger", charger);
  // A retained "true" is a state. A live "true" without a "false" before it is a sign of life and no
  // return. A charger that repeats it would never be judged otherwise. Exception: the first one after a
  // broker's return. The charger may have reconnected after us and missed a publish.
  const isFirst = !snapshot && (before.online === null || state.presence.mayReturn(charger));
  const returned = online && (before.online === false || isFirst);
  if (returned) state.presence.returned(charger);
  if (returned || (online && !snapshot && state.silence.has(charger))) restartRampTime(state, charger, now);
  const departed = online ? [] : state.occupancy.depart(charger);
  const moved = [...departed, ...(returned ? state.occupancy.comeBack(charger) : [])];
  const recorded = recordOnlineChange(state, charger, before, online, now);
  const changes = [...recorded, ...keepLimits(state, moved, now)];
  const again = returned ? reevaluationsOf([charger], true) : [];
  return { ...NOTHING, changes, reevaluations: [...reevaluationsOf(moved), ...again] };
}

type TelemetryMessage = ChargerMessage & { readonly kind: "telemetry" };

/** Telemetry with its time. */
interface DatedTelemetry {
  readonly age: Age;
  readonly clock: OwnClock;
  readonly stamped: Stamped;
  /** Time of the measurement. */
  readonly measuredAt: Instant;
  /** Time for which it counts. A live message may be a moment late and counts as measured now. */
  readonly at: Instant;
  /** No later telemetry is known. */
  readonly isNewest: boolean;
  /**
   * The telemetry to apply. Once a clock is known to be behind, it includes what arrived while that was in
   * doubt.
   */
  readonly telemetry: Telemetry;
}

/** Null: a retained message of unknown age. */
function dateTelemetry(
  { telemetry, snapshot }: TelemetryMessage,
  before: Presence,
  now: Instant,
): DatedTelemetry | null {
  const stamped = { at: telemetry.at, receivedAt: now };
  const { age, clock } =
    snapshot === true ? { age: "kept" as const, clock: before.clock } : ageOfMessage(before.clock, stamped);
  const wasAt = snapshot === true ? waitingSince(stamped) : measuredAt(clock, stamped);
  if (wasAt === null) return null;
  const isLive = age === "live";
  return {
    age,
    clock,
    stamped,
    measuredAt: wasAt,
    at: isLive ? now : wasAt,
    isNewest: isLive || before.measuredAt === null || wasAt >= before.measuredAt,
    telemetry: isLive && clock.behind > 0 ? { ...before.undecided, ...telemetry } : telemetry,
  };
}

function handleTelemetry(
  state: ControlState,
  message: TelemetryMessage,
  before: Presence,
  now: Instant,
): HandledMessage {
  const { charger, telemetry, lastKnown } = message;
  const dated = dateTelemetry(message, before, now);
  if (dated === null) return NOTHING;
  const isStateDue = before.stateAt === null || now >= before.stateAt + STATE_EVERY;
  const presence = presenceAfter(state, before, message, dated, now);
  state.presence.update(charger, isStateDue ? { ...presence, stateAt: now } : presence);
  if (isStateDue) state.feed.announce("charger", charger);
  else state.feed.announceReadings(charger);
  const reported = { ...dated.telemetry, at: dated.measuredAt };
  const bound = state.occupancy.bindingAt(charger);
  const { affectedChargers: affected, warning } = state.occupancy.note(
    charger,
    reported,
    now,
    lastKnown === undefined,
    dated.age !== "live",
  );
  if (dated.age === "live") noteDraw(state, charger, lastKnown ?? telemetry, now);
  // A charger that was silent may repeat a limit from before the command, which it missed.
  if (state.silence.has(charger)) restartRampTime(state, charger, now);
  const others = affected.filter((id) => id !== charger);
  const unbound = endBinding(state, bound, reported, now);
  const kept = keepLimits(state, others, now);
  const { changes, resend } = isJudgeable(state, message, dated, before)
    ? judge(state, charger, lastKnown ?? telemetry, now)
    : { changes: [], resend: false };
  // A charger without refreshes is not evaluated again before its event ends.
  const isWatched = state.holds.watching(charger).length > 0;
  const toEvaluate = isWatched || isRatedAnew(before, presence) ? new Set([...affected, charger]) : affected;
  const moved = reevaluationsOf(toEvaluate);
  return {
    changes: [...unbound, ...kept, ...changes],
    reevaluations: resend ? [...moved, ...reevaluationsOf([charger], true)] : moved,
    warning: warning ?? warningOf(kept),
  };
}

const warningOf = ([first]: readonly Change[]): string | null =>
  first?.kind === "audit" ? first.entry.words : null;

/** The voltage or the number of charging phases that limits use has changed. */
const isRatedAnew = (before: Presence, after: Presence): boolean =>
  before.voltage !== after.voltage ||
  chargingPhases(before.telemetry?.currentsA) !== chargingPhases(after.telemetry?.currentsA);

/** A retained message proves neither that the charger is online nor what its clock shows. */
function presenceAfter(
  { chargers }: ControlState,
  before: Presence,
  { charger, telemetry, snapshot }: TelemetryMessage,
  dated: DatedTelemetry,
  now: Instant,
): Presence {
  const { age, at, isNewest, telemetry: applied } = dated;
  const declared = chargers.get(charger)?.voltage;
  const measurements = {
    voltagesAt: newer(before.voltagesAt, telemetry.voltagesV, at, isNewest),
    voltage:
      isNewest && telemetry.voltagesV !== undefined && declared !== undefined
        ? voltageInUse(before.voltage, telemetry.voltagesV, declared)
        : before.voltage,
    currentsAt: newer(before.currentsAt, telemetry.currentsA, at, isNewest),
    measuredAt: isNewest ? dated.measuredAt : before.measuredAt,
    unpluggedAt: telemetry.state === "unplugged" ? later(before.unpluggedAt ?? at, at) : before.unpluggedAt,
    telemetry: isNewest ? { ...before.telemetry, ...applied } : { ...telemetry, ...before.telemetry },
  };
  if (snapshot === true) return { ...before, ...measurements };
  const undecided = age === "unsure" ? { ...before.undecided, ...telemetry } : null;
  return {
    ...before,
    ...measurements,
    heardAt: now,
    stamped: dated.stamped,
    clock: dated.clock,
    undecided,
  };
}

/** True: a judgement of the last command may use it. */
const isJudgeable = (
  state: ControlState,
  { charger, snapshot }: TelemetryMessage,
  dated: DatedTelemetry,
  before: Presence,
): boolean => snapshot !== true && dated.age !== "unsure" && !isOld(state, charger, before, dated);

/** True: measured before the command, so it shows nothing about it. */
function isOld(state: ControlState, charger: ChargerId, before: Presence, dated: DatedTelemetry): boolean {
  const { age, stamped, measuredAt: wasAt } = dated;
  const record = state.commands.get(charger);
  if (record === undefined) return false;
  if (age === "kept" && record.judgeAt !== null && wasAt < record.judgeAt) return true;
  if (wasAt >= record.command.decidedAt) return false;
  // A clock that is behind by seconds has the same lag each time.
  return age !== "live" || before.stamped === null || !hasEqualLag(before.stamped, stamped);
}

/** The measurement time of a member, after a message that may hold it. */
const newer = (before: Instant | null, reported: unknown, at: Instant, isNewest: boolean): Instant | null =>
  reported === undefined || (before !== null && !isNewest) ? before : at;

/** A charger that returns may have lost its setpoint. It gets the ramp time once more. */
function restartRampTime(state: ControlState, charger: ChargerId, now: Instant): void {
  const record = state.commands.get(charger);
  if (record !== undefined) state.commands.record(rampRestarted(record, state.settings.verdict.ramp, now));
}

/** Recorded once for a command. The result is open until the charger sends a message. */
function recordUnconfirmed(
  state: ControlState,
  { charger, id }: ChargerMessage & { kind: "unconfirmed" },
  now: Instant,
): HandledMessage {
  const record = state.commands.get(charger);
  if (record === undefined || commandId(record.command) !== id || isJudged(record)) return NOTHING;
  const message =
    "not confirmed: no message from the charger since the start, so it may not have received this";
  return { ...NOTHING, changes: [outcomeRow(record.command, now, message, { heard: false })] };
}

function handleAcknowledgement(
  state: ControlState,
  ack: ChargerMessage & { kind: "ack" },
  now: Instant,
): HandledMessage {
  const last = state.commands.get(ack.charger);
  // A decision that was only observed may have replaced the command meanwhile.
  const record = [last, last?.standing].find((known) => known && commandId(known.command) === ack.id);
  if (last === undefined || record === undefined) return NOTHING;
  // A release that could not be stored has a higher number when the process ends before it is.
  const isOutnumbered = !ack.accepted && noteOutnumbered(state, record.command);
  const again = isOutnumbered ? reevaluationsOf([ack.charger], true) : [];
  const next = answered(record, ack.accepted, ack.reason);
  if (next === null) return { ...NOTHING, reevaluations: again };
  const known = record === last ? next : { ...last, standing: next };
  state.commands.record(known);
  state.feed.announce("charger", ack.charger);
  const elapsed = millis(now - record.command.decidedAt);
  const message = ack.accepted
    ? `accepted by the charger after ${elapsed} ms`
    : `refused by the charger: ${ack.reason ?? "it gave no reason"}`;
  const facts = { progress: next.progress, value: ack.value, reason: ack.reason };
  const row = outcomeRow(record.command, now, message, facts);
  // Another reason for a refusal is shown. It adds no row, as each refresh may have another one.
  const isNews = next.progress !== record.progress;
  // A start reads an acceptance from the record, as it reads the broker's acknowledgement. It counts one publish then.
  const isInRecord = ack.accepted && record === last && mayBeAnswered(record) && record.sends <= 1;
  const stored: readonly Change[] = isInRecord ? [] : [{ kind: "command", record: known }];
  const changes: readonly Change[] = isNews ? [row, ...stored] : [];
  return {
    ...NOTHING,
    changes,
    reevaluations: ack.accepted ? [] : reevaluationsOf([ack.charger], isOutnumbered),
  };
}
