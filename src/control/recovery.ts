import type { Change, StoredState, Scope, StoredScope } from "../domain/changes.ts";
import { commandId, type CommandRecord, nextJudgement } from "../domain/command.ts";
import type { Rejected } from "../domain/delivery.ts";
import type { KnownEvent } from "../domain/event.ts";
import {
  after,
  type ChargerId,
  type EventId,
  type Instant,
  seconds,
  earlier,
  type VehicleId,
} from "../domain/units.ts";
import { MOST_RAW, quarantined } from "./ingest/quarantine.ts";
import { expand } from "./schedule/expand.ts";
import type { ControlState } from "./state.ts";

/** After a failed commit everyone is looked at again so much later: soon, but not in circles. */
const COMMIT_RETRY = seconds(5);

/**
 * What is stored becomes the picture. An event that brings out a bug, after an upgrade say, must not end the process
 * with every start (F15): it is set aside and forgotten, so that the partner's next list brings it anew. Answers what is
 * to be written of that.
 */
export function restoreState(depot: ControlState, remembered: StoredState, now: Instant): readonly Change[] {
  const planned = plannable(depot, remembered, now);
  const edited = remembered.edited.map(({ id, raw }) => ({
    kind: "rejected" as const,
    id,
    path: "",
    reason: "another program edited its stored copy: it is not acted on, and the partner is asked for it",
    raw: raw.slice(0, MOST_RAW),
  }));
  return [...planned, ...forgotten(depot, edited, now)];
}

/** Restores what can be planned. Answers what is to be written of the rest. */
function plannable(depot: ControlState, remembered: StoredState, now: Instant): readonly Change[] {
  try {
    depot.restore(remembered, now);
    return [];
  } catch (error) {
    const broken = new Map(
      remembered.events.flatMap((known) => {
        const fault = known.kind === "over" ? null : faultOf(known, depot);
        return fault === null ? [] : [[known, fault] as const];
      }),
    );
    if (broken.size === 0) throw error;
    depot.restore({ ...remembered, events: remembered.events.filter((known) => !broken.has(known)) }, now);
    const rejected = [...broken].map(([known, reason]) => ({
      kind: "rejected" as const,
      id: known.id,
      path: "",
      reason: `a bug: this program cannot plan it (${reason})`,
      raw: JSON.stringify(known).slice(0, MOST_RAW),
    }));
    return forgotten(depot, rejected, now);
  }
}

/** Set aside with the reason, and not stored any more. */
const forgotten = (
  depot: ControlState,
  rejected: readonly (Rejected & { readonly id: EventId })[],
  now: Instant,
): readonly Change[] => [
  ...quarantined(depot, rejected, { at: now, source: "state" }),
  ...rejected.map(({ id }) => ({ kind: "eventForgotten", id }) as const),
];

function faultOf(known: KnownEvent, { expansion }: ControlState): string | null {
  try {
    expand(known, expansion);
    return null;
  } catch (error) {
    return String(error);
  }
}

/** What the last publish to a charger left behind, in memory only where its outcome could not be recorded. */
export interface LastSent {
  readonly record: CommandRecord;
  /** The row that says how this command first went out. */
  readonly said: readonly Change[];
}

/**
 * Nothing of a failed commit was stored, so what it was about becomes what is stored. `sent`: refreshes are counted in
 * memory only, and must not all fall due at once; and what went out goes on from there, as a charger without a refresh
 * would wait for its outcome for ever. Answers what the record still lacks of that.
 */
export function recoverAfterFailedCommit(
  depot: ControlState,
  scope: Scope,
  stored: StoredScope,
  sent: ReadonlyMap<ChargerId, LastSent>,
  now: Instant,
): readonly Change[] {
  const before = new Map([...scope.chargers].map((charger) => [charger, depot.commands.get(charger)]));
  const vehicles = rollBack(depot, scope, stored, now);
  const lacking: Change[] = [];
  for (const charger of scope.chargers) {
    const found = depot.commands.get(charger);
    if (found === undefined) continue;
    const live = before.get(charger);
    const isSame = live !== undefined && commandId(live.command) === commandId(found.command);
    // Failures are counted in memory: one that is over must not come back, one that is not must not be forgotten.
    const record = isSame ? { ...found, failures: live.failures } : found;
    depot.commands.record(record);
    const was = sent.get(charger);
    if (was === undefined || commandId(was.record.command) !== commandId(record.command)) continue;
    depot.commands.record(asSent(record, was.record));
    if (record.progress === "planned") lacking.push(...was.said);
  }
  const chargers = [...vehicles].flatMap((vehicle) => depot.occupancy.chargersOf(vehicle));
  retryLater(depot, [...scope.chargers, ...chargers], now);
  return lacking;
}

/** Chargers whose evaluation was not stored are evaluated again in a few seconds. */
export function retryLater(depot: ControlState, chargers: Iterable<ChargerId>, now: Instant): void {
  for (const charger of chargers) depot.wake(charger, after(now, COMMIT_RETRY));
}

function asSent(stored: CommandRecord, was: CommandRecord): CommandRecord {
  const { progress, sentAt, sends } = was;
  if (stored.progress !== "planned" && stored.progress !== progress) return { ...stored, sentAt, sends };
  // Counted in memory, too, or each failed commit would allow one more try.
  const { judgeAt, resends } = was.resends < stored.resends ? stored : was;
  return { ...stored, progress, sentAt, sends, judgeAt, resends };
}

/**
 * After the clock was set back: what is known only since the start counts as of now where it is dated later. It would
 * be newer than anything that is heard for as long as the clock was ahead.
 */
export function onClockMovedBack(depot: ControlState, now: Instant): void {
  const cut = (at: Instant | null): Instant | null => (at === null ? null : earlier(at, now));
  depot.occupancy.onClockMovedBack(now);
  depot.ramp?.onClockMovedBack(now);
  depot.presence.onClockMovedBack(now);
  for (const record of depot.commands.values()) {
    if (record.judgeAt === null) continue;
    // It has the time to get there that it would have had.
    const latest = nextJudgement(now, depot.settings.verdict.ramp, record.resends);
    const followedAt = cut(record.followedAt ?? null);
    depot.commands.record({ ...record, judgeAt: earlier(record.judgeAt, latest), followedAt });
  }
}

/** The events and chargers whose stored state may differ from memory, now that these changes were dropped. */
export function scopeOf(dropped: readonly Change[]): Scope {
  const events = new Set<EventId>();
  const chargers = new Set<ChargerId>();
  for (const change of dropped) {
    if (change.kind === "event") events.add(change.known.id);
    else if (change.kind === "command") chargers.add(change.record.command.charger);
    else if (change.kind === "hold") chargers.add(change.hold.charger);
    else if (change.kind === "holdEnded" || change.kind === "commandForgotten") chargers.add(change.charger);
    else if (change.kind === "audit" && change.entry.charger !== null) chargers.add(change.entry.charger);
  }
  return { events, chargers };
}

/**
 * Puts back what is stored of the events and chargers that a failed commit was about; everything else stays as it is.
 * Returns the vehicles for which something holds, or held, now.
 */
export function rollBack(
  depot: ControlState,
  scope: Scope,
  stored: StoredScope,
  now: Instant,
): ReadonlySet<VehicleId> {
  depot.rejections.clear();
  depot.schedule.retractUnreported();
  const events = new Map(stored.events.map((known) => [known.id, known]));
  const affected = new Set<VehicleId>();
  for (const id of scope.events)
    for (const vehicle of depot.schedule.rollBack(id, events.get(id), now)) affected.add(vehicle);
  for (const charger of scope.chargers) {
    depot.commands.forget(charger);
    depot.endHold(charger);
    depot.sendQueue.endCommitWait(charger);
  }
  depot.putCommands(stored);
  for (const hold of stored.holds) depot.hold(hold);
  depot.assertAgain(scope.chargers);
  depot.ramp?.recall(depot.commands.values(), depot.chargers);
  return affected;
}
