import type { AlarmFact } from "../domain/alarm.ts";
import { formatNeed } from "../domain/departure.ts";
import { between, hours, type Instant, minutes, type VehicleId } from "../domain/units.ts";
import { inSteps, type ResumableTask } from "../platform/cooperative.ts";
import type { WallClock } from "../platform/clock.ts";
import { formatMinutes } from "../platform/text.ts";
import type { Expected } from "./board.ts";
import { type Cause, NOT_PLUGGED_IN } from "./forecast.ts";

/** Time that a shortfall, or its end, must last before it counts. */
const LASTING = minutes(5);
/** Margin beyond the time that a vehicle needs, before it is missed at its charger. */
const MARGIN = minutes(30);
/** A shortfall that changed by less keeps its sentence. */
const NEWS = 0.1;

/** Known facts of the shortfall of one vehicle. */
interface Watched {
  /** Departure that it is about. */
  readonly at: Instant;
  /** Beginning of the present state, short or not. */
  readonly since: Instant;
  readonly isShort: boolean;
  readonly isRaised: boolean;
  /** Forecast that the sentence shows. Null: not raised. */
  readonly shown: Expected | null;
}

/** Finds the vehicles that will leave short, and those that are missed at a charger. */
export class ShortfallWatch {
  readonly #watched = new Map<VehicleId, Watched>();
  /** Vehicles whose alarm was open at the start. */
  readonly #before: Set<string>;

  constructor(openBefore: Iterable<string>) {
    this.#before = new Set(openBefore);
  }

  /** Applies a forecast. */
  note(expected: Expected, now: Instant): void {
    const { vehicle, departure, state } = expected;
    const known = this.#watched.get(vehicle.id);
    const isSame = known?.at === departure.at;
    // A fact that is missing for a while ends no shortfall.
    if (state === "unknown" && isSame) return;
    const isShort = state === "short";
    // The charger may not have reported since the start.
    const mayBeShort = isShort || state === "unknown";
    const wasRaised = known === undefined && this.#before.delete(vehicle.id) && mayBeShort;
    const before = isSame
      ? known
      : { at: departure.at, since: now, isShort, isRaised: wasRaised, shown: null };
    const since = before.isShort === isShort ? before.since : now;
    const lasts = Math.abs(between(since, now)) >= LASTING;
    const isRaised = before.isRaised ? isShort || !lasts : isShort && lasts;
    const shown = isRaised ? (isShort && isNews(before.shown, expected) ? expected : before.shown) : null;
    this.#watched.set(vehicle.id, { at: departure.at, since, isShort, isRaised, shown });
  }

  /** The vehicle has no departure any more. */
  forget(vehicle: VehicleId): void {
    this.#watched.delete(vehicle);
  }

  /** Adds the shortfalls that last, of departures that are ahead. */
  *facts(now: Instant, wallClock: WallClock, found: AlarmFact[]): ResumableTask<void> {
    yield* inSteps(this.#watched.values(), ({ at, since, isShort, shown }) => {
      if (shown === null || at <= now) return;
      const { vehicle, departure, cause } = shown;
      found.push({
        kind: "departureShort",
        subject: vehicle.id,
        severity: "critical",
        since: isShort ? since : null,
        message: `${vehicle.name} leaves ${wallClock(departure.at)} and needs ${formatNeed(departure.need)}: ${shown.because}`,
        action: REMEDIES[cause ?? "time"](vehicle.id),
      });
    });
  }
}

/** The sentence of an alarm changes only with the cause, or with a shortfall that is notably another. */
function isNews(shown: Expected | null, { cause, shortWh }: Expected): boolean {
  if (shown === null || shown.cause !== cause) return true;
  // Null counts as 0.
  const [before, after] = [Number(shown.shortWh), Number(shortWh)];
  return Math.abs(after - before) > NEWS * before;
}

const REMEDIES: Readonly<Record<Cause, (vehicle: string) => string>> = {
  event: (vehicle) =>
    `"Charge now" on its page frees it from the event, or setpointd hold ${vehicle} --exempt --until unplug --reason TEXT; with departureGuard in the configuration the gateway does so by itself`,
  hold: () => '"End override" on its page, or setpointd hold end ID; setpointd hold list shows its ID',
  charger: () => "see what the charger shows, or plug the vehicle in elsewhere",
  vehicle: () => "see what the vehicle shows: cable, its own limit, its own schedule",
  time: () => "plug it in at a stronger charger, or let another vehicle leave in its place",
  notPluggedIn: () => "plug it in",
};

/** An expected vehicle that is at no charger, while the time for what it needs runs out. Null: it is there, or not late. */
export function missedFact(
  expected: Expected,
  neededHours: number | null,
  wallClock: WallClock,
  now: Instant,
): AlarmFact | null {
  const { vehicle, departure, measured, state } = expected;
  const isAbsent = !measured.isPluggedIn && measured.missing.includes(NOT_PLUGGED_IN);
  if (state !== "unknown" || !isAbsent || departure.at <= now) return null;
  if (between(now, departure.at) >= hours(neededHours ?? 0) + MARGIN) return null;
  const needs =
    neededHours === null ? "" : `, and charging takes ${formatMinutes(Math.ceil(neededHours * 60))}`;
  return {
    kind: "notPluggedIn",
    subject: vehicle.id,
    severity: "warning",
    since: null,
    message: `${vehicle.name} is not plugged in: it leaves ${wallClock(departure.at)} with ${formatNeed(departure.need)}${needs}`,
    action: `plug it in; if it stays, "Set departure" on its page, then "Nothing: it stays", or setpointd departures skip ${vehicle.id} DATE`,
  };
}
