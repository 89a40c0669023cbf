import { type Instant, instant } from "../../domain/units.ts";
import type { Keepalive, Publish } from "../profile/publishes.ts";

/** Publishes keepalives of chargers at their intervals, while the broker is connected. */
export class Heartbeats implements Disposable {
  readonly #keepalives: readonly Keepalive[];
  readonly #publish: (publish: Publish) => Promise<unknown>;
  readonly #now: () => Instant;
  readonly #paused = new Set<string>();
  /** Heartbeats that keep a charger obeying. Observe mode does not send them. */
  readonly #commanding: ReadonlySet<string>;
  readonly #allowed = new Set<string>();
  #isObserving = false;
  #timers: NodeJS.Timeout[] = [];

  constructor(
    keepalives: readonly Keepalive[],
    publish: (publish: Publish) => Promise<unknown>,
    now: () => Instant,
    commanding: readonly Keepalive[] = [],
  ) {
    this.#commanding = new Set(commanding.map(keyOf));
    this.#keepalives = distinct(keepalives);
    this.#publish = publish;
    this.#now = now;
  }

  /** The broker is connected. The first keepalive of each kind is sent at once. */
  start(): void {
    this.stop();
    for (const keepalive of this.#keepalives) {
      this.#send(keepalive, true);
      this.#timers.push(setInterval(() => this.#send(keepalive, false), keepalive.every));
    }
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  /** Pauses these keepalives. The result resumes them. */
  pauseKeepalives(keepalives: readonly Keepalive[]): () => void {
    const keys = keepalives.map(keyOf);
    for (const key of keys) this.#paused.add(key);
    return () => {
      for (const key of keys) this.#paused.delete(key);
    };
  }

  /** Stops or resumes the keepalives that keep chargers obeying. */
  observe(isObserving: boolean): void {
    this.#isObserving = isObserving;
  }

  /** Sends these also in observe mode. The result ends that. */
  allow(keepalives: readonly Keepalive[]): () => void {
    const keys = keepalives.map(keyOf);
    for (const key of keys) this.#allowed.add(key);
    return () => {
      for (const key of keys) this.#allowed.delete(key);
    };
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  /** A lost keepalive is not retried: the next one follows. */
  #send(keepalive: Keepalive, first: boolean): void {
    const key = keyOf(keepalive);
    const isObserved = this.#isObserving && this.#commanding.has(key) && !this.#allowed.has(key);
    if (!isObserved && !this.#paused.has(key)) void this.#publish(keepalive.publishAt(this.#now(), first));
  }
}

const EPOCH = instant(0);

/** Equal for keepalives that differ only in their time. */
export const keyOf = ({ every, publishAt }: Keepalive): string =>
  JSON.stringify([every, publishAt(EPOCH, true), publishAt(EPOCH, false)]);

/** Chargers of one gateway share a keepalive: it is sent once. */
const distinct = (keepalives: readonly Keepalive[]): readonly Keepalive[] => [
  ...new Map(keepalives.map((keepalive) => [keyOf(keepalive), keepalive])).values(),
];
