import { type ChargerId, after, type Instant, hours } from "../../domain/units.ts";

/** Waiting chargers of one broker, in order, and the position of the search among them. */
interface BrokerQueue {
  readonly waiting: Set<ChargerId>;
  search: Iterator<ChargerId>;
}

/**
 * Chargers that wait for a publish, by broker: a slow broker delays no other. A charger has at most one publish in
 * flight. A decision goes out after its commit.
 */
export class SendQueue {
  readonly #queues = new Map<string, BrokerQueue>();
  /** The number of the evaluation after which the publish left. */
  readonly #inFlight = new Map<ChargerId, number>();
  /** Value: the number of the evaluation whose commit the charger waits for. */
  readonly #awaitingCommit = new Map<ChargerId, number>();
  /** Number of the last evaluation. */
  #evaluations = 0;

  /** An evaluation ends. Returns its number. */
  endEvaluation(): number {
    this.#evaluations += 1;
    return this.#evaluations;
  }

  /** Number of the evaluation that runs, or of the next one. Its commit has all that is written until then. */
  get nextEvaluation(): number {
    return this.#evaluations + 1;
  }

  add(broker: string, charger: ChargerId): void {
    this.#queue(broker).waiting.add(charger);
  }

  isEmpty(broker: string): boolean {
    return (this.#queues.get(broker)?.waiting.size ?? 0) === 0;
  }

  /**
   * Removes and returns the next charger that may be sent to. The others keep their place.
   * The search continues where it stopped. Otherwise each call would step over all chargers that must wait.
   */
  take(broker: string, maySend: (charger: ChargerId) => boolean): ChargerId | undefined {
    const queue = this.#queue(broker);
    const isReady = (charger: ChargerId): boolean =>
      !this.#inFlight.has(charger) && !this.#awaitingCommit.has(charger) && maySend(charger);
    const found = next(queue, isReady) ?? next(restarted(queue), isReady);
    if (found !== undefined) queue.waiting.delete(found);
    return found;
  }

  /** A publish is in flight, at any broker. */
  get isPublishing(): boolean {
    return this.#inFlight.size > 0;
  }

  isInFlight(charger: ChargerId): boolean {
    return this.#inFlight.has(charger);
  }

  /** Number of the evaluation after which the publish in flight left; 0: none is in flight. */
  leftAfter(charger: ChargerId): number {
    return this.#inFlight.get(charger) ?? 0;
  }

  startPublish(charger: ChargerId, evaluation = this.#evaluations): void {
    this.#inFlight.set(charger, evaluation);
  }

  endPublish(charger: ChargerId): void {
    this.#inFlight.delete(charger);
  }

  /** The newest decision of this charger is not committed yet. It belongs to the evaluation that runs, or to the next one. */
  awaitCommit(charger: ChargerId): void {
    this.#awaitingCommit.set(charger, this.nextEvaluation);
  }

  /** The decision was rolled back, or may go out before its commit. */
  endCommitWait(charger: ChargerId): void {
    this.#awaitingCommit.delete(charger);
  }

  /** The decisions up to this evaluation are committed, or dropped. Later ones may still wait for their own commit. */
  committed(evaluation: number): void {
    for (const [charger, awaited] of this.#awaitingCommit)
      if (awaited <= evaluation) this.#awaitingCommit.delete(charger);
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

/** Edges of the senders. */
interface SenderPorts {
  /** Publishes that may be in flight now to the broker of this name. */
  readonly windowOf: (broker: string) => number;
  /** Settled after the first attempt to connect. Absent: no wait. */
  readonly firstAttempt?: ((broker: string) => Promise<void> | undefined) | undefined;
  readonly maySend: (charger: ChargerId) => boolean;
  /** Sends the current command of a charger. */
  readonly send: (charger: ChargerId) => Promise<void>;
}

interface Senders {
  /** Starts a sender at this broker. */
  readonly sendWaiting: (broker: string) => Promise<void>;
  /** Senders that may start now at this broker. Those at work find all that waits by then. */
  readonly room: (broker: string) => number;
}

/**
 * `sendWaiting`: a sender sends to the waiting chargers of a broker, one after another. As many work at the same time as the
 * broker's window allows. Further ones return at once, and a window that widens gets new ones.
 * At most one publish in flight per charger: such a charger keeps its place.
 */
export function sendersOf(queue: SendQueue, { windowOf, firstAttempt, maySend, send }: SenderPorts): Senders {
  const atWork = new Map<string, number>();
  const countOf = (broker: string): number => atWork.get(broker) ?? 0;
  // Without a connection a publish fails at once, and its charger is tried again later.
  const allowed = (broker: string): number => Math.max(1, windowOf(broker));
  const sendWaiting = async (broker: string): Promise<void> => {
    if (countOf(broker) >= allowed(broker)) return;
    atWork.set(broker, countOf(broker) + 1);
    const connecting = firstAttempt?.(broker);
    // The queue is read after the wait: a decision made meanwhile may lack its commit.
    if (connecting !== undefined) await connecting;
    const further: Promise<void>[] = [];
    while (countOf(broker) <= allowed(broker)) {
      const charger = queue.take(broker, maySend);
      if (charger === undefined) break;
      queue.startPublish(charger);
      await send(charger);
      queue.endPublish(charger);
      if (countOf(broker) < allowed(broker) && !queue.isEmpty(broker)) further.push(sendWaiting(broker));
    }
    atWork.set(broker, countOf(broker) - 1);
    await Promise.all(further);
  };
  return { sendWaiting, room: (broker) => Math.max(0, allowed(broker) - countOf(broker)) };
}

/** Period over which writes are counted. */
export const HOUR = hours(1);

/** Writes of the last hour to chargers with a limit on writes. */
export class Writes {
  readonly #at = new Map<ChargerId, readonly Instant[]>();

  add(charger: ChargerId, at: Instant): void {
    this.#at.set(charger, [...this.#within(charger, at), at]);
  }

  /** Replaces the known writes by those of the record, which outlives the run. Oldest first. */
  recall(charger: ChargerId, at: readonly Instant[]): void {
    this.#at.set(charger, at);
  }

  inLastHour(charger: ChargerId, now: Instant): number {
    return this.#within(charger, now).length;
  }

  /** The time from which one more write stays within `most` in an hour. `now`: at once. */
  roomAt(charger: ChargerId, most: number, now: Instant): Instant {
    const latest = this.#within(charger, now).at(-most);
    return latest === undefined ? now : after(latest, HOUR);
  }

  /** A write in the future comes from a clock that was set back. It does not count. */
  #within(charger: ChargerId, now: Instant): readonly Instant[] {
    return (this.#at.get(charger) ?? []).filter((at) => at <= now && now < at + HOUR);
  }
}
