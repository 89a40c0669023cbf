import type { ChargerId, EventId, VehicleId } from "../domain/units.ts";

/** Kinds of things that change, and the name of one thing of each kind. */
interface ChangedThings {
  /** Command, presence, telemetry, occupant or silence of a charger may differ from what was published. */
  readonly charger: ChargerId;
  /** A vehicle moved, its charger got another command, or its planned setpoints changed. */
  readonly vehicle: VehicleId;
  /** The forecast of a vehicle's departure is another. */
  readonly departure: VehicleId;
  /** An event was added, changed, condensed or forgotten. */
  readonly event: EventId;
  /** A hold was opened, changed, ended or forgotten. By its id. */
  readonly hold: string;
  /** An alarm opened, changed or cleared. By its key. */
  readonly alarm: string;
}

type ChangeKind = keyof ChangedThings;

/** A thing that changed. It carries no state: the reader asks for that when it handles the change. */
export type Changed = {
  [Kind in ChangeKind]: { readonly kind: Kind; readonly id: ChangedThings[Kind] };
}[ChangeKind];

/** The changes of one kind that one reader has not handled yet. Several changes of one thing count as one. */
export class UnreadChanges<Id> {
  readonly #ids = new Set<Id>();
  readonly #onFirst: () => void;

  /** `onFirst`: called for a change while no other is unread. It must not read at once: a commit may be under way. */
  constructor(onFirst: () => void = () => {}) {
    this.#onFirst = onFirst;
  }

  /** In the order in which they changed first. */
  [Symbol.iterator](): SetIterator<Id> {
    return this.#ids.values();
  }

  add(id: Id): void {
    this.#ids.add(id);
    if (this.#ids.size === 1) this.#onFirst();
  }

  get isEmpty(): boolean {
    return this.#ids.size === 0;
  }

  remove(id: Id): void {
    this.#ids.delete(id);
  }

  /** Removes and returns all of them. */
  takeAll(): readonly Id[] {
    if (this.#ids.size === 0) return [];
    const ids = [...this.#ids];
    this.#ids.clear();
    return ids;
  }
}

/** The unread changes of every kind, for a reader that shows all of them. Dispose of it when nothing reads it any more. */
export interface ChangeReader extends Disposable {
  /** Removes and returns all of them, kind by kind. */
  readonly takeAll: () => readonly Changed[];
}

/**
 * The one place that learns what changed. Each reader has its own lists and reads in its own time: what is unread
 * grows no larger than the site. To cover a further kind, add it to `ChangedThings`, `#readers` and `readAll`, and
 * call `announce` where it changes.
 */
export class ChangeFeed {
  /** For the MQTT state of chargers (control/send/pipeline.ts). */
  readonly forPublishedState = new UnreadChanges<ChargerId>();
  /** For the energy since each plug-in (departures/pipeline.ts), also where no vehicle has a departure yet. */
  readonly forPlugIns = new UnreadChanges<ChargerId>();
  /** For report obligations (reporting/composer.ts). */
  readonly forReports = new UnreadChanges<EventId>();
  readonly #readers: { readonly [Kind in ChangeKind]: Set<UnreadChanges<ChangedThings[Kind]>> } = {
    charger: new Set([this.forPublishedState, this.forPlugIns]),
    vehicle: new Set(),
    departure: new Set(),
    event: new Set([this.forReports]),
    hold: new Set(),
    alarm: new Set(),
  };

  #count = 0;

  /** Changes announced so far, those of alarms excepted. The same number later: the site is as it was. */
  get count(): number {
    return this.#count;
  }

  announce<Kind extends ChangeKind>(kind: Kind, id: ChangedThings[Kind]): void {
    if (kind !== "alarm") this.#count += 1;
    for (const reader of this.#readers[kind]) reader.add(id);
  }

  /** A charger sent readings, too soon after the last ones for its published state. */
  announceReadings(charger: ChargerId): void {
    this.#count += 1;
    for (const reader of this.#readers.charger) if (reader !== this.forPublishedState) reader.add(charger);
  }

  /** False: no reader wants this kind, so that announcing thousands can be left out. */
  isRead(kind: ChangeKind): boolean {
    return this.#readers[kind].size > 0;
  }

  /**
   * Opens a reader of every kind: a live page, for example. `onFirst`: changes wait again. Read them in a later tick,
   * when what announced them is committed.
   */
  readAll(onFirst: () => void): ChangeReader {
    let isWoken = false;
    const wake = (): void => {
      if (!isWoken) onFirst();
      isWoken = true;
    };
    const chargers = new UnreadChanges<ChargerId>(wake);
    const vehicles = new UnreadChanges<VehicleId>(wake);
    const departures = new UnreadChanges<VehicleId>(wake);
    const events = new UnreadChanges<EventId>(wake);
    const holds = new UnreadChanges<string>(wake);
    const alarms = new UnreadChanges<string>(wake);
    this.#readers.charger.add(chargers);
    this.#readers.vehicle.add(vehicles);
    this.#readers.departure.add(departures);
    this.#readers.event.add(events);
    this.#readers.hold.add(holds);
    this.#readers.alarm.add(alarms);
    return {
      takeAll: () => {
        isWoken = false;
        return [
          ...chargers.takeAll().map((id) => ({ kind: "charger", id }) as const),
          ...vehicles.takeAll().map((id) => ({ kind: "vehicle", id }) as const),
          ...departures.takeAll().map((id) => ({ kind: "departure", id }) as const),
          ...events.takeAll().map((id) => ({ kind: "event", id }) as const),
          ...holds.takeAll().map((id) => ({ kind: "hold", id }) as const),
          ...alarms.takeAll().map((id) => ({ kind: "alarm", id }) as const),
        ];
      },
      [Symbol.dispose]: () => {
        this.#readers.charger.delete(chargers);
        this.#readers.vehicle.delete(vehicles);
        this.#readers.departure.delete(departures);
        this.#readers.event.delete(events);
        this.#readers.hold.delete(holds);
        this.#readers.alarm.delete(alarms);
      },
    };
  }
}

/** A map that reports each key that is set or deleted. */
export class AnnouncingMap<Key, Value> extends Map<Key, Value> {
  readonly #onChange: (key: Key) => void;

  constructor(onChange: (key: Key) => void) {
    super();
    this.#onChange = onChange;
  }

  override set(key: Key, value: Value): this {
    this.#onChange(key);
    return super.set(key, value);
  }

  override delete(key: Key): boolean {
    this.#onChange(key);
    return super.delete(key);
  }

  override clear(): void {
    for (const key of this.keys()) this.#onChange(key);
    super.clear();
  }
}
