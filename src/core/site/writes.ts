import { after, type ChargerId, type Instant, minutes } from "../units.ts";

/** Writes are counted over this long. */
export const HOUR = minutes(60);

/** When chargers that wear were written to within the last hour. */
export class Writes {
  readonly #at = new Map<ChargerId, readonly Instant[]>();

  wrote(charger: ChargerId, at: Instant): void {
    this.#at.set(charger, [...this.#within(charger, at), at]);
  }

  /** In the place of what was known: the record outlives the run. Oldest first. */
  recall(charger: ChargerId, at: readonly Instant[]): void {
    this.#at.set(charger, at);
  }

  inLastHour(charger: ChargerId, now: Instant): number {
    return this.#within(charger, now).length;
  }

  /** When one more leaves it at `most` in an hour; now: at once. */
  roomAt(charger: ChargerId, most: number, now: Instant): Instant {
    const latest = this.#within(charger, now).at(-most);
    return latest === undefined ? now : after(latest, HOUR);
  }

  /** A write in the future is none of this hour's: the clock was set back. */
  #within(charger: ChargerId, now: Instant): readonly Instant[] {
    return (this.#at.get(charger) ?? []).filter((at) => at <= now && now < at + HOUR);
  }
}
