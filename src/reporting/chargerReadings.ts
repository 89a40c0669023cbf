import type { Measured, Reading, Stated } from "../domain/reading.ts";
import { type Instant, type Millis, millis, type VehicleId } from "../domain/units.ts";
import { firstWhere } from "../platform/collections.ts";
import { Allowance, carryForward, isLongAgo, isPowerFlowing, thin, TOGETHER } from "./thinning.ts";

const LONG_AGO = millis(-Infinity);

/** The last reading of one kind, and where it stands among the edges. */
interface Seen {
  readonly at: number;
  /** The next start or end of a dispatch of the vehicle on it, as of then. */
  readonly nextBoundary: number;
  /** The reading, where it was not stored. Null: it was. */
  readonly passedOver: Reading | null;
}

const UNSEEN: Seen = { at: Infinity, nextBoundary: Infinity, passedOver: null };

/** Readings stored for one charger, its last values while they still hold, and its allowance for more. */
export class ChargerReadings {
  /** Last stored reading of each kind. */
  readonly #newest = new Map<Reading["kind"], Reading>();
  /** Last reported value of each kind, while it still holds. */
  readonly #lastReported = new Map<Reading["kind"], Measured | Stated>();
  readonly #seen = new Map<Reading["kind"], Seen>();
  readonly #allowance = new Allowance();
  /** Monotonic clock, as the next two. Null: no message yet. */
  #lastMessageAt: Millis | null = null;
  /** Time of the last message while power flowed. */
  #flowedAt = LONG_AGO;
  /** Time of the last register reading. */
  #meteredAt = LONG_AGO;

  /** Marks the charger as present. Its last values hold, unless the silence was longer than `maxGap`. */
  markPresent(tick: Millis, maxGap: Millis): void {
    if (this.#lastMessageAt !== null && tick - this.#lastMessageAt > maxGap) this.#lastReported.clear();
    this.#lastMessageAt = tick;
  }

  /** The last values may have changed unseen. */
  forgetReported(): void {
    this.#lastReported.clear();
  }

  /** Remembers the values of a message as the last reported ones. `tick`: monotonic clock. */
  report(readings: readonly Reading[], tick: Millis, isLive: boolean): void {
    if (isPowerFlowing(this.#lastReported)) this.#flowedAt = tick;
    for (const reading of readings) {
      if (reading.kind === "setpoint" || reading.quality === "implausible") continue;
      // A late reading does not replace a newer one.
      const last = this.#lastReported.get(reading.kind);
      if (!isLive && last !== undefined && reading.at < last.at) continue;
      this.#lastReported.set(reading.kind, reading);
      if (reading.kind === "energy") this.#meteredAt = tick;
    }
  }

  /**
   * Chooses everything next to an edge, and elsewhere what is worth storing. It decides by kind: many chargers publish
   * each value separately. `nextBoundary`: the next start or end of a dispatch.
   */
  choose(
    readings: readonly Reading[],
    at: Instant,
    edges: readonly Instant[],
    nextBoundary: number,
  ): readonly Reading[] {
    const worth = new Set(thin(this.#newest, readings));
    return readings.flatMap((reading): readonly Reading[] => {
      const { kind } = reading;
      const last = this.#seen.get(kind) ?? UNSEEN;
      const edge = edges[firstWhere(edges, (next) => next > last.at)] ?? Infinity;
      const isAcross = last.at < at && Math.min(edge, last.nextBoundary) <= at;
      const isStored = isAcross || worth.has(reading);
      this.#seen.set(kind, { at, nextBoundary, passedOver: isStored ? null : reading });
      if (!isStored) return [];
      return isAcross && last.passedOver !== null ? [last.passedOver, reading] : [reading];
    });
  }

  /** Counts readings from `at` as stored. Answers none beyond the allowance. */
  keep(readings: readonly Reading[], now: Instant, at: Instant = now): readonly Reading[] {
    if (readings.length === 0 || !this.#allowance.takes(at, now)) return [];
    for (const reading of readings) this.#newest.set(reading.kind, reading);
    return readings;
  }

  /** Keeps the reading of a command, if it differs from the last one or that one is old. */
  keepCommand(reading: Reading, now: Instant): readonly Reading[] {
    return this.keep(thin(this.#newest, [reading]), now);
  }

  /** Keeps the reading of a command again, unless the last one is recent. */
  repeatCommand(reading: Reading, now: Instant, every: Millis): readonly Reading[] {
    const last = this.#newest.get("setpoint");
    return last !== undefined && !isLongAgo(last.receivedAt, now, every) ? [] : this.keep([reading], now);
  }

  /** Keeps the last values again, where they still hold for the vehicle that is on the charger now. */
  repeat(vehicle: VehicleId | null, now: Instant, every: Millis): readonly Reading[] {
    const hasFlowed = this.#meteredAt + TOGETHER < this.#flowedAt;
    const held = { lastReported: this.#lastReported, kept: this.#newest, vehicle, hasFlowed };
    return this.keep(carryForward(held, now, every), now);
  }
}
