import type { Changed, ChangeReader } from "../control/changeFeed.ts";
import type { DepartureOf } from "./departures.ts";
import type { ControlState } from "../control/state.ts";
import { type Alarm, alarmView } from "../domain/alarm.ts";
import type { Json } from "../domain/audit.ts";
import { lastEnd, type TrackedEvent } from "../domain/event.ts";
import type { ChargerId, EventId, Instant } from "../domain/units.ts";
import { DueQueue } from "../platform/collections.ts";
import { holdRow } from "./holdView.ts";
import type { LiveObject, LiveSource } from "./http/stream.ts";
import { chargerView, eventView, vehicleView } from "./views.ts";

/** Ms. The status costs a walk over all chargers, so it is compared at most once a second. */
const STATUS_EVERY = 1000;
/** Longest interval between two status messages, ms: their `now` shows how old a page is. */
const STATUS_AT_LEAST = 15_000;
/** Share of the time for the status of a large site: at most one part in so many. */
const STATUS_SHARE = 50;

interface LiveOptions {
  readonly state: ControlState;
  readonly epoch: number;
  readonly now: () => Instant;
  /** Monotonic clock, ms. */
  readonly monotonic: () => number;
  readonly status: () => Json | Promise<Json>;
  readonly alarm: (key: string) => Alarm | undefined;
  readonly departureOf: DepartureOf;
}

/** The objects of a site that changed, from the change feed. */
export class LiveObjects implements LiveSource {
  readonly epoch: number;
  readonly #options: LiveOptions;
  readonly #status: ChangedStatus;
  /** Null: no client reads the stream. */
  #reader: ChangeReader | null = null;
  /** Read from the feed, and not built yet. By kind and id, in the order of the changes. */
  readonly #pending = new Map<string, Changed>();
  /** Rows of holds as last sent: most changes of a charger leave the holds over it as they are. */
  readonly #sentHolds = new Map<string, string>();
  /** Events that are over, read from the disk for the next round. */
  readonly #ready: LiveObject[] = [];
  /** Starts and ends of events: their state changes without a change in the feed. */
  readonly #turns = new DueQueue<EventId>();

  constructor(options: LiveOptions) {
    this.epoch = options.epoch;
    this.#options = options;
    this.#status = new ChangedStatus(options);
  }

  collect(isOn: boolean): void {
    this.#reader?.[Symbol.dispose]();
    this.#pending.clear();
    this.#ready.length = 0;
    this.#sentHolds.clear();
    this.#turns.clear();
    const { state } = this.#options;
    this.#reader = isOn ? state.feed.readAll(() => {}) : null;
    if (isOn) for (const known of state.known.values()) this.#awaitTurns(known);
  }

  take(most: number): LiveObject[] {
    const { state, now } = this.#options;
    for (const changed of this.#reader?.takeAll() ?? []) {
      this.#pending.set(`${changed.kind} ${changed.id}`, changed);
      if (changed.kind === "charger") this.#addHoldsOver(changed.id);
      if (changed.kind === "event") this.#awaitTurns(state.known.get(changed.id));
    }
    for (const id of this.#turns.due(now())) this.#pending.set(`event ${id}`, { kind: "event", id });
    const objects = [...this.#status.take(), ...this.#ready.splice(0)];
    for (const [key, changed] of this.#pending) {
      if (objects.length >= most) break;
      this.#pending.delete(key);
      const object = this.#shown(changed);
      if (object !== null) objects.push(object);
    }
    return objects;
  }

  #awaitTurns(known: TrackedEvent | undefined): void {
    if (known?.kind !== "live") return;
    const now = this.#options.now();
    const { start } = known.revision;
    for (const at of [start, lastEnd(known)]) if (at > now) this.#turns.push(at, known.id);
  }

  /** The row of a hold shows what each charger under it gets, and whether that is followed. */
  #addHoldsOver(charger: ChargerId): void {
    const { state, now } = this.#options;
    const occupant = state.occupancy.at(charger);
    const vehicle = occupant.kind === "vehicle" ? occupant.vehicle : null;
    for (const { id } of state.holds.over(charger, vehicle, now()))
      this.#pending.set(`hold ${id}`, { kind: "hold", id });
  }

  /** Null: there is nothing to send, or not yet. */
  #shown(changed: Changed): LiveObject | null {
    const { state, now, alarm: alarmOf, departureOf } = this.#options;
    const { kind, id: key } = changed;
    switch (kind) {
      case "charger": {
        const charger = state.chargers.get(changed.id);
        return charger === undefined ? null : { kind, key, value: chargerView(state, charger, now()) };
      }
      case "vehicle":
      case "departure": {
        const vehicle = state.vehicles.get(changed.id);
        return vehicle === undefined
          ? null
          : { kind: "vehicle", key, value: vehicleView(state, vehicle, now(), departureOf) };
      }
      case "event":
        return this.#event(changed.id);
      case "hold":
        return this.#hold(changed.id);
      case "alarm": {
        const alarm = alarmOf(key);
        return alarm === undefined ? null : { kind, key, value: alarmView(alarm) };
      }
    }
  }

  #event(id: EventId): LiveObject | null {
    const { state, now } = this.#options;
    const known = state.known.get(id);
    if (known === undefined) return { kind: "event", key: id, value: { id, state: "forgotten" } };
    if (known.kind !== "over") return { kind: "event", key: id, value: eventView(state, known, now()) };
    void state.known.readWhole(id).then(
      (whole) => {
        if (whole === undefined || whole === null || this.#reader === null) return;
        this.#ready.push({ kind: "event", key: id, value: eventView(state, whole, now()) });
      },
      // The store logs that it cannot be read.
      () => undefined,
    );
    return null;
  }

  #hold(id: string): LiveObject | null {
    const { state, now } = this.#options;
    const found = state.holds.get(id);
    if (found === undefined) {
      this.#sentHolds.delete(id);
      return null;
    }
    const value = holdRow(state, found, now());
    const text = JSON.stringify(value);
    if (this.#sentHolds.get(id) === text) return null;
    this.#sentHolds.set(id, text);
    return { kind: "hold", key: id, value };
  }
}

/** The status whenever it differs in more than its time, and now and then. Times are of the monotonic clock, ms. */
class ChangedStatus {
  readonly #options: Pick<LiveOptions, "monotonic" | "status">;
  /** Time of the next comparison. */
  #dueAt = 0;
  #isBuilding = false;
  /** Built, and not compared yet. */
  #built: Json = null;
  /** The status as last sent, without its time. */
  #last = "";
  #sentAt = -Infinity;

  constructor(options: Pick<LiveOptions, "monotonic" | "status">) {
    this.#options = options;
  }

  /** The status if it is to be sent now, else nothing. */
  take(): LiveObject[] {
    const at = this.#options.monotonic();
    if (at >= this.#dueAt && !this.#isBuilding) void this.#build();
    if (this.#built === null) return [];
    const value = this.#built;
    this.#built = null;
    const text = JSON.stringify(value, (key, member: unknown) => (key === "now" ? null : member));
    if (text === this.#last && at < this.#sentAt + STATUS_AT_LEAST) return [];
    [this.#last, this.#sentAt] = [text, at];
    return [{ kind: "status", key: "", value }];
  }

  async #build(): Promise<void> {
    const { monotonic, status } = this.#options;
    const from = monotonic();
    this.#isBuilding = true;
    try {
      this.#built = await status();
    } catch {
      // The store logs why it cannot be read. The next second tries again.
    } finally {
      this.#isBuilding = false;
      const until = monotonic();
      this.#dueAt = until + Math.max(STATUS_EVERY, (until - from) * STATUS_SHARE);
    }
  }
}
