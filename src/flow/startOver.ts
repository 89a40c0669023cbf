import { commandId, type CommandRecord } from "../core/control/command.ts";
import { expand } from "../core/control/expand.ts";
import type { KnownEvent } from "../core/control/known.ts";
import type { Rejected } from "../core/delivery.ts";
import type { Depot } from "../core/depot.ts";
import type { Change, Remembered, Scope, StoredScope } from "../core/ledger.ts";
import { rollBack } from "../core/rollBack.ts";
import { after, type ChargerId, type EventId, type Instant, seconds } from "../core/units.ts";
import { MOST_RAW, quarantined } from "./quarantine.ts";

/** After a failed commit everyone is looked at again so much later: soon, but not in circles. */
const COMMIT_RETRY = seconds(5);

/**
 * What is stored becomes the picture. An event that brings out a bug, after an upgrade say, must not end the process
 * with every start (F15): it is set aside and forgotten, so that the partner's next list brings it anew. Answers what is
 * to be written of that.
 */
export function pickUp(depot: Depot, remembered: Remembered, now: Instant): readonly Change[] {
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
function plannable(depot: Depot, remembered: Remembered, now: Instant): readonly Change[] {
  const { agenda } = depot;
  try {
    depot.restore(remembered, now);
    return [];
  } catch (error) {
    // Half of a plan is nothing to carry over from.
    depot.agenda = agenda;
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
  depot: Depot,
  rejected: readonly (Rejected & { readonly id: EventId })[],
  now: Instant,
): readonly Change[] => [
  ...quarantined(depot, rejected, { at: now, source: "state" }),
  ...rejected.map(({ id }) => ({ kind: "eventForgotten", id }) as const),
];

function faultOf(known: KnownEvent, { expansion }: Depot): string | null {
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
export function startOver(
  depot: Depot,
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
    depot.commands.set(charger, record);
    const was = sent.get(charger);
    if (was === undefined || commandId(was.record.command) !== commandId(record.command)) continue;
    depot.commands.set(charger, asSent(record, was.record));
    if (record.progress === "planned") lacking.push(...was.said);
  }
  const chargers = [...vehicles].flatMap((vehicle) => depot.plugs.chargersOf(vehicle));
  retryLater(depot, [...scope.chargers, ...chargers], now);
  return lacking;
}

/** Chargers whose evaluation was not stored are evaluated again in a few seconds. */
export function retryLater(depot: Depot, chargers: Iterable<ChargerId>, now: Instant): void {
  for (const charger of chargers) depot.wake(charger, after(now, COMMIT_RETRY));
}

function asSent(stored: CommandRecord, was: CommandRecord): CommandRecord {
  const { progress, sentAt, sends } = was;
  if (stored.progress !== "planned" && stored.progress !== progress) return { ...stored, sentAt, sends };
  // Counted in memory, too, or each failed commit would allow one more try.
  const { judgeAt, resends } = was.resends < stored.resends ? stored : was;
  return { ...stored, progress, sentAt, sends, judgeAt, resends };
}
