import { type ChargerId, type Millis, millis, seconds } from "../units.ts";

/** Asked more often than this, everyone is not looked through again. */
const CHECK_EVERY = seconds(10);

/**
 * Which chargers spoke before and then fell silent, by the age of their last message (DESIGN 5.7). Measured on a clock
 * that never jumps: one that is set by years makes nobody silent. `tick` is its reading.
 */
export class Silence {
  readonly #heard = new Map<ChargerId, Millis>();
  readonly #silent = new Set<ChargerId>();
  #checkedAt = millis(-Infinity);

  has(charger: ChargerId): boolean {
    return this.#silent.has(charger);
  }

  /** A message came; answers how long it had been silent, null: not long enough to be noticed. */
  heard(charger: ChargerId, tick: Millis): Millis | null {
    const since = this.#heard.get(charger) ?? tick;
    this.#heard.set(charger, tick);
    return this.#silent.delete(charger) ? millis(tick - since) : null;
  }

  /** Nothing could be heard of it until now: what it missed is not held against it. */
  pardon(charger: ChargerId, tick: Millis): void {
    this.#silent.delete(charger);
    if (this.#heard.has(charger)) this.#heard.set(charger, tick);
  }

  /** Who has been silent for `longest` since the last time this was asked. */
  fallen(tick: Millis, longest: Millis, couldBeHeard: (charger: ChargerId) => boolean): readonly ChargerId[] {
    if (tick < this.#checkedAt + CHECK_EVERY) return [];
    this.#checkedAt = tick;
    const fallen: ChargerId[] = [];
    for (const [charger, heardAt] of this.#heard) {
      if (!couldBeHeard(charger)) this.pardon(charger, tick);
      else if (tick - heardAt >= longest && !this.#silent.has(charger)) fallen.push(charger);
    }
    for (const charger of fallen) this.#silent.add(charger);
    return fallen;
  }
}
