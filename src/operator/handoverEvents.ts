import { hasEnded } from "../control/ingest/absence.ts";
import { targeting } from "../control/schedule/targeting.ts";
import type { ControlState } from "../control/state.ts";
import { type AuditEntry, factOf, type Json, textOf } from "../domain/audit.ts";
import type { Ask, KnownEvent } from "../domain/event.ts";
import type { Store } from "../domain/store.ts";
import { after, type EventId, type Instant, iso } from "../domain/units.ts";
import { pagesOfEvent } from "./recordPages.ts";

const MOST_EVENTS = 20;
/** Vehicles of an event that are named for each result. */
const MOST_NAMED = 100;

/** Result of an event for its vehicles, each in one of these, by the last fact on record. */
interface Outcome {
  readonly followed: readonly string[];
  readonly notFollowed: readonly string[];
  /** Freed from the event by a hold. */
  readonly held: readonly string[];
  /** The window passed without action, e.g. because the vehicle was at no charger. */
  readonly missed: readonly string[];
}

type Row = Pick<AuditEntry, "kind" | "vehicle" | "command" | "facts">;

/** Adds rows, the oldest first, to the result of an event. */
interface OutcomeCount {
  readonly add: (rows: readonly Row[]) => void;
  readonly outcome: () => Outcome;
}

/**
 * The last fact of each vehicle counts. A release at the end of the event is none. `vehicles`: those that the newest
 * revision asks for.
 */
export function outcomeCount(event: EventId, vehicles: ReadonlySet<string>): OutcomeCount {
  const last = new Map<string, keyof Outcome>();
  /** Commands that this event has won. */
  const commands = new Set<string>();
  const named = (wanted: keyof Outcome): readonly string[] =>
    [...last].flatMap(([who, result]) => (result === wanted ? [who] : []));
  return {
    add(rows) {
      for (const { kind, vehicle, command, facts } of rows) {
        const isWon = kind === "decision" && textOf(factOf(facts, "winner"), "event") === event;
        if (isWon && command !== null) commands.add(command);
        const result = kind === "outcome" && !commands.has(command ?? "") ? null : resultOf(kind, facts);
        if (vehicle !== null && result !== null && vehicles.has(vehicle)) last.set(vehicle, result);
      }
    },
    outcome: () => ({
      followed: named("followed"),
      notFollowed: named("notFollowed"),
      held: named("held"),
      missed: named("missed"),
    }),
  };
}

function resultOf(kind: AuditEntry["kind"], facts: Json): keyof Outcome | null {
  if (kind === "missed") return "missed";
  if (kind === "operator") return factOf(facts, "effect") === true ? "held" : null;
  const progress = kind === "outcome" ? textOf(facts, "progress") : null;
  if (progress === "followed") return "followed";
  return progress === "notFollowed" || progress === "refused" ? "notFollowed" : null;
}

export type Live = KnownEvent & { readonly kind: "live" };

/** Events with a window in the shift, the newest start first. */
export async function eventRows(
  state: ControlState,
  store: Pick<Store, "audit" | "head">,
  since: Instant,
  now: Instant,
): Promise<readonly Json[]> {
  const inShift: Live[] = [];
  for (const tracked of state.known.values()) {
    if (tracked.kind === "withdrawn" || (tracked.kind === "over" && tracked.until < since)) continue;
    const known = await state.known.readNow(tracked.id);
    if (known?.kind !== "live" || known.revision.start > now || hasEnded(known, since)) continue;
    inShift.push(known);
  }
  const rows: Json[] = [];
  for (const known of inShift.toSorted((a, b) => b.revision.start - a.revision.start).slice(0, MOST_EVENTS)) {
    const { event, start } = known.revision;
    const { vehicles } = targeting(event, state.expansion);
    const count = outcomeCount(event.id, vehicles);
    for await (const page of pagesOfEvent(store, event.id)) count.add(page);
    const outcome = count.outcome();
    const judged = new Set(Object.values(outcome).flat());
    rows.push({
      id: event.id,
      name: event.name,
      state: hasEnded(known, now) ? "ended" : "active",
      asked: formatAsk(event.ask, state.settings.powerUnit),
      start: iso(start),
      end: iso(endOfEvent(known)),
      modified: iso(event.revision),
      vehicles: vehicles.size,
      followed: named(outcome.followed),
      notFollowed: named(outcome.notFollowed),
      held: named(outcome.held),
      missed: named(outcome.missed),
      notJudged: [...vehicles].filter((vehicle) => !judged.has(vehicle)).length,
    });
  }
  return rows;
}

const formatAsk = (ask: Ask, powerUnit: string): string =>
  ask.kind === "unknown" ? ask.payloadType : `${ask.level} ${ask.kind === "power" ? powerUnit : "A"}`;

const named = (vehicles: readonly string[]): Json => ({
  count: vehicles.length,
  vehicles: vehicles.slice(0, MOST_NAMED),
});

/** The latest end: with the largest random start. */
export const endOfEvent = ({ revision: { event, start } }: Live): Instant =>
  after(after(start, event.randomizeStart), event.duration);

/** Events that were withdrawn since this moment. */
export function withdrawnSince(state: ControlState, since: Instant): readonly Json[] {
  const found: Json[] = [];
  for (const { id, receivedAt, ...rest } of state.known.values()) {
    const isWithdrawn = rest.kind === "withdrawn" || (rest.kind === "over" && rest.was === "withdrawn");
    if (isWithdrawn && receivedAt >= since && found.length < MOST_NAMED)
      found.push({ id, at: iso(receivedAt) });
  }
  return found;
}
