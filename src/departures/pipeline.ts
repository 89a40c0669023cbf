import type { Observable } from "rxjs";

import type { ChangeReader } from "../control/changeFeed.ts";
import type { RequestedChange } from "../control/stage.ts";
import type { ControlState } from "../control/state.ts";
import type { AlarmFact } from "../domain/alarm.ts";
import type { Change, Committed } from "../domain/changes.ts";
import { type SetDeparture, type VehicleDepartures } from "../domain/departure.ts";
import type { Hold } from "../domain/hold.ts";
import { type ChargerId, type Instant, seconds, type VehicleId } from "../domain/units.ts";
import { inSteps, type ResumableTask, runCooperatively } from "../platform/cooperative.ts";
import { every } from "../platform/scheduling.ts";
import { type DepartureBoard, type Expected, neededHours, shownKey } from "./board.ts";
import {
  admitted,
  declined,
  declinedKey,
  endGuardHold,
  guardHolds,
  type GuardPlan,
  guardPlan,
  openGuardHold,
  whyOver,
} from "./guard.ts";
import { owedBySite } from "./pacing.ts";
import { missedFact, type ShortfallWatch } from "./watch.ts";

/** Ports of the departures. */
export interface DeparturePorts {
  readonly now: () => Instant;
  /** Monotonic clock, ms. */
  readonly monotonic: () => number;
  /** Queues changes for a commit, also after a failed one. Does not wait for it. */
  readonly write: (changes: readonly Change[]) => void;
  /** Hands a change of the holds to control. Resolves after its commit. */
  readonly request: (change: RequestedChange) => Promise<Committed>;
}

/** Settings of the guard. Null: off. */
type GuardSettings = { readonly most: number } | null;

/** Configuration of the departures. */
export interface DepartureSettings {
  readonly departures: ReadonlyMap<VehicleId, VehicleDepartures>;
  readonly departureGuard: GuardSettings;
}

/** Ms. Changes of one vehicle within it count as one. */
const EVERY = 1_000;
/** Readings arrive each few seconds and change little: a forecast is not made sooner again for these alone. */
const READINGS_EVERY = seconds(10);
/** Vehicles that are skipped between two breaks. */
const SKIPPED_A_STEP = 256;
/** Longest age of a forecast, ms: time alone may change it. */
const SLOWEST = 60_000;

/** The departures of a site with their effects: forecasts follow what changes, and the alarms follow these. */
export class Departures {
  readonly board: DepartureBoard;
  readonly #state: ControlState;
  readonly #configured: ReadonlyMap<VehicleId, VehicleDepartures>;
  readonly #watch: ShortfallWatch;
  readonly #ports: DeparturePorts;
  /** Null: the site has no departure, and only plug-ins are followed. */
  #reader: ChangeReader | null = null;
  /** The reader has changes. */
  #isUnread = false;
  /** Vehicles to forecast. True: at once; false: for new readings only. */
  readonly #due = new Map<VehicleId, boolean>();
  /** State of each charger with a departure, as last followed. */
  readonly #states = new Map<ChargerId, string>();
  #slowAt = -Infinity;
  readonly #guard: GuardSettings;
  /** Vehicles that the guard may have to free, with its plan. */
  readonly #guardPlans = new Map<VehicleId, GuardPlan>();
  /** Vehicles whose hold by the guard is being opened or ended. */
  readonly #changing = new Set<VehicleId>();
  /** Moment from which the guard frees each vehicle, by the present plans. */
  #guarded: ReadonlyMap<VehicleId, Instant> = new Map();

  constructor(
    state: ControlState,
    { departures: configured, departureGuard: guard }: DepartureSettings,
    board: DepartureBoard,
    watch: ShortfallWatch,
    ports: DeparturePorts,
  ) {
    this.#guard = guard;
    this.#state = state;
    this.#configured = configured;
    this.board = board;
    this.#watch = watch;
    this.#ports = ports;
  }

  /** Follows the changes of the site. */
  follow(): Observable<unknown> {
    return every(
      EVERY,
      () => (this.#hasWork() ? runCooperatively(this.#round(), this.#ports.monotonic) : undefined),
      0,
    );
  }

  /** The last forecast of a vehicle, or one made now. Null: it has no departure. */
  expected(vehicle: VehicleId): Expected | null {
    return this.board.expected(vehicle) ?? (this.board.has(vehicle) ? this.#forecast(vehicle) : null);
  }

  /** All departures ahead, the next first. */
  list(): readonly Expected[] {
    const now = this.#ports.now();
    return [...this.board.all()]
      .filter(({ departure }) => departure.at > now)
      .toSorted(
        (one, other) => one.departure.at - other.departure.at || (one.vehicle.id < other.vehicle.id ? -1 : 1),
      );
  }

  /** Replaces the departures of a vehicle that were set. */
  replace(vehicle: VehicleId, departures: readonly SetDeparture[]): Expected | null {
    this.board.replace(vehicle, departures);
    return this.#forecast(vehicle);
  }

  /** Facts that need a person. */
  *facts(now: Instant): ResumableTask<readonly AlarmFact[]> {
    const { wallClock } = this.#state;
    const found: AlarmFact[] = [];
    yield* this.#watch.facts(now, wallClock, found);
    yield* inSteps(this.board.all(), (expected) => {
      const batteryWh = this.#configured.get(expected.vehicle.id)?.batteryWh ?? null;
      const missed = missedFact(expected, neededHours(expected, batteryWh), wallClock, now);
      if (missed !== null) found.push(missed);
    });
    return found;
  }

  /** Vehicles by the state of their departure, zeros included. */
  counts(): Readonly<Record<Expected["state"], number>> {
    const counts = { ready: 0, onTime: 0, short: 0, unknown: 0 };
    for (const { state } of this.board.all()) counts[state] += 1;
    return counts;
  }

  /** False: a round would change nothing. */
  #hasWork(): boolean {
    if (this.#reader === null) return !this.#state.feed.forPlugIns.isEmpty || !this.board.isEmpty;
    const isGuarding = this.#guardPlans.size + this.#guarded.size > 0 || guardHolds(this.#state).length > 0;
    const isSlow = this.#ports.monotonic() >= this.#slowAt + SLOWEST;
    return this.#isUnread || this.#due.size > 0 || isSlow || isGuarding;
  }

  *#round(): ResumableTask<void> {
    const { chargers, feed } = this.#state;
    const isFirst = this.#reader === null && !this.board.isEmpty;
    if (isFirst) this.#reader = feed.readAll(() => (this.#isUnread = true));
    // Both lists at once: a charger that reports during the steps below makes work for the next round.
    this.#isUnread = false;
    const changed = this.#reader?.takeAll() ?? [];
    const reported = feed.forPlugIns.takeAll();
    yield* inSteps(isFirst ? chargers.keys() : reported, (charger) => this.#noteCharger(charger));
    if (this.#reader === null) return;
    yield;
    yield* inSteps(changed, ({ kind, id }) => {
      if (kind === "vehicle" && this.board.has(id)) this.#due.set(id, true);
    });
    const tick = this.#ports.monotonic();
    if (tick >= this.#slowAt + SLOWEST) {
      this.#slowAt = tick;
      const forgotten = this.board.forget(this.#ports.now());
      if (forgotten.length > 0)
        this.#ports.write(forgotten.map((key) => ({ kind: "departureForgotten", key })));
      this.board.owed = yield* owedBySite(this.#state);
      yield* inSteps(this.board.vehicles(), (vehicle) => this.#due.set(vehicle, true));
    }
    let skipped = 0;
    for (const [vehicle, atOnce] of this.#due) {
      if (atOnce || !this.#isRecent(vehicle)) {
        this.#due.delete(vehicle);
        this.#forecast(vehicle);
        yield;
      } else if ((skipped += 1) % SKIPPED_A_STEP === 0) yield;
    }
    // A guard that was switched off opens no hold. Those of the last run may end.
    this.#guardVehicles(this.#guard?.most ?? 0);
  }

  /** Frees the vehicles that would otherwise leave short, each at the latest moment, at most so many at a time. */
  #guardVehicles(most: number): void {
    const holds = guardHolds(this.#state);
    if (this.#guardPlans.size === 0 && this.#guarded.size === 0 && holds.length === 0) return;
    const now = this.#ports.now();
    for (const hold of holds) this.#endIfOver(hold, most, now);
    const refused = declined(this.#state);
    const plans = [...this.#guardPlans.values()].filter(
      ({ vehicle, until }) => until > now && !refused.has(declinedKey(vehicle, until)),
    );
    const ends = holds.map((hold) => hold.cap ?? now);
    const found = admitted(plans, ends, most, now);
    const before = this.#guarded;
    this.#guarded = new Map(found.map(({ vehicle, from }) => [vehicle, from]));
    for (const plan of found) if (plan.from <= now) this.#openHold(plan, most);
    // The forecast of a vehicle depends on its place in the guard.
    for (const vehicle of new Set([...before.keys(), ...this.#guarded.keys()]))
      if (before.has(vehicle) !== this.#guarded.has(vehicle)) this.#due.set(vehicle, true);
  }

  #openHold(plan: GuardPlan, most: number): void {
    const { vehicle } = plan;
    const expected = this.board.expected(vehicle);
    if (expected === null) return;
    this.#change(vehicle, (state, now) => openGuardHold(state, expected, plan, most, now));
  }

  /** Ends a hold that nothing needs any more. A later departure may need the next one from the same moment on. */
  #endIfOver(hold: Hold, most: number, now: Instant): void {
    if (hold.scope.kind !== "vehicle") return;
    const { vehicle } = hold.scope;
    const why = whyOver(this.#state, hold, this.expected(vehicle));
    if (why === null) return;
    const without = this.board.assuming(vehicle, { ignored: hold.id }, now);
    const plan = without === null ? null : guardPlan(without, now);
    this.#change(vehicle, (state, at) =>
      endGuardHold(
        state,
        hold,
        why,
        without === null || plan === null || plan.from > at
          ? null
          : () => openGuardHold(state, without, plan, most, at),
        at,
      ),
    );
  }

  /** Hands a change of the guard's hold over a vehicle to control. One at a time. */
  #change(vehicle: VehicleId, change: RequestedChange): void {
    if (this.#changing.has(vehicle)) return;
    this.#changing.add(vehicle);
    void this.#ports.request(change).then(() => {
      this.#changing.delete(vehicle);
      this.#due.set(vehicle, true);
    });
  }

  #noteCharger(charger: ChargerId): void {
    const plugIn = this.board.note(charger);
    if (plugIn !== undefined)
      this.#ports.write([
        plugIn === null ? { kind: "plugInForgotten", charger } : { kind: "plugIn", charger, plugIn },
      ]);
    const occupant = this.#state.occupancy.at(charger);
    if (occupant.kind !== "vehicle" || !this.board.has(occupant.vehicle)) return;
    const { telemetry, online } = this.#state.presence.of(charger);
    const seen = `${telemetry?.state} ${online} ${this.#state.silence.has(charger)} ${occupant.vehicle}`;
    const isNew = this.#states.get(charger) !== seen;
    this.#states.set(charger, seen);
    if (isNew || !this.#due.has(occupant.vehicle)) this.#due.set(occupant.vehicle, isNew);
  }

  /** The forecast of a vehicle that the guard will free in time. */
  #withGuard(found: Expected, now: Instant): Expected {
    const { id } = found.vehicle;
    const plan = this.#guard === null ? null : guardPlan(found, now);
    if (plan === null) this.#guardPlans.delete(id);
    else this.#guardPlans.set(id, plan);
    if (plan === null || !this.#guarded.has(id) || !plan.isInTime) return found;
    const { wallClock } = this.#state;
    return {
      ...found,
      state: "onTime",
      readyAt: plan.until,
      shortWh: null,
      because: `the departure guard frees it from events from ${wallClock(plan.from)}, until it leaves ${wallClock(plan.until)}: ${found.because}`,
      guardFrom: plan.from,
    };
  }

  #isRecent(vehicle: VehicleId): boolean {
    const computedAt = this.board.expected(vehicle)?.computedAt;
    return computedAt !== undefined && Math.abs(this.#ports.now() - computedAt) < READINGS_EVERY;
  }

  #forecast(vehicle: VehicleId): Expected | null {
    const now = this.#ports.now();
    const before = this.board.expected(vehicle);
    const expected = this.board.forecast(vehicle, now, (found) => this.#withGuard(found, now));
    if (expected === null) {
      this.#guardPlans.delete(vehicle);
      this.#watch.forget(vehicle);
    } else this.#watch.note(expected, now);
    if (shownKey(before) !== shownKey(expected)) this.#state.feed.announce("departure", vehicle);
    return expected;
  }
}
