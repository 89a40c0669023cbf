import { acknowledgement, auditRow, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import {
  type Command,
  commandId,
  type CommandRecord,
  isDoubted,
  isRetried,
  type OwnValues,
  type Sent,
} from "../../domain/command.ts";
import { after, type Instant, iso, seconds, type Window } from "../../domain/units.ts";
import { backoff } from "../../platform/clock.ts";
import type { ControlState } from "../state.ts";
import { isFirstPublish, published, publishFailed } from "./commands.ts";

const FIRST_RETRY = seconds(1);
const LONGEST_RETRY = seconds(60);

/**
 * Records the result of one publish.
 * A failure changes only the attempt count, so the next evaluation sends again. A successful refresh adds no
 * row.
 * An acknowledgement is stored as a row of the record only, as is an acceptance. A start reads the progress from there.
 * Storing the command as well would double the cost of a fan-out.
 * `tried`: from the publish until its result. `fraction` in [0, 1) spreads the retries.
 */
export function recordOutcome(
  state: ControlState,
  command: Command,
  sent: Sent,
  tried: Window,
  fraction: number,
): readonly Change[] {
  const now = tried.until;
  const record = state.commands.get(command.charger);
  // A newer decision replaced it during the publish. That one gets an outcome of its own.
  if (record === undefined || commandId(record.command) !== commandId(command)) {
    return [
      outcomeRow(command, now, supersededMessage(sent), {
        sent: sent.ok,
        ...(sent.ok ? { sentAt: iso(tried.from) } : {}),
      }),
    ];
  }
  state.feed.announce("charger", command.charger);
  return sent.ok
    ? recordAcknowledged(state, withOwn(record, sent.own), record, tried)
    : recordFailed(state, record, sent.reason, now, fraction);
}

/** The same record unless the values are news. `own` undefined: those that are stored stay. */
function withOwn(record: CommandRecord, own: OwnValues | undefined): CommandRecord {
  const { command } = record;
  const isNews = own !== undefined && JSON.stringify(own) !== JSON.stringify(command.own);
  return isNews ? { ...record, command: { ...command, own } } : record;
}

/** `before`: the record as it is stored. */
function recordAcknowledged(
  state: ControlState,
  record: CommandRecord,
  before: CommandRecord,
  tried: Window,
): readonly Change[] {
  const now = tried.until;
  state.commands.publishSucceeded(record.command.charger);
  const first = isFirstPublish(record);
  const isNews = record.progress === "planned";
  const { charger } = record.command;
  const configured = state.chargers.get(charger);
  const { ramp } = state.settings.verdict;
  // A refresh that was on its way when the charger was found not to follow did not take control again.
  const sentAt = isDoubted({ ...record, sentAt: tried.from }, ramp) ? tried.from : now;
  const next = { ...published(record, configured?.refresh, ramp, now), sentAt };
  state.commands.record(next);
  const { refresh = null, writesPerHour = null } = configured ?? {};
  const evaluateAt = isRetried(next, configured?.refresh) ? next.judgeAt : refresh && after(now, refresh);
  if (evaluateAt !== null) state.wake(charger, evaluateAt);
  // Only new levels count as writes. A refresh or an extension must not delay the next level.
  if (writesPerHour !== null && first && record.command.cause !== "held") state.writes.add(charger, now);
  // The charger answered before the broker did, or gave values that a release needs.
  const stored: readonly Change[] =
    (first && !isNews) || record !== before ? [{ kind: "command", record: next }] : [];
  if (!first) return stored;
  const row: Change = { kind: "audit", entry: acknowledgement(record.command, tried.from, now) };
  return [row, ...stored];
}

function recordFailed(
  state: ControlState,
  record: CommandRecord,
  reason: string,
  now: Instant,
  fraction: number,
): readonly Change[] {
  const { command } = record;
  state.commands.publishFailed(command.charger, reason, now);
  const next = publishFailed(record);
  state.commands.record(next);
  state.wake(
    command.charger,
    after(now, backoff(next.failures, 0.5 + fraction / 2, FIRST_RETRY, LONGEST_RETRY)),
  );
  if (record.failures > 0) return [];
  return [outcomeRow(command, now, `not sent: ${reason}`, { progress: "failed", reason })];
}

const supersededMessage = (sent: Sent): string =>
  sent.ok ? "acknowledged by the broker, already replaced" : `not sent: ${sent.reason}`;

export const outcomeRow = (
  { charger, vehicle, event, ...command }: Command,
  at: Instant,
  message: string,
  facts: Json,
): Change =>
  auditRow("outcome", at, `${charger} ${commandId(command)} ${message}`, {
    charger,
    vehicle,
    event,
    command: commandId(command),
    facts,
  });
