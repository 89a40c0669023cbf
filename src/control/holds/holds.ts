import type { Json } from "../../domain/audit.ts";
import {
  endOf,
  type Hold,
  LONGEST_HOLD,
  formatHoldLevel,
  formatScope,
  type HoldScope,
  endsByReport,
} from "../../domain/hold.ts";
import { MOST_OVERRULED } from "../../domain/reason.ts";
import { viewOf } from "../../domain/setpoint.ts";
import {
  after,
  type ChargerId,
  earlier,
  type EventId,
  type Instant,
  later,
  type VehicleId,
  iso,
} from "../../domain/units.ts";
import { DueQueue } from "../../platform/collections.ts";
import type { WallClock } from "../../platform/clock.ts";
import { listed } from "../../platform/text.ts";
import type { InForce } from "../schedule/vehiclePlan.ts";

/** An ended hold is kept for this long. */
const KEPT = LONGEST_HOLD;

/** A repeated request finds the hold until then. A clock that started in 1970 may have ended it before it began. */
export const keptUntil = (since: Instant, { at }: NonNullable<Hold["ended"]>): Instant =>
  after(later(at, since), KEPT);

const NONE: readonly Hold[] = [];

/** All open holds, by what they apply to, and those that ended within a day. */
export class Holds {
  readonly #byId = new Map<string, Hold>();
  readonly #ofCharger = new Map<ChargerId, readonly Hold[]>();
  readonly #ofVehicle = new Map<VehicleId, readonly Hold[]>();
  /** Holds that end by what a charger reports, by that charger. A vehicle's energy counts wherever it is. */
  readonly #watched = new Map<ChargerId, readonly Hold[]>();
  /** Holds whose end could not be stored, and when it is tried again. */
  readonly #retryAt = new Map<string, Instant>();
  /** The claims that each charger's hold sets aside, as last recorded. */
  readonly #effects = new Map<ChargerId, string>();
  /** All holds in order. Null: changed since. */
  #newest: readonly Hold[] | null = null;
  #ofSite: readonly Hold[] = NONE;
  #openCount = 0;
  #due = new DueQueue<string>();
  readonly #onChange: (id: string) => void;

  /** `onChange`: a hold was added, changed or removed. */
  constructor(onChange: (id: string) => void = () => {}) {
    this.#onChange = onChange;
  }

  get(id: string): Hold | undefined {
    return this.#byId.get(id);
  }

  /** The hold that a request with this key opened. */
  withKey(key: string): Hold | undefined {
    return [...this.#byId.values()].find((hold) => hold.key?.startsWith(`${key} `));
  }

  /** Open holds, the newest first. */
  open(): readonly Hold[] {
    if (this.#openCount === 0) return NONE;
    return this.all().filter(({ ended }) => ended === null);
  }

  /** Open and recently ended holds, the newest first. */
  all(): readonly Hold[] {
    return (this.#newest ??= [...this.#byId.values()].toSorted(newestFirst));
  }

  clear(): void {
    this.#byId.clear();
    this.#newest = null;
    this.#ofCharger.clear();
    this.#ofVehicle.clear();
    this.#watched.clear();
    this.#retryAt.clear();
    this.#ofSite = NONE;
    this.#openCount = 0;
    this.#due.clear();
  }

  /** Adds a hold, or replaces it by its new state. `retryAt`: an end that has passed is due then. Null: at once. */
  put(hold: Hold, retryAt: Instant | null = null): void {
    const dueAt = (end: Instant): Instant => (retryAt === null ? end : later(end, retryAt));
    this.delete(hold.id);
    this.#byId.set(hold.id, hold);
    this.#newest = null;
    if (retryAt !== null) this.#retryAt.set(hold.id, retryAt);
    this.#onChange(hold.id);
    if (hold.ended !== null) {
      this.#due.push(dueAt(keptUntil(hold.since, hold.ended)), hold.id);
      return;
    }
    this.#openCount += 1;
    this.#due.push(dueAt(endOf(hold)), hold.id);
    this.#index(hold, (holds) => [...holds, hold].toSorted(newestFirst));
    const watched = watchedBy(hold);
    if (watched !== null) replace(this.#watched, watched, (holds) => [...holds, hold]);
  }

  delete(id: string): void {
    const hold = this.#byId.get(id);
    if (hold === undefined) return;
    this.#byId.delete(id);
    this.#newest = null;
    this.#retryAt.delete(id);
    this.#onChange(id);
    if (hold.ended !== null) return;
    this.#openCount -= 1;
    this.#index(hold, (holds) => holds.filter((other) => other.id !== id));
    const watched = watchedBy(hold);
    if (watched !== null)
      replace(this.#watched, watched, (holds) => holds.filter((other) => other.id !== id));
  }

  /** Holds over a charger with this vehicle on it: narrower ones first, of these the newest first. */
  over(charger: ChargerId, vehicle: VehicleId | null, now: Instant): readonly Hold[] {
    if (this.#openCount === 0) return NONE;
    const narrow = [
      ...(this.#ofCharger.get(charger) ?? NONE),
      ...(vehicle === null ? NONE : (this.#ofVehicle.get(vehicle) ?? NONE)),
    ].toSorted(newestFirst);
    return [...narrow, ...this.#ofSite].filter((hold) => isOpen(hold, now));
  }

  /** The newest release of this charger that is open. Null: none. */
  releaseOf(charger: ChargerId): Hold | null {
    const own = this.#ofCharger.get(charger) ?? NONE;
    return own.find(({ level, end }) => level === null && end.kind === "events") ?? null;
  }

  /** Holds that this charger's reports may end. */
  watching(charger: ChargerId): readonly Hold[] {
    return this.#watched.get(charger) ?? NONE;
  }

  /** Notes what a hold sets aside on a charger. Null: nothing. True: that is new. */
  noteEffect(charger: ChargerId, effect: string | null): boolean {
    if (effect === null) {
      this.#effects.delete(charger);
      return false;
    }
    if (this.#effects.get(charger) === effect) return false;
    this.#effects.set(charger, effect);
    return true;
  }

  /** Events that open holds set aside. Their end ends the hold. */
  events(): readonly EventId[] {
    return this.open().flatMap(({ end }) => (end.kind === "events" ? end.events : []));
  }

  /** The holds whose end, or end of storage, may have come. */
  due(now: Instant): readonly Hold[] {
    return [...this.#due.due(now)].flatMap((id) => this.#byId.get(id) ?? []);
  }

  /**
   * The end of this hold could not be stored, and is not tried before then: chargers under one hold would wake each other
   * without a pause. Null: it may end.
   */
  retryAt(id: string): Instant | null {
    return this.#retryAt.get(id) ?? null;
  }

  /** The next moment at which time may end a hold. Undefined: none. */
  next(): Instant | undefined {
    return this.#due.next();
  }

  /** Chargers with a hold of their own. Vehicles and the site are looked up by the caller. */
  #index({ scope }: Hold, change: (holds: readonly Hold[]) => readonly Hold[]): void {
    switch (scope.kind) {
      case "charger":
        replace(this.#ofCharger, scope.charger, change);
        break;
      case "vehicle":
        replace(this.#ofVehicle, scope.vehicle, change);
        break;
      case "site":
        this.#ofSite = change(this.#ofSite);
        break;
    }
  }
}

function replace<Key>(
  map: Map<Key, readonly Hold[]>,
  key: Key,
  change: (holds: readonly Hold[]) => readonly Hold[],
): void {
  const holds = change(map.get(key) ?? NONE);
  if (holds.length === 0) map.delete(key);
  else map.set(key, holds);
}

const watchedBy = ({ end }: Hold): ChargerId | null =>
  end.kind === "unplugged" ? end.charger : end.kind === "energy" ? end.meter.charger : null;

/** True: its time is not over. An exemption from events goes on until these are over. */
function isOpen(hold: Hold, now: Instant): boolean {
  return hold.end.kind === "events" ? hold.cap === null || now < hold.cap : now < endOf(hold);
}

/** Newest first by the order of opening: the clock may have been set back between two. */
export function newestFirst(a: Hold, b: Hold): number {
  const [first, second] = [orderOf(a.id), orderOf(b.id)];
  return second.epoch - first.epoch || second.number - first.number || b.since - a.since;
}

function orderOf(id: string): { readonly epoch: number; readonly number: number } {
  const [, epoch = -1, number = 0] = /^hold-(\d+)-(\d+)$/.exec(id) ?? [];
  return { epoch: Number(epoch), number: Number(number) };
}

/**
 * The hold that applies: the first of `over`, except an exemption from events of which none is in force.
 * Null: none applies.
 */
export function applyingHold(over: readonly Hold[], inForce: InForce): Hold | null {
  return (
    over.find(({ level, end }) => {
      if (level !== null || end.kind !== "events") return true;
      const exempt = new Set(end.events);
      for (const { event } of inForce.ranked(1)) if (exempt.has(event.id)) return true;
      return false;
    }) ?? null
  );
}

/** After a start: a hold that was opened later than now, by a clock that was ahead, lasts no longer than a day from now. */
export function restoredHold(hold: Hold, now: Instant): Hold {
  const openedAt = earlier(hold.openedAt ?? hold.since, now);
  const opened = openedAt === hold.since || !endsByReport(hold) ? hold : { ...hold, openedAt };
  return hold.cap === null ? opened : { ...opened, cap: earlier(hold.cap, after(now, LONGEST_HOLD)) };
}

/** "until 05:40:00", "until unplugged, at most until 05:40:00 tomorrow". */
export function formatEnd(hold: Pick<Hold, "end" | "since" | "cap">, wallClock: WallClock): string {
  const { end, cap } = hold;
  const most = cap === null ? "" : `, at the latest ${wallClock(cap)}`;
  switch (end.kind) {
    case "at":
      return `until ${wallClock(endOf(hold))}`;
    case "unplugged":
      return `until unplugged${most}`;
    case "energy":
      return `until ${end.wh / 1000} kWh are delivered${most}`;
    case "events":
      return `until ${listed(end.events, MOST_OVERRULED)} ${end.events.length === 1 ? "is" : "are"} over${most}`;
  }
}

/** A hold as a reason and the API show it. A hold may set aside many events: it names as many as of the overruled. */
export function holdFacts(hold: Hold): { readonly [member: string]: Json } {
  const { id, scope, level, end, since, by, reason } = hold;
  const events = end.kind === "events" ? end.events : [];
  return {
    id,
    scope: scopeFacts(scope),
    kind: level === null ? "exempt" : "level",
    level: level === null ? null : viewOf(level),
    end: end.kind,
    since: iso(since),
    until: iso(endOf(hold)),
    by,
    reason,
    events: events.slice(0, MOST_OVERRULED),
    eventCount: events.length,
  };
}

/** The scope of a hold in an audit row. */
export function scopeFacts(scope: HoldScope): { readonly [member: string]: string | true } {
  switch (scope.kind) {
    case "vehicle":
      return { vehicle: scope.vehicle };
    case "charger":
      return { charger: scope.charger };
    case "site":
      return { site: true };
  }
}

/** "hold hold-7-1 of anna on bay-01: 16 A until 05:40:00". */
export const formatHold = (hold: Hold, wallClock: WallClock): string =>
  `hold ${hold.id} of ${hold.by} on ${formatScope(hold.scope)}: ${formatHoldLevel(hold)} ${formatEnd(hold, wallClock)}`;
