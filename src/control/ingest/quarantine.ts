import { hash } from "node:crypto";

import { auditRow, type AuditEntry, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { Rejected } from "../../domain/delivery.ts";
import { type KnownEvent, lastEnd } from "../../domain/event.ts";
import { setpointOf } from "../../domain/setpoint.ts";
import type { EventId, Instant } from "../../domain/units.ts";
import type { Schedule } from "../schedule/schedule.ts";
import { targeting } from "../schedule/targeting.ts";

/** Cap on remembered rejections. Larger than the longest list that is accepted, so one list never evicts itself. */
const MOST = 100_000;

/** Input that was already recorded as rejected. Each input is recorded once. */
export class Rejections {
  readonly #prints = new Set<string>();

  /** True: this input was not rejected before. */
  isNew({ id, path, reason, raw }: Rejected): boolean {
    const print = hash("sha256", JSON.stringify([id, path, reason, raw]), "base64");
    if (this.#prints.has(print)) return false;
    if (this.#prints.size >= MOST) this.#prints.clear();
    this.#prints.add(print);
    return true;
  }

  /** Stored rows are unknown after a failed commit. A second row is better than none. */
  clear(): void {
    this.#prints.clear();
  }
}

/** Rejected entries of one delivery with a row of their own. One more row sums up the rest. */
const OWN_ROWS = 20;
/** Cap on quarantined entries of one delivery. More would only evict each other. */
const MOST_KEPT = 1000;
/** Ids named in the row that stands for the rest. */
const MOST_NAMED = 50;
/** Characters kept of a quarantined entry. */
export const MOST_RAW = 4096;

/** An event that is not acted on, with the reason. `path`: the member that is the reason. */
export const setAside = (id: EventId, content: object, reason: string, path = "") =>
  ({ kind: "rejected", id, path, reason, raw: JSON.stringify(content).slice(0, MOST_RAW) }) as const;

/**
 * Why an event has to be set aside. Null: its dispatches fit in memory. An edit that adds none always fits. The reason is
 * the same each time, so that it is recorded once.
 */
export function lackOfRoom(schedule: Schedule, known: KnownEvent, now: Instant): string | null {
  const { agenda, context, room, setAside: waiting } = schedule;
  waiting.delete(known.id);
  const free = room.free();
  if (known.kind === "withdrawn" || lastEnd(known) <= now || context.vehicles.size <= free) return null;
  const { event } = known.revision;
  if (setpointOf(event, context.settings.powerUnit) === null) return null;
  const count = targeting(event, context).vehicles.size;
  const added = count - agenda.ofEvent(known.id).length;
  if (added <= 0 || added <= free) return null;
  waiting.add(known.id);
  return `${count} vehicles of this site, expected at most as many as fit in memory: all open events together may have ${room.most}; it is accepted from a later list, once others have ended`;
}

/**
 * Stores unreadable entries for inspection and records them. The same entry in every poll is recorded once.
 */
export function quarantined(
  { rejections }: { readonly rejections: Rejections },
  rejected: readonly Rejected[],
  { at, source }: { readonly at: Instant; readonly source: string },
): readonly Change[] {
  const fresh = rejected.filter((one) => rejections.isNew(one));
  const kept = fresh
    .slice(0, MOST_KEPT)
    .map((one) => ({ kind: "quarantine", rejected: one, at, source }) as const);
  const rows = fresh.slice(0, OWN_ROWS).map(({ id, path, reason }) => {
    const message = `${id === null ? "something" : `event ${id}`} in a ${source} was set aside: ${path}: ${reason}`;
    return row(at, id, message, { path, reason, source });
  });
  const rest = fresh.slice(OWN_ROWS);
  const [first] = rest;
  if (first === undefined) return [...kept, ...rows];
  const message = `${rest.length} more in the same ${source} were set aside, the next: ${first.path}: ${first.reason}`;
  const ids = rest.flatMap(({ id }) => (id === null ? [] : [id])).slice(0, MOST_NAMED);
  return [...kept, ...rows, row(at, null, message, { count: rest.length, ids, source })];
}

const row = (at: AuditEntry["at"], event: AuditEntry["event"], message: string, details: Json): Change =>
  auditRow("rejected", at, message, { event, facts: details });
