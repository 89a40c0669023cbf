import type { Logger } from "pino";
import type { Reading } from "../core/reporting/reading.ts";
import type { ChargerId, Instant, Millis, VehicleId } from "../core/units.ts";
import type { Disk } from "./disk.ts";
import { queryReadings, querySeats } from "./readings.ts";

/** One commit in this time: each costs 30 KB of flash, whatever is in it (finding 15). */
const EVERY_MS = 10_000;
/** Readings of one commit, some 6 ms of a standing loop, and the pause before the next where more of them wait. */
const SLICE = 500;
const BETWEEN_SLICES_MS = 250;
/** Readings that wait; past it the oldest are dropped first (F95). */
const MOST_WAITING = 100_000;

/** Readings on their way to the disk, and those that are there. */
export class ReadingBuffer implements Disposable {
  readonly #disk: Disk;
  readonly #log: Logger;
  readonly #mayGo: () => boolean;
  #waiting: Reading[] = [];
  #later: NodeJS.Timeout | undefined;
  #failing = false;

  /** `mayGo`: false while the loop has better things to do; readings wait then. */
  constructor(disk: Disk, log: Logger, mayGo: () => boolean) {
    this.#disk = disk;
    this.#log = log;
    this.#mayGo = mayGo;
  }

  add(readings: readonly Reading[]): void {
    for (const reading of readings) this.#waiting.push(reading);
    if (this.#waiting.length > MOST_WAITING) this.#waiting = this.#waiting.slice(-MOST_WAITING / 2);
    if (this.#waiting.length > 0) this.#later ??= setTimeout(() => this.#flush(), EVERY_MS);
  }

  of(chargers: readonly ChargerId[], from: Instant, until: Instant): readonly Reading[] {
    const asked = new Set(chargers);
    const waiting = this.#waiting.filter(({ charger, at }) => from <= at && at < until && asked.has(charger));
    return [...queryReadings(this.#disk.connection.database, chargers, from, until), ...waiting];
  }

  seats(vehicle: VehicleId, from: Instant, until: Instant): readonly ChargerId[] {
    const waiting = this.#waiting.filter((reading) => reading.vehicle === vehicle);
    const stored = querySeats(this.#disk.connection.database, vehicle, from, until);
    return [...new Set([...stored, ...waiting.map(({ charger }) => charger)])];
  }

  prune(now: Instant, keep: Millis): void {
    this.#told(this.#disk.pruneReadings(now, keep)?.reason ?? null);
  }

  #flush(): void {
    clearTimeout(this.#later);
    this.#later = undefined;
    if (this.#waiting.length === 0) return;
    const stored = !this.#mayGo() || this.#store();
    if (this.#waiting.length > 0)
      this.#later = setTimeout(() => this.#flush(), stored ? BETWEEN_SLICES_MS : EVERY_MS);
  }

  #store(): boolean {
    const fault = this.#disk.keepReadings(this.#waiting.slice(0, SLICE));
    this.#told(fault?.reason ?? null);
    if (fault === null) this.#waiting = this.#waiting.slice(SLICE);
    return fault === null;
  }

  /** Once per trouble: it is tried every ten seconds. */
  #told(reason: string | null): void {
    if (reason !== null && !this.#failing)
      this.#log.error({ reason, waiting: this.#waiting.length }, "readings cannot be stored");
    this.#failing = reason !== null;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#later);
    while (this.#waiting.length > 0 && this.#store());
  }
}
