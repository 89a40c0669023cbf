import type { Logger } from "pino";

import type { Reading } from "../../domain/reading.ts";
import { type ChargerId, type Instant, iso, type Millis, type VehicleId } from "../../domain/units.ts";
import type { Disk } from "./disk.ts";
import { isFault } from "./openDatabase.ts";
import type { KeptReadings } from "./pruneReadings.ts";
import { type ForeignReading, type OnForeign, queryReadings, querySeats } from "./readings.ts";

/** One commit in this time: each costs 30 KB of flash, whatever is in it (finding 15). */
const EVERY_MS = 10_000;
/** Readings of one commit, some 50 ms of a standing loop, and the pause before the next where more of them wait. */
const SLICE = 4_000;
const BETWEEN_SLICES_MS = 1_000;
/** Readings that wait; past it the oldest are dropped first (F95). */
const MOST_WAITING = 100_000;

/** A report on thousands of vehicles asks thousands of times. */
interface Index {
  readonly byCharger: ReadonlyMap<ChargerId, readonly Reading[]>;
  readonly seats: ReadonlyMap<VehicleId, ReadonlySet<ChargerId>>;
}

/** Readings on their way to the disk, and those that are there. */
export class ReadingBuffer implements Disposable {
  readonly #foreign = new Set<ChargerId>();
  readonly #disk: Disk;
  readonly #log: Logger;
  readonly #mayGo: () => boolean;
  #waiting: Reading[] = [];
  #later: NodeJS.Timeout | undefined;
  /** Each trouble is told once: it is tried again every ten seconds, or every minute. */
  #cannotStore = false;
  #cannotPrune = false;
  /** Of those that wait, made when somebody asks. */
  #index: Index | null = null;

  /** `mayGo`: false while the loop has better things to do; readings wait then. */
  constructor(disk: Disk, log: Logger, mayGo: () => boolean) {
    this.#disk = disk;
    this.#log = log;
    this.#mayGo = mayGo;
  }

  add(readings: readonly Reading[]): void {
    if (readings.length === 0) return;
    this.#index = null;
    for (const reading of readings) this.#waiting.push(reading);
    if (this.#waiting.length > MOST_WAITING) this.#waiting = this.#waiting.slice(-MOST_WAITING / 2);
    this.#later ??= setTimeout(() => this.#flush(), EVERY_MS);
  }

  /** `onForeign` is called for each stored message that is left out, as another program changed it. */
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
    const onLeftOut = (reading: ForeignReading): void => {
      this.#warnOnce(reading);
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

  /** Null: the disk refuses. */
  prune(now: Instant, keep: Millis | null, most: number): KeptReadings | null {
    const kept = this.#disk.pruneReadings(now, keep, most);
    const reason = isFault(kept) ? kept.reason : null;
    if (reason !== null && !this.#cannotPrune) this.#log.error({ reason }, "old readings cannot be pruned");
    this.#cannotPrune = reason !== null;
    return isFault(kept) ? null : kept;
  }

  /** Logged once for each charger. */
  #warnOnce({ charger, at }: ForeignReading): void {
    if (this.#foreign.has(charger)) return;
    this.#foreign.add(charger);
    this.#log.error(
      { charger, at: iso(at) },
      "stored readings of this charger were changed by another program: those are left out of reports and proofs",
    );
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
