import {
  type KnownEvent,
  knownAt,
  overSince,
  clampToNow,
  type EventArchive,
  type EventSummary,
  type TrackedEvent,
} from "../../domain/event.ts";
import { type EventId, type VehicleId, type Instant, earlier, later } from "../../domain/units.ts";
import {
  inSteps,
  type ResumableTask,
  type RoomPart,
  runToEnd,
  SharedRoom,
} from "../../platform/cooperative.ts";
import type { ChangeFeed } from "../changeFeed.ts";
import { KnownEvents, NONE_READ, type ReadonlyKnownEvents, type WholeEvents } from "../ingest/knownEvents.ts";
import { Agenda, Expansions, Revised, WakeTimes } from "./agenda.ts";
import { type ExpandContext, type Dispatch, expandAfter } from "./expand.ts";
import { carryMarks, hasMark, rankOf, setMark } from "./vehiclePlan.ts";

/** Room after a start: accepted events stay, also beside remainders of edits, which last ten minutes at most. */
const ROOM_AT_START = 1.5;

/** True: no charger can have followed the event yet, nor follows the rest of an earlier revision. */
export const liesAhead = ({ revision, endings }: KnownEvent & { kind: "live" }, now: Instant): boolean =>
  endings.length === 0 && revision.start > now;

/** Every known event, the dispatches that come of it, and which of them the record already covers. */
export class Schedule {
  readonly context: ExpandContext;
  readonly #known: KnownEvents;
  readonly #feed: ChangeFeed;
  /** Vehicles reported to be at no charger, where that is not committed yet. Value: the evaluation whose commit has it. */
  readonly #unreported = new Map<VehicleId, number>();
  /** When each event that is whole in memory may be over. After an edit that puts it off it is checked once before. */
  readonly #over = new WakeTimes<EventId>();
  readonly #revised = new Revised();
  readonly #expansions = new Expansions();
  readonly room: RoomPart;
  /** Events that were set aside, as there was no room for them. */
  readonly setAside = new Set<EventId>();
  #agenda: Agenda;
  #evaluatedAt: Instant | null = null;
  #storedEvaluatedAt: Instant | null = null;

  constructor(
    context: ExpandContext,
    archive: EventArchive,
    feed: ChangeFeed,
    room: RoomPart = new SharedRoom(Infinity).part(),
  ) {
    this.context = context;
    this.room = room;
    this.#feed = feed;
    this.#known = new KnownEvents(archive, (id) => feed.announce("event", id));
    this.#agenda = new Agenda(context.settings);
  }

  get known(): ReadonlyKnownEvents {
    return this.#known;
  }

  get agenda(): Agenda {
    return this.#agenda;
  }

  /** Last evaluation of what time alone changes. Null: none yet. */
  get evaluatedAt(): Instant | null {
    return this.#evaluatedAt;
  }

  /** `evaluatedAt` as the last run stored it. Null: it stored none. */
  get storedEvaluatedAt(): Instant | null {
    return this.#storedEvaluatedAt;
  }

  evaluatedTo(now: Instant): void {
    this.#evaluatedAt = now;
    this.room.take(this.#agenda.size);
  }

  /** A complete list has these events: one that was set aside and is not listed any more is not waited for. */
  listed(ids: ReadonlySet<EventId>): void {
    for (const id of this.setAside) if (!ids.has(id)) this.setAside.delete(id);
  }

  /** True: an event of the last list may be accepted later, so the list has to be read again. */
  get isFull(): boolean {
    return this.setAside.size > 0;
  }

  /**
   * Starts over from the stored events. After an error the agenda is as it was. Returns events without room in memory.
   * Between two steps it is half a plan: nothing else may read it.
   */
  *restoring(
    events: Iterable<TrackedEvent>,
    storedAt: Instant | null,
    now: Instant,
  ): ResumableTask<readonly KnownEvent[]> {
    const before = this.#agenda;
    this.#storedEvaluatedAt = storedAt;
    this.#known.clear();
    for (const vehicle of this.unreported) before.unmark("unplugged", vehicle);
    this.#agenda = new Agenda(this.context.settings);
    // The clock may have been set back since: windows that lie ahead again were not evaluated.
    const evaluatedAt = earlier(this.#evaluatedAt ?? storedAt ?? now, now);
    this.#evaluatedAt = evaluatedAt;
    const through = later(evaluatedAt, storedAt ?? evaluatedAt);
    /**
     * Events whose commit came after the last evaluation: the process may have ended between the two, or nothing was to
     * start. Value: when the windows begin that were planned at that evaluation.
     */
    const begunBefore = new Map<EventId, ReadonlyMap<VehicleId, Instant>>();
    const excess: KnownEvent[] = [];
    try {
      const open: KnownEvent[] = [];
      for (const known of events) {
        this.#known.set(known.id, known);
        if (known.kind !== "over") open.push(known);
      }
      // Events that may hold now keep the room where it is short. The better priority is next.
      const rank = (known: KnownEvent): number =>
        known.kind === "live" ? rankOf(known.revision, this.context.settings) : -Infinity;
      const waits = (known: KnownEvent): number => Number(known.kind === "live" && liesAhead(known, now));
      for (const known of open.toSorted((a, b) => waits(a) - waits(b) || rank(a) - rank(b))) {
        const planned = clampToNow(known, now);
        if (planned.receivedAt > through)
          begunBefore.set(known.id, yield* this.#beginningsAt(planned, through));
        yield* this.putting(planned, evaluatedAt);
        if (this.room.free() >= (1 - ROOM_AT_START) * this.room.most) continue;
        this.forget(known.id, evaluatedAt);
        excess.push(known);
      }
    } catch (error) {
      // Half of a plan is nothing to carry over from.
      this.#agenda = before;
      this.room.take(before.size);
      throw error;
    }
    yield* this.#carryingOver(before, ({ event, vehicle, from }) => {
      const begun = begunBefore.get(event.id);
      return from <= through && (begun === undefined || begun.get(vehicle) === from);
    });
    return excess;
  }

  /** Begin of each vehicle's window under the revision of an event that was known at a moment. */
  *#beginningsAt(known: KnownEvent, moment: Instant): ResumableTask<ReadonlyMap<VehicleId, Instant>> {
    const revision = knownAt(known, moment);
    if (known.kind !== "live" || revision === null) return new Map();
    const { dispatches } = yield* expandAfter(null, { ...known, revision, endings: [] }, this.context);
    return new Map(dispatches.map(({ vehicle, from }) => [vehicle, from]));
  }

  /** Returns the vehicles for which something holds, or held, now. */
  put(known: KnownEvent, now: Instant): ReadonlySet<VehicleId> {
    return runToEnd(this.putting(known, now));
  }

  /** As `put`. Between two steps each vehicle has either the old dispatches of the event or the new ones. */
  *putting(known: KnownEvent, now: Instant): ResumableTask<Set<VehicleId>> {
    this.#known.set(known.id, known);
    const dispatches = yield* this.#expansions.expanding(known, this.context);
    yield* this.#revised.marking(known.id, this.#agenda.ofEvent(known.id), dispatches, now);
    this.#over.wake(known.id, overSince(known));
    return yield* this.#replacing(known.id, dispatches, now);
  }

  /** Open dispatches of a revision that is not put yet. Remainders of earlier ones, which are short, do not count. */
  *counting(known: KnownEvent, now: Instant): ResumableTask<number> {
    const { live } = yield* this.#expansions.after(known, this.context);
    return live.values().reduce((count, { until }) => count + Number(until > now), 0);
  }

  /** An event that was received again: its dispatches stay. */
  repeated(known: KnownEvent): void {
    this.#known.set(known.id, known);
    this.#over.wake(known.id, overSince(known));
  }

  /** The event is over and not asked for any more. Returns the vehicles for which something held. */
  forget(id: EventId, now: Instant): ReadonlySet<VehicleId> {
    this.#known.delete(id);
    this.#revised.forget(id);
    return runToEnd(this.#replacing(id, [], now));
  }

  *#replacing(id: EventId, dispatches: readonly Dispatch[], now: Instant): ResumableTask<Set<VehicleId>> {
    // An event may have 20,000 vehicles.
    if (this.#feed.isRead("vehicle"))
      yield* inSteps([...this.#agenda.ofEvent(id), ...dispatches], ({ vehicle }) =>
        this.#feed.announce("vehicle", vehicle),
      );
    const affected = yield* this.#agenda.replace(id, dispatches, now);
    this.room.take(this.#agenda.size);
    return affected;
  }

  /** Events that may be over by now. */
  dueForSummary(now: Instant): ReadonlySet<EventId> {
    return this.#over.woken(now);
  }

  condense(summary: EventSummary): void {
    this.#known.set(summary.id, summary);
  }

  condenseLater(id: EventId, at: Instant): void {
    this.#over.wake(id, at);
  }

  /** Plans everything anew after the clock was set back: an ended window may be open again. Returns what changed.
   * `read`: the events that are open again. */
  replan(now: Instant, read: WholeEvents = NONE_READ): readonly KnownEvent[] {
    const [before, evaluatedAt] = [this.#agenda, this.#evaluatedAt ?? now];
    this.#agenda = new Agenda(this.context.settings);
    this.#evaluatedAt = now;
    const changed: KnownEvent[] = [];
    for (const tracked of this.#known.values()) {
      const known = this.#known.openAt(tracked, now, read);
      if (known === null) continue;
      const planned = clampToNow(known, now);
      this.put(planned, now);
      if (planned !== known) changed.push(planned);
    }
    runToEnd(this.#carryingOver(before, ({ from }) => from <= evaluatedAt));
    return changed;
  }

  markEvaluated(dispatch: Dispatch): void {
    setMark(dispatch, "evaluated");
  }

  /** True: an evaluation ranked it, won or lost, so it is not missed. */
  isEvaluated(dispatch: Dispatch): boolean {
    return hasMark(dispatch, "evaluated");
  }

  /** The vehicle is at no charger. False: that was reported before. `evaluation`: the next one, whose commit has the report. */
  markUnplugged(dispatch: Dispatch, evaluation: number): boolean {
    if (this.isUnplugged(dispatch)) return false;
    setMark(dispatch, "unplugged");
    this.#unreported.set(dispatch.vehicle, evaluation);
    return true;
  }

  isUnplugged(dispatch: Dispatch): boolean {
    return hasMark(dispatch, "unplugged");
  }

  /** Vehicles at no charger whose report is not committed yet. */
  get unreported(): Iterable<VehicleId> {
    return this.#unreported.keys();
  }

  /** The reports up to the commit of this evaluation are stored. Later ones may still be dropped. */
  committed(evaluation: number): void {
    for (const [vehicle, awaited] of this.#unreported)
      if (awaited <= evaluation) this.#unreported.delete(vehicle);
  }

  /** After a failed commit: what was reported with it is reported again. */
  retractUnreported(): void {
    for (const vehicle of this.unreported) this.#agenda.unmark("unplugged", vehicle);
  }

  /** After a failed commit: the stored state of an event. Returns the vehicles for which something holds, or held, now. */
  rollBack(id: EventId, stored: KnownEvent | undefined, mayStart: boolean, now: Instant) {
    const evaluatedAt = this.#evaluatedAt ?? now;
    const before = this.#agenda.ofEvent(id);
    if (stored !== undefined) this.setAside.delete(id);
    const affected = stored === undefined ? this.forget(id, evaluatedAt) : this.put(stored, evaluatedAt);
    carryMarks(before, this.#agenda.ofEvent(id), ({ from }) => mayStart && from <= evaluatedAt);
    return affected;
  }

  #carryingOver(before: Agenda, isCovered: Plans["isCovered"]): ResumableTask<void> {
    return carryingOver({ before, after: this.#agenda, vehicles: this.context.vehicles.keys(), isCovered });
  }
}

interface Plans {
  readonly before: Agenda;
  readonly after: Agenda;
  readonly vehicles: Iterable<VehicleId>;
  /** True: a dispatch that was not planned before was evaluated, or recorded as missed. */
  readonly isCovered: (dispatch: Dispatch) => boolean;
}

/**
 * Copies marks after everything was planned again: after a restart, a failed commit, or a clock set back.
 * A window that was planned before keeps its marks.
 * A new window that the last evaluation covered counts as evaluated, so it is not recorded as missed twice.
 */
export const carryingOver = ({ before, after, vehicles, isCovered }: Plans): ResumableTask<void> =>
  inSteps(vehicles, (vehicle) => carryMarks(before.of(vehicle), after.of(vehicle), isCovered));
