import { hash } from "node:crypto";

import { auditRow, type AuditEntry, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { Delivery, Rejected } from "../../domain/delivery.ts";
import { type KnownEvent, lastEnd } from "../../domain/event.ts";
import { setpointOf } from "../../domain/setpoint.ts";
import type { EventId, Instant, VehicleId } from "../../domain/units.ts";
import type { ResumableTask } from "../../platform/cooperative.ts";
import { liesAhead, type Schedule } from "../schedule/schedule.ts";
import { targeting } from "../schedule/targeting.ts";
import { rankOf } from "../schedule/vehiclePlan.ts";

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

/** Room in memory for one event. */
export interface RoomFor {
  /** Reason to set it aside. Null: it fits. The reason is the same each time, so that it is recorded once. */
  readonly lack: string | null;
  /** Accepted events that give way to it. */
  readonly givingWay: readonly LiveEvent[];
}

type LiveEvent = KnownEvent & { readonly kind: "live" };

export const ENOUGH_ROOM: RoomFor = { lack: null, givingWay: [] };

/** Finds the room for a revision. An edit that adds no dispatch always fits. `before`: the event as it is known. */
export function* roomFor(
  schedule: Schedule,
  known: KnownEvent,
  before: KnownEvent | undefined,
  now: Instant,
): ResumableTask<RoomFor> {
  const { agenda, context, room, setAside: waiting } = schedule;
  waiting.delete(known.id);
  const free = room.free();
  if (known.kind === "withdrawn" || lastEnd(known) <= now || context.vehicles.size <= free)
    return ENOUGH_ROOM;
  const { event } = known.revision;
  if (setpointOf(event, context.settings.powerUnit) === null) return ENOUGH_ROOM;
  const targeted = targeting(event, context).vehicles.size;
  const present = agenda.ofEvent(known.id).length;
  const isFew = (count: number): boolean => count <= present || count - present <= free;
  if (isFew(targeted)) return ENOUGH_ROOM;
  // Vehicles of an edited event may have ended: an expansion counts the others. With each list it costs too much for a new one.
  const count = before?.kind === "live" ? yield* schedule.counting(known, now) : targeted;
  if (isFew(count)) return ENOUGH_ROOM;
  const givingWay = lessUrgent(schedule, known, count - present - free, now);
  if (givingWay !== null) return { lack: null, givingWay };
  waiting.add(known.id);
  const lack = `${targeted} vehicles of this site, expected at most as many as fit in memory: all open events together may have ${room.most}; it is accepted from a later list, once others have ended`;
  return { lack, givingWay: [] };
}

/**
 * Accepted events of a worse priority than this one, the worst first, on which nobody acted: their start lies ahead, or they
 * came at this moment. Null: they make less room than is needed.
 */
function lessUrgent(
  { known, agenda, context: { settings } }: Schedule,
  { id, revision }: LiveEvent,
  needed: number,
  now: Instant,
): readonly LiveEvent[] | null {
  const rank = rankOf(revision, settings);
  const rankIn = (each: LiveEvent): number => rankOf(each.revision, settings);
  const worse = [...known.values()].filter(
    (each): each is LiveEvent =>
      each.kind === "live" &&
      each.id !== id &&
      (liesAhead(each, now) || (each.receivedAt === now && each.endings.length === 0)) &&
      rankIn(each) > rank,
  );
  const chosen: LiveEvent[] = [];
  let left = needed;
  for (const each of worse.toSorted((a, b) => rankIn(b) - rankIn(a) || b.revision.start - a.revision.start)) {
    const count = agenda.ofEvent(each.id).length;
    if (count === 0) continue;
    chosen.push(each);
    left -= count;
    if (left <= 0) return chosen;
  }
  return null;
}

const GIVES_WAY =
  "it gives way to an event of a better priority, as the vehicles of both do not fit in memory; it is accepted from a later list, once others have ended";

/** Forgets events that give way. Returns the rows to store. `affected` gets the vehicles for which something held. */
export function* giveWay(
  { schedule }: { readonly schedule: Schedule },
  { givingWay }: RoomFor,
  delivery: Delivery,
  affected: Set<VehicleId>,
): ResumableTask<readonly Change[]> {
  for (const { id } of givingWay) {
    yield;
    for (const vehicle of schedule.forget(id, delivery.at)) affected.add(vehicle);
    schedule.setAside.add(id);
  }
  const rejected = givingWay.map((known) => setAside(known.id, known, GIVES_WAY, "targets"));
  // Rows of the events themselves: a failed commit reads these again, and a row that only deletes an event names none.
  const named = givingWay.map((known) => ({ kind: "event", known }) as const);
  return [...named, ...forgotten(rejected, delivery)];
}

/** Quarantines accepted events with the reason, and removes them from the store. Each is recorded, also a second time. */
export const forgotten = (
  rejected: readonly (Rejected & { readonly id: EventId })[],
  from: { readonly at: Instant; readonly source: string },
): readonly Change[] => [
  ...quarantined({ rejections: new Rejections() }, rejected, from),
  ...rejected.map(({ id }) => ({ kind: "eventForgotten", id }) as const),
];

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
