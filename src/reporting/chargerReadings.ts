import type { Measured, Reading, Stated } from "../domain/reading.ts";
import { type Instant, type Millis, millis, type VehicleId } from "../domain/units.ts";
import { firstWhere } from "../platform/collections.ts";
import {
  Allowance,
  carryForward,
  isLongAgo,
  isPowerFlowing,
  type Kept,
  type LastReadings,
  thin,
  TOGETHER,
} from "./thinning.ts";

const LONG_AGO = millis(-Infinity);

/** Place of a message among the edges. */
interface Seen {
  readonly at: number;
  /** The next start or end of a dispatch of the vehicle, as of then. */
  readonly nextBoundary: number;
}

const UNSEEN: Seen = { at: Infinity, nextBoundary: Infinity };

/** The last readings of one kind. A record for all of it: thousands of chargers have seven kinds each. */
class LastOfKind {
  /** Last stored reading. Undefined: none. */
  stored: Reading | undefined;
  /** Last reported value, while it still holds. Null: none. */
  reported: Measured | Stated | null = null;
  /** The message of the last reading. */
  seen = UNSEEN;
  /** The last reading, where it was not stored. Null: it was. */
  passedOver: Reading | null = null;
}

/** Readings stored for one charger, its last values while they still hold, and its allowance for more. */
export class ChargerReadings {
  readonly #last = new Map<Reading["kind"], LastOfKind>();
  readonly #allowance = new Allowance();
  /** Monotonic clock, as the next two. Null: no message yet. */
  #lastMessageAt: Millis | null = null;
  /** Time of the last message while power flowed. */
  #flowedAt = LONG_AGO;
  /** Time of the last register reading. */
  #meteredAt = LONG_AGO;

  /** Marks the charger as present. Its last values hold, unless the silence was longer than `maxGap`. */
  markPresent(tick: Millis, maxGap: Millis): void {
    if (this.#lastMessageAt !== null && tick - this.#lastMessageAt > maxGap) this.forgetReported();
    this.#lastMessageAt = tick;
  }

  /** The last values may have changed unseen. */
  forgetReported(): void {
    for (const last of this.#last.values()) last.reported = null;
  }

  /** Remembers the values of a message as the last reported ones. `tick`: monotonic clock. */
  report(readings: readonly Reading[], tick: Millis, isLive: boolean): void {
    if (isPowerFlowing(this.#lastReported())) this.#flowedAt = tick;
    for (const reading of readings) {
      if (reading.kind === "setpoint" || reading.quality === "implausible") continue;
      // A late reading does not replace a newer one.
      const last = this.#lastOf(reading.kind);
      if (!isLive && last.reported !== null && reading.at < last.reported.at) continue;
      last.reported = reading;
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
    const seen = { at, nextBoundary };
    const worth = new Set(thin(this.#kept(), readings));
    return readings.flatMap((reading): readonly Reading[] => {
      const last = this.#lastOf(reading.kind);
      const { seen: before, passedOver } = last;
      const edge = edges[firstWhere(edges, (next) => next > before.at)] ?? Infinity;
      const isAcross = before.at < at && Math.min(edge, before.nextBoundary) <= at;
      const isStored = isAcross || worth.has(reading);
      last.seen = seen;
      last.passedOver = isStored ? null : reading;
      if (!isStored) return [];
      return isAcross && passedOver !== null ? [passedOver, reading] : [reading];
    });
  }

  /** Counts readings from `at` as stored. Answers none beyond the allowance. */
  keep(readings: readonly Reading[], now: Instant, at: Instant = now): readonly Reading[] {
    if (readings.length === 0 || !this.#allowance.takes(at, now)) return [];
    for (const reading of readings) this.#lastOf(reading.kind).stored = reading;
    return readings;
  }

  /** Keeps the reading of a command, if it differs from the last one or that one is old. */
  keepCommand(reading: Reading, now: Instant): readonly Reading[] {
    return this.keep(thin(this.#kept(), [reading]), now);
  }

  /** Keeps the reading of a command again, unless the last one is recent. */
  repeatCommand(reading: Reading, now: Instant, every: Millis): readonly Reading[] {
    const last = this.#last.get("setpoint")?.stored;
    return last !== undefined && !isLongAgo(last.receivedAt, now, every) ? [] : this.keep([reading], now);
  }

  /** Keeps the last values again, where they still hold for the vehicle that is on the charger now. */
  repeat(vehicle: VehicleId | null, now: Instant, every: Millis): readonly Reading[] {
    const hasFlowed = this.#meteredAt + TOGETHER < this.#flowedAt;
    const held = { lastReported: this.#lastReported(), kept: this.#kept(), vehicle, hasFlowed };
    return this.keep(carryForward(held, now, every), now);
  }

  #lastOf(kind: Reading["kind"]): LastOfKind {
    const last = this.#last.get(kind) ?? new LastOfKind();
    this.#last.set(kind, last);
    return last;
  }

  #kept(): Kept {
    return (kind) => this.#last.get(kind)?.stored;
  }

  /** Last reported values that still hold. */
  #lastReported(): LastReadings {
    return [...this.#last.values()].flatMap(({ reported }) => reported ?? []);
  }
}
