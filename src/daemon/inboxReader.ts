import type { Logger } from "pino";

import type { Delivery, IngestAnswer } from "../domain/delivery.ts";
import type { Leadership } from "../domain/leadership.ts";
import type { Millis } from "../domain/units.ts";
import { messageOf } from "../platform/errors.ts";

/** Interval of reads while the database announces deliveries, ms. */
const ANNOUNCED_MS = 5_000;
/** Failures of one delivery, each while another was stored, before it goes to the quarantine. */
const MOST_FAILURES = 3;

interface InboxReaderOptions {
  readonly leadership: Pick<Leadership, "waiting" | "isNotified" | "setAside">;
  readonly ingest: (delivery: Delivery) => Promise<IngestAnswer>;
  readonly monotonic: () => Millis;
  readonly log: Logger;
}

/**
 * Ingests the deliveries that stand-ins stored. All of a read share one commit. Where that fails, each has a commit of
 * its own, so that a delivery that always fails delays no other. It goes to the quarantine then.
 */
export class InboxReader {
  readonly #options: InboxReaderOptions;
  /** Failures by the number of the stored delivery. */
  readonly #failures = new Map<number, number>();
  #isReading = false;
  #isAsked = false;
  /** A failure is logged once, as the next read is soon. */
  #cannotRead = false;
  #readAt = -Infinity;

  constructor(options: InboxReaderOptions) {
    this.#options = options;
  }

  /** Reads deliveries, unless the database announces them and the last read is recent. */
  async readIfDue(): Promise<void> {
    const { leadership, monotonic } = this.#options;
    if (leadership.isNotified && monotonic() - this.#readAt < ANNOUNCED_MS) return;
    await this.read();
  }

  /** Reads and ingests all that waits. */
  async read(): Promise<void> {
    this.#isAsked = true;
    if (this.#isReading) return;
    this.#isReading = true;
    const { monotonic, log } = this.#options;
    try {
      while (this.#isAsked) {
        this.#isAsked = false;
        this.#readAt = monotonic();
        await this.#readOnce();
      }
      this.#cannotRead = false;
    } catch (error) {
      // The next read does not wait for an announcement.
      this.#readAt = -Infinity;
      if (!this.#cannotRead) log.warn({ err: error }, "deliveries of the stand-in cannot be read");
      this.#cannotRead = true;
    }
    this.#isReading = false;
  }

  async #readOnce(): Promise<void> {
    const waiting = await this.#options.leadership.waiting();
    if (waiting.length === 0) return;
    if (this.#failures.size === 0) {
      const answers = await Promise.all(waiting.map((delivery) => this.#tried(delivery)));
      if (answers.every(({ ok }) => ok)) return;
    }
    await this.#oneByOne(waiting);
  }

  async #oneByOne(waiting: readonly Delivery[]): Promise<void> {
    const failed: (readonly [Delivery, string])[] = [];
    for (const delivery of waiting) {
      const answer = await this.#tried(delivery);
      if (answer.ok) this.#failures.delete(delivery.stored ?? 0);
      else failed.push([delivery, answer.reason]);
    }
    // A database that stores nothing is no fault of a delivery.
    const isStoring = failed.length < waiting.length;
    for (const [delivery, reason] of failed) {
      const number = delivery.stored ?? 0;
      const failures = (this.#failures.get(number) ?? 0) + (isStoring ? 1 : 0);
      this.#failures.set(number, failures);
      if (failures < MOST_FAILURES) continue;
      await this.#options.leadership.setAside(delivery, reason);
      this.#failures.delete(number);
      this.#options.log.error(
        { delivery: number, reason },
        "a delivery of the stand-in cannot be ingested: it is in the quarantine",
      );
    }
    this.#readAt = -Infinity;
  }

  async #tried(delivery: Delivery): Promise<IngestAnswer> {
    try {
      return await this.#options.ingest(delivery);
    } catch (error) {
      return { ok: false, reason: messageOf(error) };
    }
  }
}
