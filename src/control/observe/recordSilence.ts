import { auditRow, type AuditEntry, textOf } from "../../domain/audit.ts";
import { isLimiting, reallySent } from "../../domain/command.ts";
import { formatLevel } from "../../domain/setpoint.ts";
import type { ControlState } from "../state.ts";
import type { Presence } from "./presence.ts";
import type { Change } from "../../domain/changes.ts";
import type { ChargerMessage } from "../../domain/telemetry.ts";
import { type ChargerId, type Instant, instant, iso, type Millis } from "../../domain/units.ts";
import { keepLimits } from "./keepLimits.ts";
import type { Reevaluation } from "../ports.ts";

export interface Fallen {
  readonly changes: readonly Change[];
  /** Of chargers that nothing was asked of: no matter for the record. */
  readonly warnings: readonly string[];
  /** Chargers whose occupant may have changed: a silent charger keeps no claim on another's vehicle. */
  readonly affectedChargers: readonly ChargerId[];
}

/** Chargers that were heard before and are not any more, each told once; what they were told last is on record. */
export function fallSilent(
  depot: ControlState,
  tick: Millis,
  now: Instant,
  isLinked: (charger: ChargerId) => boolean,
): Fallen {
  const { silentAfter } = depot.settings;
  const changes: Change[] = [];
  const warnings: string[] = [];
  const touched: ChargerId[] = [];
  // Who has said that it is offline is not expected to speak.
  const couldBeHeard = (id: ChargerId): boolean => isLinked(id) && depot.presenceOf(id).online !== false;
  for (const id of depot.silence.fallen(tick, silentAfter, couldBeHeard)) {
    depot.dirty.add(id);
    const words = `${id} is unreachable: nothing was heard of it for ${silentAfter / 1000} s`;
    const told = standing(depot, id);
    if (told === null) warnings.push(words);
    else {
      const since = iso(instant(now - silentAfter));
      changes.push(row(id, now, `${words}; it was told ${told}`, { warning: "silent", told, since }));
    }
    const affected = depot.occupancy.depart(id);
    changes.push(...keepLimits(depot, affected, now));
    touched.push(...affected);
  }
  return { changes, warnings, affectedChargers: touched };
}

/** Any live message ends a silence, and what holds is said again: whatever was sent meanwhile may not have arrived. */
export function heardAgain(
  depot: ControlState,
  message: ChargerMessage,
  tick: Millis,
  now: Instant,
): { readonly changes: readonly Change[]; readonly touched: readonly Reevaluation[] } {
  const { charger: id } = message;
  const isLive = isOwnWord(message);
  const silentFor = isLive && depot.chargers.has(id) ? depot.silence.heard(id, tick) : null;
  if (silentFor === null) return { changes: [], touched: [] };
  depot.dirty.add(id);
  const words = `${id} is heard again after ${Math.round(silentFor / 1000)} s`;
  const changes =
    standing(depot, id) === null ? [] : [row(id, now, words, { silentMs: silentFor, over: true })];
  return { changes, touched: [{ charger: id, reassert: true }] };
}

/** A retained message is old, and "offline" may be the last will: its broker publishes that, not the charger. */
const isOwnWord = (message: ChargerMessage): boolean =>
  message.kind === "online"
    ? message.online && !message.snapshot
    : message.kind !== "telemetry" || message.snapshot !== true;

/**
 * The outages that the last run left open are over on record with the start of this one: whoever was away may have come
 * back while nothing ran. Who is still away gets a row of its own as soon as that is found; without this every later
 * proof would tell of an outage that goes on for ever. `open`: the rows that they began with.
 */
export function endedByStart(
  depot: ControlState,
  open: readonly AuditEntry[],
  tick: Millis,
  now: Instant,
): readonly Change[] {
  return open.map(({ at, charger, facts, ...entry }) => {
    const outage = textOf(facts, "outage");
    // It spoke once, so that it is expected to speak from now on.
    if (charger !== null) depot.silence.heard(charger, tick);
    return {
      kind: "audit",
      entry: {
        ...entry,
        at: now,
        charger,
        words: `${charger ?? `the ${outage}`} was away when the last run ended; whether it still is has to be found out`,
        facts: { outage, since: textOf(facts, "since") ?? iso(at), over: true },
      },
    };
  });
}

/** One that says, or whose broker says, that it is off under a command of ours; and that it is there again (F91). */
export function offOrOn(
  depot: ControlState,
  id: ChargerId,
  before: Presence,
  online: boolean,
  now: Instant,
): readonly Change[] {
  const told = standing(depot, id);
  if (told === null || (online ? before.online !== false : before.online === false)) return [];
  return online
    ? [row(id, now, `${id} is online again`, { over: true })]
    : [row(id, now, `${id} is offline; it was told ${told}`, { warning: "offline", told, since: iso(now) })];
}

/** What a charger stands under, in words; null: nothing of ours. */
function standing(depot: ControlState, id: ChargerId): string | null {
  const record = depot.commands.get(id);
  const sent = record === undefined ? null : reallySent(record);
  return sent !== null && isLimiting(sent) ? formatLevel(sent.command.desired) : null;
}

const row = (
  charger: ChargerId,
  at: Instant,
  words: string,
  facts: Readonly<Record<string, string | number | boolean>>,
): Change => auditRow("silence", at, words, { charger, facts: { outage: "charger", ...facts } });
