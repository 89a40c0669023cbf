import { GUARD } from "../../src/departures/guard.ts";
import { endOf, type Hold, type ObservePeriod, periodEnd } from "../../src/domain/hold.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import type { Breach } from "./invariants.ts";
import type { Share, TrueEvent } from "./oracle.ts";
import { DAY, MINUTE } from "./plan.ts";

/** Something that has to happen happens within this, undisturbed, ms. */
const SETTLE = 30_000;
/** An unplanned end of an event releases within so much (5.2), ms. */
const TAIL = 10 * MINUTE;
/** A difference between two readings that rounding explains, Wh. */
const ROUNDING = 0.3;

/** One look at the site. */
export interface Sight {
  /** Monotonic, ms. */
  readonly elapsed: number;
  /** By the gateway's clock. */
  readonly now: number;
  /** True time. */
  readonly at: number;
  /** All that the gateway knows; null: it is down. */
  readonly holds: readonly Hold[] | null;
  /** Null: the mode is as configured. */
  readonly period: ObservePeriod | null;
  /** Last message of a charger that this run of the gateway received; null: none. */
  readonly reported: (charger: string) => Telemetry | null;
  /** Whoever is on a charger, or was since the last look; null: at some moment nobody. */
  readonly guest: (charger: string) => string | null;
  /** Chargers that name this vehicle. */
  readonly namedAt: (vehicle: string) => readonly string[];
  /** Something excuses anybody. */
  readonly isExcused: boolean;
  readonly events: readonly TrueEvent[];
  readonly shareOf: (event: TrueEvent, vehicle: string) => Share | null;
  readonly vehicles: readonly string[];
}

/** The guard of a day, and when each vehicle leaves, ms of the day. */
export interface PlannedGuard {
  readonly most: number;
  readonly leaves: ReadonlyMap<string, number>;
}

interface Watched {
  /** Charger whose messages may end the hold, at the first look; null: none. */
  readonly charger: string | null;
  /** Guest of the charger at the first look. */
  readonly guest: string | null;
  /** Register of the charger at the first look; null: not known, or the vehicle has moved since. */
  fromWh: number | null;
  hasChanged: boolean;
  isJudged: boolean;
}

/** DESIGN 5.8 for every hold, period and hold of the guard, from one look to the next. */
export class HoldRules {
  readonly #guard: PlannedGuard | null;
  readonly #midnight: number;
  readonly #watched = new Map<string, Watched>();
  /** Since when something is overdue, by hold and rule. */
  readonly #overdue = new Map<string, number>();
  readonly seen = { energy: 0, unplugged: 0, events: 0, guarded: 0, periods: new Set<string>() };

  constructor(midnight: number, guard: PlannedGuard | null) {
    this.#midnight = midnight;
    this.#guard = guard;
  }

  /** Null: all rules hold. */
  look(sight: Sight): Breach | null {
    const { holds, period, now, isExcused } = sight;
    if (period !== null) this.seen.periods.add(`${period.since} ${period.until}`);
    if (period !== null && !isExcused) {
      if (periodEnd(period) > now + DAY + 1_000)
        return breach("5.8 no period lasts longer than a day", period.by);
      if (periodEnd(period) < now - SETTLE) return breach("5.8 every period ends", period.by);
    }
    if (holds === null) {
      // The next run learns from the next messages.
      this.#overdue.clear();
      return null;
    }
    for (const hold of holds) {
      const wrong = hold.ended === null ? this.#open(hold, sight) : this.#ended(hold, sight);
      if (wrong !== null) return wrong;
    }
    return this.#guarded(holds);
  }

  #open(hold: Hold, sight: Sight): Breach | null {
    const charger = chargerOf(hold);
    const known = this.#watched.get(hold.id) ?? this.#found(hold, charger, sight);
    this.#watched.set(hold.id, known);
    if (charger !== null) {
      const guest = sight.guest(charger);
      const { vehicle } = vehicleOf(hold);
      const isNamedElsewhere = vehicle !== null && sight.namedAt(vehicle).some((id) => id !== charger);
      const isElsewhere = charger !== known.charger || isNamedElsewhere;
      if (guest === null || guest !== known.guest || isElsewhere) known.hasChanged = true;
      if (known.hasChanged && hold.scope.kind === "vehicle") known.fromWh = null;
    }
    if (this.#isOverdue(hold, "energy", this.#isDelivered(hold, known, sight), sight))
      return breach("5.8 a hold ends with its energy", describe(hold));
    if (this.#isOverdue(hold, "unplug", isUnplugged(hold, charger, sight), sight))
      return breach("5.8 a hold ends with the unplug", describe(hold));
    if (this.#isOverdue(hold, "events", areOver(hold, sight), sight))
      return breach("5.8 a hold ends with its events", describe(hold));
    return known.isJudged ? null : this.#opened(hold, known, sight);
  }

  #found(hold: Hold, charger: string | null, { guest, reported }: Sight): Watched {
    const telemetry = charger === null ? null : reported(charger);
    // A newer reading has energy that the hold has counted already.
    const isOlder = telemetry?.at !== undefined && telemetry.at <= hold.since;
    const fromWh = isOlder ? (telemetry.energyWh ?? null) : null;
    return {
      charger,
      guest: charger === null ? null : guest(charger),
      fromWh: hold.end.kind === "energy" ? fromWh : null,
      hasChanged: false,
      isJudged: false,
    };
  }

  #isDelivered(hold: Hold, { fromWh }: Watched, { reported }: Sight): boolean {
    if (hold.end.kind !== "energy" || fromWh === null) return false;
    const reading = reported(hold.end.meter.charger)?.energyWh;
    return reading !== undefined && reading - fromWh >= hold.end.wh + ROUNDING;
  }

  /** A hold of the guard is for a vehicle that leaves, and that an event costs something. */
  #opened(hold: Hold, known: Watched, sight: Sight): Breach | null {
    if (hold.by !== GUARD || this.#guard === null) return null;
    known.isJudged = true;
    const { vehicle } = vehicleOf(hold);
    const leaves = vehicle === null ? undefined : this.#guard.leaves.get(vehicle);
    if (vehicle === null || leaves === undefined || hold.level !== null || hold.cap === null)
      return breach("the guard exempts vehicles that leave", describe(hold));
    const isDeparture = (hold.cap - this.#midnight - leaves) % DAY === 0;
    if (!sight.isExcused && !isDeparture)
      return breach("the guard frees until the departure", describe(hold));
    const isCostly = sight.events.some((event) => {
      const share = sight.shareOf(event, vehicle);
      return share !== null && share.until > sight.at - TAIL && share.from < (hold.cap ?? 0);
    });
    return isCostly || sight.isExcused ? null : breach("the guard frees from an event", describe(hold));
  }

  #ended(hold: Hold, sight: Sight): Breach | null {
    const known = this.#watched.get(hold.id);
    if (known === undefined) return null;
    this.#watched.delete(hold.id);
    const { end, ended } = hold;
    if (hold.by === GUARD) this.seen.guarded += 1;
    if (ended?.why === "unplugged") {
      this.seen.unplugged += 1;
      const charger = chargerOf(hold);
      const isThere = charger !== null && sight.guest(charger) === known.guest && known.guest !== null;
      const { vehicle } = vehicleOf(hold);
      const isNamedElsewhere = vehicle !== null && sight.namedAt(vehicle).some((id) => id !== charger);
      // It came before the hold was opened, unheard: whoever names it ends the hold.
      const isAnothers =
        vehicle !== null &&
        isThere &&
        known.guest !== vehicle &&
        sight.namedAt(known.guest).includes(charger);
      if (isThere && !known.hasChanged && !isNamedElsewhere && !isAnothers)
        return breach("5.8 a hold stays while its vehicle is plugged in", describe(hold));
    }
    if (ended?.why === "its events are over") this.seen.events += 1;
    if (ended?.why === "the energy is delivered" && end.kind === "energy") {
      this.seen.energy += 1;
      const reading = sight.reported(end.meter.charger)?.energyWh;
      const isEarly =
        known.fromWh !== null && reading !== undefined && reading - known.fromWh < end.wh - ROUNDING;
      if (isEarly) return breach("5.8 a hold lasts until its energy is delivered", describe(hold));
    }
    return null;
  }

  /** At most so many are freed at once. */
  #guarded(holds: readonly Hold[]): Breach | null {
    const open = holds.filter(({ by, ended }) => by === GUARD && ended === null);
    const most = this.#guard?.most ?? 0;
    return open.length <= most
      ? null
      : breach("the guard frees at most so many", `${open.length} of ${most} are freed`);
  }

  #isOverdue(hold: Hold, rule: string, isDue: boolean, { elapsed, isExcused }: Sight): boolean {
    if (!isDue && this.#overdue.size === 0) return false;
    const key = `${hold.id} ${rule}`;
    if (!isDue) {
      this.#overdue.delete(key);
      return false;
    }
    const since = this.#overdue.get(key) ?? elapsed;
    this.#overdue.set(key, since);
    return elapsed - since > SETTLE && !isExcused;
  }
}

/** The vehicle that a hold is for; null: it is for a charger or the site. */
const vehicleOf = ({ scope }: Hold): { readonly vehicle: string | null } => ({
  vehicle: scope.kind === "vehicle" ? scope.vehicle : null,
});

/** The charger whose messages may end a hold; null: none. */
const chargerOf = ({ end }: Hold): string | null =>
  end.kind === "energy" ? end.meter.charger : end.kind === "unplugged" ? end.charger : null;

/** A hold until the unplug, or of the guard: its charger has reported, since the opening, that nobody is plugged in. */
function isUnplugged(hold: Hold, charger: string | null, { reported }: Sight): boolean {
  if (charger === null || (hold.end.kind !== "unplugged" && hold.by !== GUARD)) return false;
  const telemetry = reported(charger);
  return telemetry?.state === "unplugged" && (telemetry.at ?? 0) > hold.since;
}

/** A hold until events: none of them has a window left for any vehicle. */
function areOver({ end }: Hold, { at, events, shareOf, vehicles }: Sight): boolean {
  if (end.kind !== "events") return false;
  const named = new Set<string>(end.events);
  return !events.some(
    (event) =>
      named.has(event.plan.id) &&
      vehicles.some((vehicle) => (shareOf(event, vehicle)?.until ?? 0) > at - TAIL),
  );
}

const breach = (invariant: string, words: string): Breach => ({ invariant, words });

function describe(hold: Hold): string {
  const until = endOf(hold);
  const last = until === null ? "" : ` until ${new Date(until).toISOString()}`;
  return `${hold.id} by ${hold.by} since ${new Date(hold.since).toISOString()}${last}: ${JSON.stringify(hold.scope)} ${JSON.stringify(hold.end)}`;
}
