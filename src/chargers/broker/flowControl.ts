import { type Instant, seconds } from "../../domain/units.ts";

/** A window over publishes without an acknowledgement: at most `width` inside, the others wait in order. */
export interface InFlight {
  readonly width: number;
  /** True: a slot is taken. False: the window closed during the wait. */
  enter(): Promise<boolean>;
  /** `tookMs`: time that this process waited, from the publish to its acknowledgement. */
  leave(tookMs: number): void;
  /** Refuses all that wait and all that come later. */
  close(): void;
}

/** Width of a new window. */
const FIRST_WIDTH = 20;
/** An acknowledgement that takes longer halves the window, ms. A command in flight cannot be replaced by a newer one. */
const SLOW_ACK_MS = 250;

/**
 * MQTT.js has no outbound quota, and brokers disconnect clients that exceed theirs (`widest`).
 * The window grows by one with each quick acknowledgement, and halves when the broker slows down.
 * `isNarrow`: while true, one is inside at a time.
 */
export function inFlightWindow(widest: number, isNarrow: () => boolean = () => false): InFlight {
  const narrowest = Math.min(FIRST_WIDTH, widest);
  let width = narrowest;
  /** Slow acknowledgements of publishes from before the last halving do not count again. */
  let forgiven = 0;
  let inside = 0;
  let closed = false;
  let waiting: ((entered: boolean) => void)[] = [];
  const allowed = (): number => (isNarrow() ? 1 : width);
  const adapt = (tookMs: number): void => {
    forgiven = Math.max(0, forgiven - 1);
    if (tookMs <= SLOW_ACK_MS) width = Math.min(widest, width + 1);
    else if (forgiven === 0) {
      width = Math.max(narrowest, width >> 1);
      forgiven = inside + 1;
    }
  };
  return {
    get width() {
      return allowed();
    },
    enter() {
      if (closed) return Promise.resolve(false);
      if (inside < allowed()) {
        inside += 1;
        return Promise.resolve(true);
      }
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waiting.push(resolve);
      return promise;
    },
    leave(tookMs) {
      inside -= 1;
      adapt(tookMs);
      // Slots are handed over, so a later publish cannot overtake.
      while (inside < allowed()) {
        const next = waiting.shift();
        if (next === undefined) return;
        inside += 1;
        next(true);
      }
    },
    close() {
      closed = true;
      const refused = waiting;
      waiting = [];
      for (const settle of refused) settle(false);
    },
  };
}

/** Retained topics arrive in one burst. A charger that publishes 50 topics a second stays below the rate. */
const BURST = 200;
const PER_SECOND = 50;

/** Rate limit for the messages of one charger, applied before they are parsed. A class: a process of a fleet has thousands. */
export class FloodGate {
  #left = BURST;
  #at: Instant;

  constructor(now: Instant) {
    this.#at = now;
  }

  /** False: the message is over the limit. */
  admits(now: Instant): boolean {
    const passed = now - this.#at;
    this.#at = now;
    // A clock that was set back adds and removes nothing.
    this.#left = Math.min(BURST, this.#left + (Math.max(passed, 0) / seconds(1)) * PER_SECOND);
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
