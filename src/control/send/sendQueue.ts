import { type ChargerId, after, type Instant, minutes } from "../../domain/units.ts";

/** The chargers of one broker that wait, in order, and how far the search among them has come. */
interface BrokerQueue {
  readonly waiting: Set<ChargerId>;
  search: Iterator<ChargerId>;
}

/** Chargers that wait to be sent what holds then, by broker: a slow broker delays nobody on another (DESIGN 5.6). */
export class SendQueue {
  readonly #queues = new Map<string, BrokerQueue>();

  add(broker: string, charger: ChargerId): void {
    this.#queue(broker).waiting.add(charger);
  }

  isEmpty(broker: string): boolean {
    return (this.#queues.get(broker)?.waiting.size ?? 0) === 0;
  }

  /**
   * Takes out the next charger that may be sent to; the others keep their place. The search goes on where it stopped:
   * from the start, each call would step over everyone who may not yet.
   */
  take(broker: string, maySend: (charger: ChargerId) => boolean): ChargerId | undefined {
    const queue = this.#queue(broker);
    const found = next(queue, maySend) ?? next(restarted(queue), maySend);
    if (found !== undefined) queue.waiting.delete(found);
    return found;
  }

  #queue(broker: string): BrokerQueue {
    const known = this.#queues.get(broker);
    if (known !== undefined) return known;
    const waiting = new Set<ChargerId>();
    const queue = { waiting, search: waiting.values() };
    this.#queues.set(broker, queue);
    return queue;
  }
}

function restarted(queue: BrokerQueue): BrokerQueue {
  queue.search = queue.waiting.values();
  return queue;
}

function next({ search }: BrokerQueue, maySend: (charger: ChargerId) => boolean): ChargerId | undefined {
  for (let step = search.next(); step.done !== true; step = search.next())
    if (maySend(step.value)) return step.value;
  return undefined;
}

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
