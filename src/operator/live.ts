import type { Changed, ChangeReader } from "../control/changeFeed.ts";
import type { DepartureOf } from "./departures.ts";
import type { ControlState } from "../control/state.ts";
import { type Alarm, alarmView } from "../domain/alarm.ts";
import type { Json } from "../domain/audit.ts";
import type { ChargerId, EventId, Instant } from "../domain/units.ts";
import { holdRow } from "./holds.ts";
import type { LiveObject, LiveSource } from "./http/stream.ts";
import { chargerView, eventView, vehicleView } from "./views.ts";

/** Ms. The status costs a walk over all chargers, so it is compared at most once a second. */
const STATUS_EVERY = 1000;
/** The status is sent at least so often, in ms: its `now` shows how old a page is. */
const STATUS_AT_LEAST = 15_000;
/** At most one part in so many of the time goes into the status of a large site. */
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
export function liveSource(options: LiveOptions): LiveSource {
  const { state, epoch, now, alarm: alarmOf, departureOf } = options;
  const status = changedStatus(options);
  /** Null: no client reads the stream. */
  let reader: ChangeReader | null = null;
  /** Read from the feed, and not built yet. By kind and id, in the order of the changes. */
  const pending = new Map<string, Changed>();
  /** Rows of holds as last sent: most changes of a charger leave the holds over it as they are. */
  const sentHolds = new Map<string, string>();
  /** Events that are over, read from the disk for the next round. */
  const ready: LiveObject[] = [];

  const event = (id: EventId): LiveObject | null => {
    const known = state.known.get(id);
    if (known === undefined) return { kind: "event", key: id, value: { id, state: "forgotten" } };
    if (known.kind !== "over") return { kind: "event", key: id, value: eventView(state, known, now()) };
    void state.known.readWhole(id).then(
      (whole) => {
        if (whole === undefined || whole === null || reader === null) return;
        ready.push({ kind: "event", key: id, value: eventView(state, whole, now()) });
      },
      // The store logs that it cannot be read.
      () => undefined,
    );
    return null;
  };

  const hold = (id: string): LiveObject | null => {
    const found = state.holds.get(id);
    if (found === undefined) {
      sentHolds.delete(id);
      return null;
    }
    const value = holdRow(state, found, now());
    const text = JSON.stringify(value);
    if (sentHolds.get(id) === text) return null;
    sentHolds.set(id, text);
    return { kind: "hold", key: id, value };
  };

  /** The row of a hold shows what each charger under it gets, and whether that is followed. */
  const addHoldsOver = (charger: ChargerId): void => {
    const occupant = state.occupancy.at(charger);
    const vehicle = occupant.kind === "vehicle" ? occupant.vehicle : null;
    for (const { id } of state.holds.over(charger, vehicle, now()))
      pending.set(`hold ${id}`, { kind: "hold", id });
  };

  const shown = (changed: Changed): LiveObject | null => {
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
        return event(changed.id);
      case "hold":
        return hold(changed.id);
      case "alarm": {
        const alarm = alarmOf(key);
        return alarm === undefined ? null : { kind, key, value: alarmView(alarm) };
      }
    }
  };

  return {
    epoch,
    collect: (isOn) => {
      reader?.[Symbol.dispose]();
      pending.clear();
      ready.length = 0;
      sentHolds.clear();
      reader = isOn ? state.feed.readAll(() => {}) : null;
    },
    take: (most) => {
      for (const changed of reader?.takeAll() ?? []) {
        pending.set(`${changed.kind} ${changed.id}`, changed);
        if (changed.kind === "charger") addHoldsOver(changed.id);
      }
      const objects = [...status.take(), ...ready.splice(0)];
      for (const [key, changed] of pending) {
        if (objects.length >= most) break;
        pending.delete(key);
        const object = shown(changed);
        if (object !== null) objects.push(object);
      }
      return objects;
    },
  };
}

/** The status whenever it differs in more than its time, and now and then. */
function changedStatus({ monotonic, status }: LiveOptions) {
  let dueAt = 0;
  let sentAt = -Infinity;
  let last = "";
  let built: Json = null;
  let isBuilding = false;
  const build = async (): Promise<void> => {
    const from = monotonic();
    isBuilding = true;
    try {
      built = await status();
    } catch {
      // The store logs why it cannot be read. The next second tries again.
    } finally {
      isBuilding = false;
      const until = monotonic();
      dueAt = until + Math.max(STATUS_EVERY, (until - from) * STATUS_SHARE);
    }
  };
  return {
    take: (): LiveObject[] => {
      const at = monotonic();
      if (at >= dueAt && !isBuilding) void build();
      if (built === null) return [];
      const value = built;
      built = null;
      const text = JSON.stringify(value, (key, member: unknown) => (key === "now" ? null : member));
      if (text === last && at < sentAt + STATUS_AT_LEAST) return [];
      [last, sentAt] = [text, at];
      return [{ kind: "status", key: "", value }];
    },
  };
}
