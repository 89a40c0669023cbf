import {
  type EventSummary,
  isDatedAhead,
  type TrackedEvent,
  summaryOf,
  overSince,
} from "../../domain/event.ts";
import { after, type EventId, type Instant, later, minutes } from "../../domain/units.ts";
import type { ControlState } from "../state.ts";
import type { EventNotice } from "./intake.ts";

/** The outcome of a notice, from the summary alone. Null: the whole event is needed. */
export function outcomeFor(
  summary: EventSummary,
  notice: EventNotice,
  at: Instant,
): "repeat" | "stale" | null {
  if (notice.kind !== "event" || summary.was !== "live") return null;
  if (notice.event.hash === summary.hash) return "repeat";
  return notice.event.revision < summary.revision && !isDatedAhead(summary.revision, at) ? "stale" : null;
}

/** True: both are the same state of one event. */
export function isSameState(a: TrackedEvent, b: EventSummary): boolean {
  const { was, hash, receivedAt, revision } = a.kind === "over" ? a : summaryOf(a, b.size);
  return was === b.was && hash === b.hash && receivedAt === b.receivedAt && revision === b.revision;
}

/** Retry interval for an event that is over and cannot be condensed yet. */
const RETRY = minutes(1);

/**
 * Replaces each event that is over by its summary in memory, once the store has answered.
 * Not while a charger follows the event or is held because of it, nor before its latest state is stored.
 */
export async function condense(state: ControlState, now: Instant): Promise<void> {
  const due = state.schedule.dueForSummary(now);
  if (due.size === 0) return;
  const whole = [...due].flatMap((id) => {
    const known = state.known.get(id);
    return known === undefined || known.kind === "over" ? [] : [known];
  });
  const unused = isUnusedIn(state);
  const over = whole.filter((known) => overSince(known) <= now && unused(known)).map(({ id }) => id);
  const summaries = over.length === 0 ? new Map() : await state.known.stored(over);
  const stillUnused = isUnusedIn(state);
  for (const known of whole) {
    // Changed while the store was asked: its next state is due by itself.
    if (state.known.get(known.id) !== known) continue;
    const summary = summaries.get(known.id);
    if (summary !== undefined && stillUnused(known) && isSameState(known, summary))
      state.schedule.condense(summary);
    else state.schedule.condenseLater(known.id, later(overSince(known), after(now, RETRY)));
  }
}

/** True: no charger follows the event, or is held because of it. */
function isUnusedIn(state: ControlState): (known: TrackedEvent) => boolean {
  const inUse = eventsInUse(state);
  return ({ id }) => !inUse.has(id);
}

function eventsInUse(state: ControlState): ReadonlySet<EventId | null> {
  const inUse = new Set<EventId | null>();
  for (const { command } of state.commands.values())
    if (command.desired.kind !== "release") inUse.add(command.event);
  for (const id of state.holds.events()) inUse.add(id);
  return inUse;
}
