import type { Charger } from "../../domain/charger.ts";
import type { CommandRecord } from "../../domain/command.ts";
import type { Desired } from "../../domain/setpoint.ts";
import {
  after,
  type ChargerId,
  earlier,
  type Instant,
  later,
  type Millis,
  millis,
  minutes,
} from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import { RunningSum } from "../../platform/collections.ts";
import { asSwitched, wattsPerAmpere } from "./limits.ts";
import type { RampSettings } from "../ports.ts";

/**
 * Increase of a charger's level, in the unit of the ramp. 0: none. A released charger may draw its maximum.
 */
export function riseOf(
  from: Desired,
  to: Desired,
  charger: Charger,
  vehicle: Vehicle | null,
  unit: RampSettings["unit"],
): number {
  const ratio = wattsPerAmpere(charger, vehicle, null);
  const level = (desired: Desired): number => {
    switch (desired.kind) {
      case "current":
        return desired.amperes * wattsPerAmpere(asSwitched(charger, desired), vehicle, null);
      case "power":
        return desired.watts;
      case "pause":
        return 0;
      case "release":
        return Math.min((charger.maxCurrent ?? Infinity) * ratio, charger.maxPower ?? Infinity);
    }
  };
  const watts = Math.max(0, level(to) - level(from));
  return unit === "W" ? watts : watts / ratio;
}

/** Size of an increase that waits, and its place in the sums. */
interface WaitingRise {
  readonly rise: number;
  readonly place: number;
}

/**
 * Allows increases one after another, the longest waiting first.
 * Each takes its size divided by the rate, and the next one follows.
 * Progress follows from the earlier commands. Only the waiting order is kept in memory.
 */
export class Ramp {
  readonly #settings: RampSettings;
  /** Longest waiting first. */
  readonly #waiting = new Map<ChargerId, WaitingRise>();
  /** Duration of each increase, ms. A charger that left has 0. */
  #spans = new RunningSum();
  #freeAt: Instant | null = null;

  constructor(settings: RampSettings) {
    this.#settings = settings;
  }

  get unit(): RampSettings["unit"] {
    return this.#settings.unit;
  }

  /**
   * Time slot of a charger's increase: now, or after those before it. A charger that does not wait comes
   * last.
   */
  nextSlot(charger: ChargerId, now: Instant): Instant {
    const place = this.#waiting.get(charger)?.place ?? this.#spans.length;
    return after(later(this.#freeAt ?? now, now), millis(this.#spans.before(place)));
  }

  /** Adds a charger to the queue. One that waits already keeps its place. */
  wait(charger: ChargerId, rise: number): void {
    const known = this.#waiting.get(charger);
    if (known === undefined) {
      this.#waiting.set(charger, { rise, place: this.#spans.append(this.#spanOf(rise)) });
    } else if (known.rise !== rise) {
      this.#spans.add(known.place, this.#spanOf(rise) - this.#spanOf(known.rise));
      this.#waiting.set(charger, { rise, place: known.place });
    }
  }

  /** Removes a charger that rises or no longer waits. Returns the first in the queue. */
  leave(charger: ChargerId): ChargerId | null {
    const known = this.#waiting.get(charger);
    if (known === undefined) return null;
    this.#waiting.delete(charger);
    this.#spans.add(known.place, 0 - this.#spanOf(known.rise));
    if (this.#spans.length > 2 * this.#waiting.size + 64) this.#closeUp();
    return this.#waiting.keys().next().value ?? null;
  }

  /** Records an increase that was sent. */
  passed(rise: number, at: Instant): void {
    this.#freeAt = after(later(this.#freeAt ?? at, at), this.#spanOf(rise));
  }

  /** After the clock was set back: no charger waits for an increase in the future. */
  onClockMovedBack(now: Instant): void {
    if (this.#freeAt !== null) this.#freeAt = earlier(this.#freeAt, now);
  }

  /** Restores the progress from the last commands. One in the future comes from a clock that was set back: it is over. */
  recall(records: Iterable<CommandRecord>, chargers: ReadonlyMap<ChargerId, Charger>, now: Instant): void {
    this.#waiting.clear();
    this.#closeUp();
    this.#freeAt = null;
    for (const { command, replaces } of [...records].toSorted(
      (a, b) => a.command.decidedAt - b.command.decidedAt,
    )) {
      const charger = chargers.get(command.charger);
      if (charger === undefined || replaces === null || command.decidedAt > now) continue;
      this.passed(riseOf(replaces, command.desired, charger, null, this.unit), command.decidedAt);
    }
  }

  /** Drops the places of chargers that left. */
  #closeUp(): void {
    this.#spans = new RunningSum();
    for (const [charger, { rise }] of this.#waiting)
      this.#waiting.set(charger, { rise, place: this.#spans.append(this.#spanOf(rise)) });
  }

  #spanOf(rise: number): Millis {
    return millis(Math.ceil((rise / this.#settings.perMinute) * minutes(1)));
  }
}
