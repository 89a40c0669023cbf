import { isSameState } from "./control/summary.ts";
import type { Depot } from "./depot.ts";
import { overSince } from "./retention.ts";
import { after, type EventId, type Instant, later, minutes } from "./units.ts";

/** An event that is over and cannot be condensed yet is tried again after this. */
const RETRY = minutes(1);

/**
 * Keeps only a summary in memory of each event that is over. Not while a charger still follows it or is held because of
 * it, nor before it is stored as it is in memory.
 */
export function condense(depot: Depot, now: Instant): void {
  const due = depot.over.due(now);
  if (due.size === 0) return;
  const inUse = eventsInUse(depot);
  for (const id of due) {
    const known = depot.known.get(id);
    if (known === undefined || known.kind === "over") continue;
    const until = overSince(known);
    const summary = until > now || inUse.has(id) ? null : depot.known.stored(id);
    if (summary !== null && isSameState(known, summary)) depot.known.set(id, summary);
    else depot.over.push(later(until, after(now, RETRY)), id);
  }
}

function eventsInUse(depot: Depot): ReadonlySet<EventId | null> {
  const inUse = new Set<EventId | null>();
  for (const { command } of depot.commands.values())
    if (command.desired.kind !== "release") inUse.add(command.event);
  for (const { events } of depot.holds.values()) for (const id of events) inUse.add(id);
  return inUse;
}
