import type { Logger } from "pino";

import type { Reading } from "../../domain/reading.ts";
import type { KeptReadings, OnForeign } from "../../domain/store.ts";
import type { ChargerId, Instant, Millis, VehicleId } from "../../domain/units.ts";
import { isFault } from "../fault.ts";
import { foreignLog } from "../readingRow.ts";
import type { Disk } from "./disk.ts";
import { queryReadings, querySeats } from "./readings.ts";

/** Interval between commits of readings: each costs 30 KB of flash, whatever it holds. */
const EVERY_MS = 10_000;
/** Readings in one commit, which block the event loop for about 7 ms, and the pause before the next slice. */
const SLICE = 500;
const BETWEEN_SLICES_MS = 150;
/** Limit of waiting readings; above it the oldest are dropped. */
const MOST_WAITING = 100_000;

/** A report on thousands of vehicles queries thousands of times. */
interface Index {
  readonly byCharger: ReadonlyMap<ChargerId, readonly Reading[]>;
  readonly seats: ReadonlyMap<VehicleId, ReadonlySet<ChargerId>>;
}

/** Readings that wait for the disk, and those stored there. */
export class ReadingBuffer implements Disposable {
  readonly #logForeign: OnForeign;
  readonly #disk: Disk;
  readonly #log: Logger;
  readonly #mayGo: () => boolean;
  #waiting: Reading[] = [];
  #later: NodeJS.Timeout | undefined;
  /** Each failure is logged once, as it is retried every ten seconds or every minute. */
  #cannotStore = false;
  #cannotPrune = false;
  /** Index of the waiting readings, built on demand. */
  #index: Index | null = null;

  /** `mayGo`: false while more urgent changes wait for the disk; readings wait then. */
  constructor(disk: Disk, log: Logger, mayGo: () => boolean) {
    this.#disk = disk;
    this.#log = log;
    this.#logForeign = foreignLog(log);
    this.#mayGo = mayGo;
  }

  add(readings: readonly Reading[]): void {
    if (readings.length === 0) return;
    this.#index = null;
    for (const reading of readings) this.#waiting.push(reading);
    if (this.#waiting.length > MOST_WAITING) this.#waiting = this.#waiting.slice(-MOST_WAITING / 2);
    this.#later ??= setTimeout(() => this.#flush(), EVERY_MS);
  }

  /** `onForeign` is called for each stored message that another program changed. Such messages are left out. */
  of(
    chargers: readonly ChargerId[],
    from: Instant,
    until: Instant,
    onForeign?: OnForeign,
  ): readonly Reading[] {
    const { byCharger } = this.#sorted();
    const waiting = chargers
      .flatMap((charger) => byCharger.get(charger) ?? [])
      .filter(({ at }) => from <= at && at < until);
    const { connection, readingTrust } = this.#disk;
    const onLeftOut: OnForeign = (reading) => {
      this.#logForeign(reading);
      onForeign?.(reading);
    };
    return [
      ...queryReadings(connection, { trust: readingTrust, onForeign: onLeftOut }, chargers, from, until),
      ...waiting,
    ];
  }

  seats(vehicle: VehicleId, from: Instant, until: Instant): readonly ChargerId[] {
    const waiting = this.#sorted().seats.get(vehicle) ?? [];
    return [...new Set([...querySeats(this.#disk.connection, vehicle, from, until), ...waiting])];
  }

  /** Null: the disk rejects the write. */
  prune(now: Instant, keep: Millis | null, most: number): KeptReadings | null {
    const kept = this.#disk.pruneReadings(now, keep, most);
    const reason = isFault(kept) ? kept.reason : null;
    if (reason !== null && !this.#cannotPrune) this.#log.error({ reason }, "old readings cannot be pruned");
    this.#cannotPrune = reason !== null;
    return isFault(kept) ? null : kept;
  }

  #sorted(): Index {
    if (this.#index !== null) return this.#index;
    const seats = new Map<VehicleId, Set<ChargerId>>();
    for (const { vehicle, charger } of this.#waiting)
      if (vehicle !== null) seats.set(vehicle, (seats.get(vehicle) ?? new Set()).add(charger));
    this.#index = { byCharger: Map.groupBy(this.#waiting, ({ charger }) => charger), seats };
    return this.#index;
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
    if (fault !== null && !this.#cannotStore)
      this.#log.error({ reason: fault.reason, waiting: this.#waiting.length }, "readings cannot be stored");
    this.#cannotStore = fault !== null;
    if (fault === null) this.#waiting = this.#waiting.slice(SLICE);
    this.#index = null;
    return fault === null;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#later);
    while (this.#waiting.length > 0 && this.#store());
  }
}
