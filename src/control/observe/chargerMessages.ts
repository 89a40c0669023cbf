import type { Change } from "../../domain/changes.ts";
import { commandId, type CommandRecord, nextJudgement } from "../../domain/command.ts";
import type { ChargerMessage, Telemetry } from "../../domain/telemetry.ts";
import { type ChargerId, type Instant, later, millis, seconds } from "../../domain/units.ts";
import { chargingPhases, voltageInUse } from "../decide/limits.ts";
import type { Reevaluation } from "../ports.ts";
import { outcomeRow } from "../send/outcome.ts";
import type { ControlState } from "../state.ts";
import { judge } from "./judge.ts";
import { keepLimits, noteDraw } from "./keepLimits.ts";
import {
  type Age,
  ageOfMessage,
  lagsAlike,
  measuredAt,
  type OwnClock,
  type Stamped,
  waitingSince,
  type Presence,
} from "./presence.ts";
import { offOrOn } from "./recordSilence.ts";

/** What a message came to: what is to be written, whom to look at, and what a person should hear (null: nothing). */
export interface HandledMessage {
  readonly changes: readonly Change[];
  readonly affectedChargers: readonly Reevaluation[];
  readonly warning: string | null;
}

const NOTHING: HandledMessage = { changes: [], affectedChargers: [], warning: null };
/** Telemetry alone renews a charger's published state this often, not with every message. */
const STATE_EVERY = seconds(30);

/** Takes in one message from a charger: who is on it, whether it is there, what it made of its command. */
export function handleChargerMessage(
  depot: ControlState,
  message: ChargerMessage,
  now: Instant,
): HandledMessage {
  if (message.kind === "malformed" || !depot.chargers.has(message.charger)) return NOTHING;
  const { charger } = message;
  const before = depot.presenceOf(charger);
  switch (message.kind) {
    case "telemetry":
      return measured(depot, message, before, now);
    case "online": {
      // "false" may be the last will, said by its broker: the charger itself was not heard.
      const heardAt = message.online ? now : before.heardAt;
      depot.presence.set(charger, { ...before, heardAt, online: message.online });
      depot.dirty.add(charger);
      // A retained "true" tells how things stand. Without a "false" before it, "true" is a sign of life and no return:
      // a charger that repeats it would else never be judged. The first one after a broker's return counts as a return:
      // the charger may have reconnected after us, and missed what was sent.
      const isFirst = !message.snapshot && (before.online === null || depot.mayReturn.has(charger));
      const returned = message.online && (before.online === false || isFirst);
      if (returned) depot.mayReturn.delete(charger);
      if (returned) givesTime(depot, charger, now);
      const affected = message.online ? [] : depot.occupancy.depart(charger);
      const changes = [
        ...offOrOn(depot, charger, before, message.online, now),
        ...keepLimits(depot, affected, now),
      ];
      const touched = returned ? [{ charger, reassert: true }] : affected.map(reevaluationOf);
      return { ...NOTHING, changes, affectedChargers: touched };
    }
    case "forgot":
      givesTime(depot, charger, now);
      return { ...NOTHING, affectedChargers: [{ charger, reassert: true }] };
    case "unconfirmed": {
      const { kind: _, hasReported, ...rest } = message;
      return hasReported
        ? answered(depot, { ...rest, kind: "ack", accepted: false, value: null }, now)
        : neverConfirmed(depot, message, now);
    }
    case "ack":
      depot.presence.set(charger, { ...before, heardAt: now });
      return answered(depot, message, now);
  }
}

type TelemetryMessage = ChargerMessage & { readonly kind: "telemetry" };

/** What telemetry tells, and of when. */
interface Dated {
  readonly age: Age;
  readonly clock: OwnClock;
  readonly stamped: Stamped;
  /** When it was measured. */
  readonly measuredAt: Instant;
  /** As of when it counts: a live message may be a moment late, and counts as measured now. */
  readonly at: Instant;
  /** Nothing later is known. */
  readonly isNewest: boolean;
  /** What holds with it: once a clock is known to be behind, what it said while that was in doubt, too. */
  readonly words: Telemetry;
}

/** Null: it waited at the broker for nobody knows how long. */
function dated({ telemetry, snapshot }: TelemetryMessage, before: Presence, now: Instant): Dated | null {
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
    words: isLive && clock.behind > 0 ? { ...before.unsure, ...telemetry } : telemetry,
  };
}

function measured(
  depot: ControlState,
  message: TelemetryMessage,
  before: Presence,
  now: Instant,
): HandledMessage {
  const { charger, telemetry, lastKnown } = message;
  const told = dated(message, before, now);
  if (told === null) return NOTHING;
  const isStateDue = before.stateAt === null || now >= before.stateAt + STATE_EVERY;
  const presence = presenceAfter(depot, before, message, told, now);
  depot.presence.set(charger, isStateDue ? { ...presence, stateAt: now } : presence);
  if (isStateDue) depot.dirty.add(charger);
  const said = { ...told.words, at: told.measuredAt };
  const isWhole = lastKnown === undefined;
  const { affectedChargers: touched, warning } = depot.occupancy.note(
    charger,
    said,
    now,
    isWhole,
    told.age !== "live",
  );
  if (told.age === "live") noteDraw(depot, charger, lastKnown ?? telemetry, now);
  const others = touched.filter((id) => id !== charger);
  const kept = keepLimits(depot, others, now);
  const { changes, resend } = tellsOfCommand(depot, message, told, before)
    ? judge(depot, charger, lastKnown ?? telemetry, now)
    : { changes: [], resend: false };
  // A charger that is written to only on change is not looked at again before its event ends.
  const affected = isRatedAnew(before, presence) ? new Set([...touched, charger]) : touched;
  const moved = [...affected].map(reevaluationOf);
  return {
    changes: [...kept, ...changes],
    affectedChargers: resend ? [...moved, { charger, reassert: true }] : moved,
    warning: warning ?? warningOf(kept),
  };
}

const reevaluationOf = (charger: ChargerId): Reevaluation => ({ charger, reassert: false });

const warningOf = ([first]: readonly Change[]): string | null =>
  first?.kind === "audit" ? first.entry.words : null;

/** Limits count with another voltage, or another number of charging phases, than before this message. */
const isRatedAnew = (before: Presence, after: Presence): boolean =>
  before.voltage !== after.voltage ||
  chargingPhases(before.telemetry?.currentsA) !== chargingPhases(after.telemetry?.currentsA);

/** What was retained is no word of the charger's own, and tells nothing of its clock. */
function presenceAfter(
  { chargers }: ControlState,
  before: Presence,
  { charger, telemetry, snapshot }: TelemetryMessage,
  told: Dated,
  now: Instant,
): Presence {
  const { age, at, isNewest, words } = told;
  const declared = chargers.get(charger)?.voltage;
  const measurements = {
    voltagesAt: newer(before.voltagesAt, telemetry.voltagesV, at, isNewest),
    voltage:
      isNewest && telemetry.voltagesV !== undefined && declared !== undefined
        ? voltageInUse(before.voltage, telemetry.voltagesV, declared)
        : before.voltage,
    currentsAt: newer(before.currentsAt, telemetry.currentsA, at, isNewest),
    measuredAt: isNewest ? told.measuredAt : before.measuredAt,
    telemetry: isNewest ? { ...before.telemetry, ...words } : { ...telemetry, ...before.telemetry },
  };
  if (snapshot === true) return { ...before, ...measurements };
  const unsure = age === "unsure" ? { ...before.unsure, ...telemetry } : null;
  return { ...before, ...measurements, heardAt: now, stamped: told.stamped, clock: told.clock, unsure };
}

/** Whether a verdict on the last command may rest on it. */
const tellsOfCommand = (
  depot: ControlState,
  { charger, snapshot }: TelemetryMessage,
  told: Dated,
  before: Presence,
): boolean => snapshot !== true && told.age !== "unsure" && !isOld(depot, charger, before, told);

/** Measured before the command was made, so that it tells nothing of it. */
function isOld(depot: ControlState, charger: ChargerId, before: Presence, told: Dated): boolean {
  const { age, stamped, measuredAt: wasAt } = told;
  const record = depot.commands.get(charger);
  if (record === undefined) return false;
  if (age === "kept" && record.judgeAt !== null && wasAt < record.judgeAt) return true;
  if (wasAt >= record.command.decidedAt) return false;
  // A clock that is behind by seconds shows the same lag each time.
  return age !== "live" || before.stamped === null || !lagsAlike(before.stamped, stamped);
}

/** When what was told of something was so, after a message that tells it or not. */
const newer = (before: Instant | null, told: unknown, at: Instant, isNewest: boolean): Instant | null =>
  told === undefined || (before !== null && !isNewest) ? before : at;

/** Who comes back may have forgotten what it was told, and has the time to get there once more. */
function givesTime(depot: ControlState, charger: ChargerId, now: Instant): void {
  const record = depot.commands.get(charger);
  if (record === undefined || record.judgeAt === null) return;
  const judgeAt = nextJudgement(now, depot.settings.verdict.ramp, 0);
  depot.commands.set(charger, { ...record, judgeAt: later(record.judgeAt, judgeAt) });
}

/** Measured counts for more than said. */
const isJudged = ({ progress }: CommandRecord): boolean =>
  progress === "followed" || progress === "notFollowed";

/** Said once for a command. It neither refuses nor follows: the verdict is open until the charger is heard. */
function neverConfirmed(
  depot: ControlState,
  { charger, id }: ChargerMessage & { kind: "unconfirmed" },
  now: Instant,
): HandledMessage {
  const record = depot.commands.get(charger);
  if (record === undefined || commandId(record.command) !== id || isJudged(record)) return NOTHING;
  const words =
    "not confirmed: nothing was heard of the charger since the start, so it may not have got this";
  return { ...NOTHING, changes: [outcomeRow(record.command, now, words, { heard: false })] };
}

function answered(depot: ControlState, ack: ChargerMessage & { kind: "ack" }, now: Instant): HandledMessage {
  const record = depot.commands.get(ack.charger);
  if (record === undefined || commandId(record.command) !== ack.id) return NOTHING;
  const progress = ack.accepted ? "accepted" : "refused";
  // A charger that accepted a higher number since refuses this one each time. A release that could not be stored has
  // such a number when the process ends before it is.
  const isOutnumbered =
    !ack.accepted && record.command.epoch < depot.epoch && depot.outnumbered.get(ack.charger) !== ack.id;
  if (isOutnumbered) depot.outnumbered.set(ack.charger, ack.id);
  // Every refresh is answered too: only the first answer, or another one, is news.
  // One that refuses each refresh and draws little would else be refused and followed in turns.
  const isSettled = record.progress === "followed" || (ack.accepted && isJudged(record));
  const again = isOutnumbered ? [{ charger: ack.charger, reassert: true }] : [];
  if (record.progress === progress || isSettled) return { ...NOTHING, affectedChargers: again };
  const next = { ...record, progress } as const;
  depot.commands.set(ack.charger, next);
  depot.dirty.add(ack.charger);
  const took = millis(now - record.command.decidedAt);
  const words = ack.accepted
    ? `accepted by the charger after ${took} ms`
    : `refused by the charger: ${ack.reason ?? "it gave no reason"}`;
  const changes = [
    outcomeRow(record.command, now, words, { progress, value: ack.value, reason: ack.reason }),
    { kind: "command", record: next } as const,
  ];
  return {
    ...NOTHING,
    changes,
    affectedChargers: ack.accepted ? [] : [{ charger: ack.charger, reassert: isOutnumbered }],
  };
}
