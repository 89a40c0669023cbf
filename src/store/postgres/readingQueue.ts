import type { Logger } from "pino";

import type { Reading } from "../../domain/reading.ts";
import type { ChargersAt, OnForeign } from "../../domain/store.ts";
import type { ChargerId, VehicleId, Window } from "../../domain/units.ts";
import { foreignLog } from "../readingRow.ts";
import { faultOf, type SiteDatabase } from "./database.ts";
import { putReadings, queryReadings, querySeats } from "./readings.ts";

/** Interval between commits of readings, ms. */
const EVERY_MS = 10_000;
/** Readings of one commit. */
const SLICE = 5_000;
/** Limit of waiting readings; above it the oldest are dropped. */
const MOST_WAITING = 100_000;

/** Readings that wait for their commit, and those stored. */
export class ReadingQueue implements AsyncDisposable {
  readonly #from: SiteDatabase;
  readonly #epoch: number;
  readonly #log: Logger;
  readonly #onStored: () => void;
  readonly #logForeign: OnForeign;
  #waiting: Reading[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** A failure is logged once, as it is retried every ten seconds. */
  #cannotStore = false;
  #running: Promise<void> = Promise.resolve();

  constructor(from: SiteDatabase, epoch: number, log: Logger, onStored: () => void) {
    this.#from = from;
    this.#epoch = epoch;
    this.#log = log;
    this.#logForeign = foreignLog(log);
    this.#onStored = onStored;
  }

  add(readings: readonly Reading[]): void {
    if (readings.length === 0) return;
    // In place: each message of a charger adds one, and a copy of all that wait would cost more with each.
    for (const reading of readings) this.#waiting.push(reading);
    if (this.#waiting.length > MOST_WAITING) this.#waiting = this.#waiting.slice(-MOST_WAITING / 2);
    this.#timer ??= setTimeout(() => void this.#flush(), EVERY_MS);
  }

  /** See `Store.readingsIn`. */
  async of(
    windows: readonly ChargersAt[],
    pause: () => Promise<void>,
    onForeign?: OnForeign,
  ): Promise<readonly Reading[]> {
    const asked = new Set(windows.flatMap(({ chargers }) => chargers));
    const byCharger = Map.groupBy(
      this.#waiting.filter(({ charger }) => asked.has(charger)),
      ({ charger }) => charger,
    );
    const waiting = windows.flatMap(({ chargers, from, until }) =>
      chargers
        .flatMap((charger) => byCharger.get(charger) ?? [])
        .filter(({ at }) => from <= at && at < until),
    );
    const onLeftOut: OnForeign = (reading) => {
      this.#logForeign(reading);
      onForeign?.(reading);
    };
    return [...(await queryReadings(this.#from, windows, onLeftOut, pause)), ...waiting];
  }

  /** See `Store.seatsIn`. */
  async seats(vehicle: VehicleId, windows: readonly Window[]): Promise<readonly (readonly ChargerId[])[]> {
    const waiting = this.#waiting
      .filter((reading) => reading.vehicle === vehicle)
      .map(({ charger }) => charger);
    const stored = await querySeats(this.#from, vehicle, windows);
    return stored.map((chargers) => [...new Set([...chargers, ...waiting])]);
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#running = this.#running.then(() => this.#storeAll());
    return this.#running;
  }

  async #storeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const slice = this.#waiting.slice(0, SLICE);
      try {
        await putReadings(this.#from, this.#epoch, slice);
      } catch (error) {
        const { reason } = faultOf(error);
        if (!this.#cannotStore)
          this.#log.error({ reason, waiting: this.#waiting.length }, "readings cannot be stored");
        this.#cannotStore = true;
        this.#timer ??= setTimeout(() => void this.#flush(), EVERY_MS);
        return;
      }
      this.#cannotStore = false;
      this.#onStored();
      const stored = new Set(slice);
      this.#waiting = this.#waiting.filter((reading) => !stored.has(reading));
    }
  }

  /** Drops what waits: another process leads the site. */
  abandon(): void {
    clearTimeout(this.#timer);
    this.#waiting = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#flush();
    clearTimeout(this.#timer);
  }
}
