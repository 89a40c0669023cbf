import type { Change } from "../../domain/changes.ts";
import { type Delivery, eventOf, type IngestResult, type Rejected } from "../../domain/delivery.ts";
import type { CoordinationEvent, EventSummary, KnownEvent } from "../../domain/event.ts";
import type { ChargerId, EventId, Instant, VehicleId } from "../../domain/units.ts";
import { inSteps, type ResumableTask, runUrgently, runToEnd } from "../../platform/cooperative.ts";
import { eventAudit, eventRow, unprovenDelete } from "../decide/describe.ts";
import { reportingUnplugged } from "../schedule/advance.ts";
import type { Arrival, ControlPorts } from "../ports.ts";
import type { Reevaluation } from "../stage.ts";
import type { ControlState } from "../state.ts";
import { contradictions, latestNotices, type EventNotice, type Intake, intake } from "./intake.ts";
import type { WholeEvents } from "./knownEvents.ts";
import { ENOUGH_ROOM, giveWay, quarantined, roomFor, setAside } from "./quarantine.ts";
import { outcomeFor } from "./summary.ts";

/** Chargers to evaluate. A promise: the stage reads first, or takes several turns of the event loop. */
export type Affected = readonly Reevaluation[] | Promise<readonly Reevaluation[]>;

type IngestPorts = Pick<ControlPorts, "write" | "fetchById" | "durable" | "monotonic">;

/**
 * The stage of intake and expansion. Each delivery is settled after the commit, which holds the first evaluations as
 * well. Returns the chargers to evaluate. A promise: the delivery is large and takes several turns of the event loop;
 * until then no other stage may run.
 */
export function ingestStage(
  state: ControlState,
  ports: IngestPorts,
): (arrivals: readonly Arrival[]) => Affected {
  /** Chargers affected by the parts of a list so far. */
  const waiting = new Set<ChargerId>();

  const finish = (arrivals: readonly Arrival[], ingestion: Ingestion): readonly Reevaluation[] => {
    const { changes, affectedChargers, fetchById, results } = ingestion;
    const stored = arrivals.flatMap(({ delivery }) => delivery.stored ?? []);
    ports.write([
      ...changes,
      ...stored.map((number) => ({ kind: "deliveryTaken", stored: number }) as const),
    ]);
    if (fetchById.length > 0) ports.fetchById(fetchById);
    void ports.durable().then((committed) => {
      results.forEach((ingested, index) => {
        arrivals[index]?.settle(committed.ok ? { ok: true, ingested } : committed);
      });
    });
    for (const charger of affectedChargers) waiting.add(charger);
    if (arrivals.every(({ isPart = false }) => isPart)) return [];
    const reevaluations = [...waiting].map((charger) => ({ charger, reassert: false }));
    waiting.clear();
    return reevaluations;
  };

  return (arrivals) => {
    const deliveries = arrivals.map(({ delivery }) => delivery);
    // Events of which only a summary is in memory are read first.
    const begin = (): ResumableTask<Ingestion> | Promise<ResumableTask<Ingestion>> =>
      state.known.withWhole(
        () => neededWhole(state, deliveries),
        (read) => ingest(state, deliveries, read),
      );
    const atOnce = (steps: ResumableTask<Ingestion>) => finish(arrivals, runToEnd(steps));
    const inTurns = async (): Promise<readonly Reevaluation[]> => {
      // A commit that fails between two steps would roll back half of them.
      await ports.durable();
      return finish(arrivals, await runUrgently(await begin(), ports.monotonic));
    };
    if (deliveries.some((delivery) => isLarge(state, delivery))) return inTurns();
    const steps = begin();
    return steps instanceof Promise ? steps.then(atOnce) : atOnce(steps);
  };
}

/** Targets of a delivery that take more than one turn of the event loop. */
const MANY_TARGETS = 1_000;

/** True: too many targets for one turn, as delivered, or as known until now. */
function isLarge({ known }: ControlState, { notices }: Delivery): boolean {
  let count = 0;
  for (const notice of notices) {
    const id = eventOf(notice);
    const before = id === null ? undefined : known.get(id);
    if (notice.kind === "event") count += targetsIn(notice.event);
    if (before?.kind === "live") count += targetsIn(before.revision.event);
  }
  return count > MANY_TARGETS;
}

const targetsIn = ({ targets }: CoordinationEvent): number =>
  targets.reduce((sum, { values }) => sum + values.length, 0);

interface Ingestion {
  readonly changes: readonly Change[];
  /** Chargers with a change that holds, or held, now. */
  readonly affectedChargers: ReadonlySet<ChargerId>;
  /** Events to fetch by id: two webhooks contradict each other, or complete lists lack them. */
  readonly fetchById: readonly EventId[];
  /** Per delivery, in order. */
  readonly results: readonly IngestResult[];
}

/**
 * Intake and expansion of the deliveries of one tick, in order. Updates the state and returns the rows to
 * store. `read`: the events of `neededWhole`. Nothing else may change the state between two steps.
 */
export function* ingest(
  state: ControlState,
  deliveries: readonly Delivery[],
  read: WholeEvents,
): ResumableTask<Ingestion> {
  const changes: Change[] = [];
  const affectedChargers = new Set<ChargerId>();
  const fetchById: EventId[] = [];
  const results: IngestResult[] = [];
  for (const delivery of deliveries) {
    const notices = latestNotices(delivery.notices);
    const { ids, rejected: rejectedBefore } = delivery.unchanged ?? NONE_UNCHANGED;
    const repeats = delivery.notices.length - notices.length + ids.length - rejectedBefore;
    const counts = { accepted: 0, repeats };
    const contradicted = notices === delivery.notices ? NONE : contradictions(delivery.notices);
    const rejected: Rejected[] = [];
    for (const notice of notices) {
      if (notice.kind === "rejected") {
        rejected.push(notice);
        continue;
      }
      const result = yield* ingestedOrQuarantined(state, notice, delivery, read);
      if (result === null) continue;
      if ("reason" in result) {
        rejected.push(result);
        continue;
      }
      counts[COUNTED[result.outcome]] += 1;
      if (result.fetchById) fetchById.push(eventOf(notice));
      changes.push(...result.changes);
      if (
        notice.kind === "event" &&
        contradicted.has(notice.event.id) &&
        COUNTED[result.outcome] === "accepted"
      ) {
        const warning = `event ${notice.event.id} is listed twice in one ${delivery.source} with the same modification time: the later one wins`;
        changes.push(eventRow(delivery.at, notice.event.id, warning, { warning }));
      }
      for (const change of yield* reportingUnplugged(state, result.affectedVehicles, delivery.at))
        changes.push(change);
      yield* inSteps(result.affectedVehicles, (vehicle) => {
        for (const charger of state.occupancy.chargersOf(vehicle)) affectedChargers.add(charger);
      });
      yield;
    }
    if (rejected.length > 0) changes.push(...quarantined(state, rejected, delivery));
    if (delivery.source === "fetch") for (const id of idsIn(delivery)) confirmPresent(state, id, delivery);
    if (delivery.complete)
      for (const id of missingAfterList(state, new Set(idsIn(delivery)), delivery.at)) fetchById.push(id);
    results.push({ ...counts, rejected: rejected.length + rejectedBefore });
  }
  return { changes, affectedChargers, fetchById, results };
}

const NONE: ReadonlySet<EventId> = new Set();
const NONE_UNCHANGED = { ids: [], rejected: 0 } as const;

/** Events that are over, and whose summary does not settle a notice about them. */
function* neededWhole({ known }: ControlState, deliveries: readonly Delivery[]): Generator<EventSummary> {
  for (const { notices, at } of deliveries)
    for (const notice of notices) {
      const tracked = notice.kind === "rejected" ? undefined : known.get(eventOf(notice));
      if (notice.kind !== "rejected" && tracked?.kind === "over" && outcomeFor(tracked, notice, at) === null)
        yield tracked;
    }
}

/** A fetch by id found the event. Earlier absences and deletes prove nothing then. */
function confirmPresent(state: ControlState, id: EventId, { askedAt }: Delivery): void {
  state.absences.found(id);
  state.deleteClaims.settle(id, askedAt);
}

/** After a complete list: the events to fetch by id. `ids` null: the list was the same as the last one. */
export function missingAfterList(
  state: ControlState,
  ids: ReadonlySet<EventId> | null,
  at: Instant,
): readonly EventId[] {
  const { absences, deleteClaims, known } = state;
  if (ids !== null) state.schedule.listed(ids);
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
  readonly fetchById: boolean;
}

const NO_VEHICLES: ReadonlySet<VehicleId> = new Set();

/**
 * An event that triggers a bug must not end the process. It would return with every poll and end it again.
 * The earlier state of the event stays.
 */
function* ingestedOrQuarantined(
  state: ControlState,
  notice: EventNotice,
  delivery: Delivery,
  read: WholeEvents,
): ResumableTask<IngestedNotice | Rejected | null> {
  const id = eventOf(notice);
  const tracked = state.known.get(id);
  const settled = tracked?.kind === "over" ? outcomeFor(tracked, notice, delivery.at) : null;
  if (settled !== null)
    return { outcome: settled, changes: [], affectedVehicles: NO_VEHICLES, fetchById: false };
  const rejected = (reason: string) => setAside(id, notice, reason);
  const before = state.known.whole(id, read);
  if (before === null) return rejected("the stored event of this ID cannot be read");
  try {
    return yield* ingestNotice(state, notice, before, delivery);
  } catch (error) {
    if (before === undefined) state.schedule.forget(id, delivery.at);
    else state.schedule.put(before, delivery.at);
    return rejected(`a bug: this program cannot process it (${String(error)})`);
  }
}

function* ingestNotice(
  state: ControlState,
  notice: EventNotice,
  before: KnownEvent | undefined,
  delivery: Delivery,
): ResumableTask<IngestedNotice | Rejected | null> {
  const id = eventOf(notice);
  // A single 404 is no withdrawal. Two complete lists must also lack the event, or a delete must name it.
  const isClaimed = () => state.deleteClaims.isConfirmedBy(id, delivery.askedAt);
  if (notice.kind === "gone" && !state.absences.isMissing(id) && !isClaimed()) return null;
  const source = delivery.source === "webhook" ? "webhook" : "fetch";
  const result = intake(before, notice, { source, at: delivery.at, askedAt: delivery.askedAt });
  const changes: Change[] = [];
  const { known, outcome, warning } = result;
  let affectedVehicles = new Set<VehicleId>();
  if (known !== undefined && known !== before) {
    const room =
      outcome === "repeat" ? ENOUGH_ROOM : yield* roomFor(state.schedule, known, before, delivery.at);
    if (room.lack !== null) return setAside(id, notice, room.lack, "targets");
    changes.push({ kind: "event", known });
    if (outcome === "repeat") {
      state.schedule.repeated(known);
    } else {
      yield;
      affectedVehicles = yield* state.schedule.putting(known, delivery.at);
      yield;
      changes.push(eventAudit(state, known, before, outcome, delivery));
      // The others give way last, so an event whose row triggers a bug takes no room from them.
      changes.push(...(yield* giveWay(state, room, delivery, affectedVehicles)));
    }
  }
  if (warning !== null) changes.push(eventRow(delivery.at, id, warning, { warning }));
  if (outcome === "unproven") {
    const fetchById = state.deleteClaims.add(id, delivery.at);
    return {
      outcome,
      changes: fetchById ? [unprovenDelete(id, delivery)] : [],
      affectedVehicles,
      fetchById,
    };
  }
  if (outcome === "withdrawn") state.deleteClaims.settle(id, delivery.askedAt);
  // The event arrived again by webhook after this fetch was sent. Only a later fetch settles the delete.
  return {
    outcome,
    changes,
    affectedVehicles,
    fetchById: result.fetchById || (outcome === "stale" && isClaimed()),
  };
}

/** The events that a delivery holds, readable or not. */
export function* idsIn({ notices, unchanged }: Delivery): Generator<EventId> {
  yield* unchanged?.ids ?? [];
  for (const notice of notices) {
    if (notice.kind === "event") yield notice.event.id;
    else if (notice.kind === "rejected" && notice.id !== null) yield notice.id;
  }
}
