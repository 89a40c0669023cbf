import { type Instant, instant } from "../../domain/units.ts";
import type { Keepalive } from "../profile/topics.ts";
import type { Publish } from "../profile/publishes.ts";

/** Repeats what chargers have to hear all the time, while and only while their broker is there. */
export class Heartbeats implements Disposable {
  readonly #keepalives: readonly Keepalive[];
  readonly #publish: (publish: Publish) => Promise<unknown>;
  readonly #now: () => Instant;
  readonly #hushed = new Set<string>();
  #timers: NodeJS.Timeout[] = [];

  constructor(
    keepalives: readonly Keepalive[],
    publish: (publish: Publish) => Promise<unknown>,
    now: () => Instant,
  ) {
    this.#keepalives = distinct(keepalives);
    this.#publish = publish;
    this.#now = now;
  }

  /** The broker is there: the first of each at once. */
  start(): void {
    this.stop();
    for (const keepalive of this.#keepalives) {
      this.#beat(keepalive, true);
      this.#timers.push(setInterval(() => this.#beat(keepalive, false), keepalive.every));
    }
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  /** Leaves these out until what it answers is called. */
  pauseKeepalives(keepalives: readonly Keepalive[]): () => void {
    const keys = keepalives.map(keyOf);
    for (const key of keys) this.#hushed.add(key);
    return () => {
      for (const key of keys) this.#hushed.delete(key);
    };
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  /** One that is lost is followed by the next: nobody waits for it. */
  #beat(keepalive: Keepalive, first: boolean): void {
    if (!this.#hushed.has(keyOf(keepalive))) void this.#publish(keepalive.publishAt(this.#now(), first));
  }
}

const EPOCH = instant(0);

/** The same for messages that are the same but for the moment. */
export const keyOf = ({ every, publishAt }: Keepalive): string =>
  JSON.stringify([every, publishAt(EPOCH, true), publishAt(EPOCH, false)]);

/** Chargers of one gateway share a message: it is needed once. */
const distinct = (keepalives: readonly Keepalive[]): readonly Keepalive[] => [
  ...new Map(keepalives.map((keepalive) => [keyOf(keepalive), keepalive])).values(),
];
