import type { AuditEntry, Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import {
  type Delivery,
  contradictions,
  latestNotices,
  type Rejected,
  type IngestResult,
} from "../../domain/delivery.ts";
import type { Ask, KnownEvent } from "../../domain/event.ts";
import { MOST_DESCRIPTORS, overSince } from "../../domain/eventSummary.ts";
import { type ChargerId, type EventId, type Instant, iso, type VehicleId } from "../../domain/units.ts";
import { formatAsk, formatChange, nameOf, oddities } from "../decide/describe.ts";
import { reportUnplugged } from "../schedule/advance.ts";
import { type Targeting, targeting } from "../schedule/targeting.ts";
import type { ControlState } from "../state.ts";
import { type EventNotice, type Intake, intake } from "./intake.ts";
import { MOST_RAW, quarantined } from "./quarantine.ts";
import { outcomeFor } from "./summary.ts";

export interface Ingestion {
  readonly changes: readonly Change[];
  /** Chargers for which something changed that holds, or held, now. */
  readonly affectedVehicles: ReadonlySet<ChargerId>;
  /** Events to be fetched by id: two webhooks contradict each other, or complete lists lack them. */
  readonly ask: readonly EventId[];
  /** Per delivery, in order. */
  readonly results: readonly IngestResult[];
}

/** Intake and expansion of what arrived in one turn, in order. Changes the picture, and says what is to be written. */
export function ingest(depot: ControlState, deliveries: readonly Delivery[]): Ingestion {
  const changes: Change[] = [];
  const touched = new Set<ChargerId>();
  const ask: EventId[] = [];
  const taken = deliveries.map((delivery) => {
    const notices = latestNotices(delivery.notices);
    const counts = { accepted: 0, repeats: delivery.notices.length - notices.length };
    const contradicted = notices === delivery.notices ? NONE : contradictions(delivery.notices);
    const rejected: Rejected[] = [];
    for (const notice of notices) {
      if (notice.kind === "rejected") {
        rejected.push(notice);
        continue;
      }
      const taken = ingestedOrQuarantined(depot, notice, delivery);
      if (taken === null) continue;
      if ("reason" in taken) {
        rejected.push(taken);
        continue;
      }
      counts[COUNTED[taken.outcome]] += 1;
      if (taken.ask) ask.push(notice.kind === "event" ? notice.event.id : notice.id);
      changes.push(...taken.changes);
      if (
        notice.kind === "event" &&
        contradicted.has(notice.event.id) &&
        COUNTED[taken.outcome] === "accepted"
      ) {
        const warning = `event ${notice.event.id} stands twice in one ${delivery.source} with the same modification time: the later one wins`;
        changes.push({ kind: "audit", entry: eventRow(delivery.at, notice.event.id, warning, { warning }) });
      }
      changes.push(...reportUnplugged(depot, taken.affectedVehicles, delivery.at));
      for (const vehicle of taken.affectedVehicles) {
        for (const charger of depot.occupancy.chargersOf(vehicle)) touched.add(charger);
      }
    }
    changes.push(...quarantined(depot, rejected, delivery));
    if (delivery.source === "fetch") for (const id of idsIn(delivery)) found(depot, id, delivery);
    if (delivery.complete) ask.push(...missingAfterList(depot, new Set(idsIn(delivery)), delivery.at));
    return { ...counts, rejected: rejected.length };
  });
  return { changes, affectedVehicles: touched, ask, results: taken };
}

const NONE: ReadonlySet<EventId> = new Set();

/** A fetch by id found the event: what the lists lacked, and what a delete said before it, proves nothing. */
function found(depot: ControlState, id: EventId, { askedAt }: Delivery): void {
  depot.absences.found(id);
  depot.deleteClaims.settle(id, askedAt);
}

/** After a complete list: the events to be asked for by id. Null: the list was the same as the last one. */
export function missingAfterList(
  depot: ControlState,
  ids: ReadonlySet<EventId> | null,
  at: Instant,
): readonly EventId[] {
  const { absences, deleteClaims, known } = depot;
  const missing = absences.listed(ids, known.values(), at);
  const deleted = deleteClaims.lackedBy((id) => absences.mayBeListed(id), at);
  return deleted.length === 0 ? missing : [...new Set([...deleted, ...missing])];
}

const COUNTED = {
  new: "accepted",
  changed: "accepted",
  withdrawn: "accepted",
  unproven: "accepted",
  repeat: "repeats",
  stale: "repeats",
} as const;

interface IngestedNotice {
  readonly outcome: Intake["outcome"];
  readonly changes: readonly Change[];
  readonly affectedVehicles: ReadonlySet<VehicleId>;
  readonly ask: boolean;
}

const NOBODY: ReadonlySet<VehicleId> = new Set();

/**
 * An event that brings out a bug must not end the process: it would come back with every poll, and end it again (F15).
 * What was known of it before stays.
 */
function ingestedOrQuarantined(
  depot: ControlState,
  notice: EventNotice,
  delivery: Delivery,
): IngestedNotice | Rejected | null {
  const id = notice.kind === "event" ? notice.event.id : notice.id;
  const tracked = depot.known.get(id);
  const settled = tracked?.kind === "over" ? outcomeFor(tracked, notice) : null;
  if (settled !== null) return { outcome: settled, changes: [], affectedVehicles: NOBODY, ask: false };
  const before = depot.known.whole(id);
  if (before === null) {
    const reason = "the stored event of this ID cannot be read";
    return { kind: "rejected", id, path: "", reason, raw: JSON.stringify(notice).slice(0, MOST_RAW) };
  }
  try {
    return ingestNotice(depot, notice, before, delivery);
  } catch (error) {
    if (before === undefined) depot.forget(id, delivery.at);
    else depot.putEvent(before, delivery.at);
    const reason = `a bug: this program cannot take it in (${String(error)})`;
    return { kind: "rejected", id, path: "", reason, raw: JSON.stringify(notice).slice(0, MOST_RAW) };
  }
}

function ingestNotice(
  depot: ControlState,
  notice: EventNotice,
  before: KnownEvent | undefined,
  delivery: Delivery,
): IngestedNotice | null {
  const id = notice.kind === "event" ? notice.event.id : notice.id;
  // One 404 is not a withdrawal: two complete lists must have lacked the event as well, or a delete named it (DESIGN 5.2).
  const isClaimed = depot.deleteClaims.isConfirmedBy(id, delivery.askedAt);
  if (notice.kind === "gone" && !depot.absences.isMissing(id) && !isClaimed) return null;
  const source = delivery.source === "webhook" ? "webhook" : "fetch";
  const result = intake(before, notice, { source, at: delivery.at, askedAt: delivery.askedAt });
  const changes: Change[] = [];
  const { known, outcome, warning } = result;
  let touched = NOBODY;
  if (known !== undefined && known !== before) {
    changes.push({ kind: "event", known });
    if (outcome === "repeat") {
      depot.known.set(id, known);
      depot.over.push(overSince(known), id);
    } else {
      touched = depot.putEvent(known, delivery.at);
      changes.push(audited(depot, known, before, outcome, delivery));
    }
  }
  if (warning !== null)
    changes.push({ kind: "audit", entry: eventRow(delivery.at, id, warning, { warning }) });
  if (outcome === "unproven") {
    const ask = depot.deleteClaims.add(id, delivery.at);
    return { outcome, changes: ask ? [unproven(id, delivery)] : [], affectedVehicles: touched, ask };
  }
  if (outcome === "withdrawn") depot.deleteClaims.settle(id, delivery.askedAt);
  // The event came again by webhook after this fetch was sent: only a later fetch settles the delete.
  return {
    outcome,
    changes,
    affectedVehicles: touched,
    ask: result.ask || (isClaimed && outcome === "stale"),
  };
}

function unproven(id: EventId, { at, source }: Delivery): Change {
  const words = `a delete of event ${id} came without its revision (${source}): the event is asked for by its id`;
  return { kind: "audit", entry: eventRow(at, id, words, { outcome: "unproven", source }) };
}

/** The events that are there, readable or not. */
export function* idsIn({ notices }: Delivery): Generator<EventId> {
  for (const notice of notices) {
    if (notice.kind === "event") yield notice.event.id;
    else if (notice.kind === "rejected" && notice.id !== null) yield notice.id;
  }
}

function audited(
  depot: ControlState,
  known: KnownEvent,
  before: KnownEvent | undefined,
  outcome: Intake["outcome"],
  delivery: Delivery,
): Change {
  const { at, source } = delivery;
  if (known.kind === "withdrawn") {
    const name = before?.kind === "live" ? nameOf(before.revision.event) : `event ${known.id}`;
    const words = `${name} was withdrawn (${source})`;
    return { kind: "audit", entry: eventRow(at, known.id, words, { outcome, source }) };
  }
  const { settings, wallClock } = depot;
  const { event, start } = known.revision;
  const aim = targeting(event, depot.expansion);
  const earlier = before?.kind === "live" ? before.revision : null;
  const asks = formatAsk(known.revision, aim, settings, wallClock);
  const changed = earlier === null ? "" : `, ${formatChange(earlier, known.revision, settings, wallClock)}`;
  const odd = oddities(known.revision, aim, depot.expansion, depot.reach, at);
  const words = [
    `${nameOf(event)} ${outcome === "changed" ? `changed${changed}` : "is new"} (${source}): ${asks}`,
    ...odd,
  ];
  return {
    kind: "audit",
    entry: eventRow(at, known.id, words.join("; "), {
      outcome,
      source,
      revision: iso(event.revision),
      start: iso(start),
      durationMs: event.duration,
      randomizeStartMs: event.randomizeStart,
      priority: event.priority,
      ask: askFacts(event.ask),
      hash: event.hash,
      targets: targetFacts(aim),
      reports: event.reports.slice(0, MOST_DESCRIPTORS).map(({ payloadType, readingType }) => ({
        payloadType: payloadType.slice(0, MOST_NAME),
        readingType: readingType.slice(0, MOST_NAME),
      })),
      odd,
    }),
  };
}

/** Of what a partner calls something, so much is put on record; and so many names. */
const MOST_NAME = 128;
const MOST_NAMES = 20;

const askFacts = (ask: Ask): Json =>
  ask.kind === "unknown" ? { ...ask, payloadType: ask.payloadType.slice(0, MOST_NAME) } : { ...ask };

const targetFacts = (aim: Targeting): Json => ({
  vehicles: aim.vehicles.size,
  foreignVehicles: aim.foreignVehicles,
  unknownVehicles: aim.unknownIds.map((id) => id.slice(0, MOST_NAME)),
  foreignTypes: aim.foreignTypes.slice(0, MOST_NAMES).map((type) => type.slice(0, MOST_NAME)),
});

const eventRow = (at: Instant, event: EventId | null, words: string, facts: Json): AuditEntry => ({
  at,
  kind: "event",
  charger: null,
  vehicle: null,
  event,
  command: null,
  words,
  facts,
});
