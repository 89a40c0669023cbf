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
import { asSwitched, wattsPerAmpere } from "./limits.ts";
import type { RampSettings } from "./settings.ts";

/** How far a charger may go up, in the unit of the ramp; 0: it does not. A released one may take all it has. */
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

/**
 * Lets rises through one after another, the longest waiting first: each takes its size divided by the rate, and the
 * next one comes after that. How far it is taken follows from the commands that went before; only who waits since when
 * is remembered.
 */
export class Ramp {
  readonly #settings: RampSettings;
  /** Size of the rise, longest waiting first. */
  readonly #waiting = new Map<ChargerId, number>();
  /** How long the rises before each waiting charger take, counted from the first that ever waited, ms. */
  readonly #before = new Map<ChargerId, number>();
  /** The same for the next charger to wait, ms. */
  #total = 0;
  /** Part of these that belongs to chargers which have left from the front, ms. */
  #gone = 0;
  #freeAt: Instant | null = null;

  constructor(settings: RampSettings) {
    this.#settings = settings;
  }

  get unit(): RampSettings["unit"] {
    return this.#settings.unit;
  }

  /** When a charger's rise has its turn: now, or when those before it are through. One that does not wait comes last. */
  nextSlot(charger: ChargerId, now: Instant): Instant {
    const before = (this.#before.get(charger) ?? this.#total) - this.#gone;
    return after(later(this.#freeAt ?? now, now), millis(before));
  }

  /** It waits in line; who waits already keeps the place. */
  wait(charger: ChargerId, rise: number): void {
    const known = this.#waiting.get(charger);
    this.#waiting.set(charger, rise);
    if (known === undefined) this.#append(charger, rise);
    else if (known !== rise) this.#count();
  }

  /** It rises, or does not want to any more; answers who is the next in line. */
  leave(charger: ChargerId): ChargerId | null {
    const rise = this.#waiting.get(charger);
    if (rise === undefined) return null;
    const isFirst = this.#waiting.keys().next().value === charger;
    this.#waiting.delete(charger);
    this.#before.delete(charger);
    if (isFirst) this.#gone += this.#spanOf(rise);
    else this.#count();
    return this.#waiting.keys().next().value ?? null;
  }

  /** A rise that was let through at a moment. */
  passed(rise: number, at: Instant): void {
    this.#freeAt = after(later(this.#freeAt ?? at, at), this.#spanOf(rise));
  }

  /** After the clock was set back: nobody waits for a rise that is in the future by it. */
  onClockMovedBack(now: Instant): void {
    if (this.#freeAt !== null) this.#freeAt = earlier(this.#freeAt, now);
  }

  /** Takes up where the commands of before a restart have left it. */
  recall(records: Iterable<CommandRecord>, chargers: ReadonlyMap<ChargerId, Charger>): void {
    this.#waiting.clear();
    this.#count();
    this.#freeAt = null;
    for (const { command, replaces } of [...records].toSorted(
      (a, b) => a.command.decidedAt - b.command.decidedAt,
    )) {
      const charger = chargers.get(command.charger);
      if (charger === undefined || replaces === null) continue;
      this.passed(riseOf(replaces, command.desired, charger, null, this.unit), command.decidedAt);
    }
  }

  #append(charger: ChargerId, rise: number): void {
    this.#before.set(charger, this.#total);
    this.#total += this.#spanOf(rise);
  }

  /** Adds up anew, after a change in the middle of the line. */
  #count(): void {
    this.#before.clear();
    this.#total = 0;
    this.#gone = 0;
    for (const [charger, rise] of this.#waiting) this.#append(charger, rise);
  }

  #spanOf(rise: number): Millis {
    return millis(Math.ceil((rise / this.#settings.perMinute) * minutes(1)));
  }
}
