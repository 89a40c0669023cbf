import { setTimeout as sleep } from "node:timers/promises";

import type { Logger } from "pino";

import type { Health } from "./fitness.ts";
import type { Notify } from "./systemdNotify.ts";

export interface WatchdogOptions {
  /** Null: no service manager listens, so nothing is fed. */
  readonly notify: Notify | null;
  /** Of the process: `WATCHDOG_USEC` is how long the service manager waits for a sign of life. */
  readonly env: NodeJS.ProcessEnv;
  readonly healthy: () => Health;
  /** Milliseconds that never jump. */
  readonly monotonic: () => number;
  readonly log: Logger;
}

/** A timer that is due now and comes later than this: the loop is stuck, however alive it looks in between. */
const LONGEST_LAG_MS = 1_000;
/** After a failed pass, and before the first good one, the next comes this soon. */
const RETRY_MS = 250;
/** Without a watchdog the status line is still renewed. */
const UNWATCHED_MS = 30_000;

/**
 * Tells systemd `READY=1` with the first health pass that succeeds, and from then on feeds its watchdog at half of
 * its time, each time only after another one. Disposing it says `STOPPING=1`.
 */
export class Watchdog implements AsyncDisposable {
  readonly #options: WatchdogOptions;
  readonly #notify: Notify;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  private constructor(options: WatchdogOptions, notify: Notify) {
    this.#options = options;
    this.#notify = notify;
    this.#running = this.#run();
  }

  /** Null: nobody listens. */
  static start(options: WatchdogOptions): Watchdog | null {
    return options.notify === null ? null : new Watchdog(options, options.notify);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let ready = false;
    let unwell = false;
    while (!signal.aborted) {
      const lag = await this.#lag();
      if (signal.aborted) break;
      const { fit, words } = lag > LONGEST_LAG_MS ? stuck(lag) : this.#options.healthy();
      if (fit) {
        await this.#notify(ready ? "WATCHDOG=1" : "READY=1", `STATUS=${words}`);
        ready = true;
      } else if (ready && !unwell) {
        this.#options.log.error({ reason: words }, "unhealthy: the watchdog is not fed");
        await this.#notify(`STATUS=unhealthy: ${words}`);
      }
      unwell = !fit;
      await sleep(fit ? this.#everyMs : RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #lag(): Promise<number> {
    const began = this.#options.monotonic();
    await sleep(0);
    return this.#options.monotonic() - began;
  }

  get #everyMs(): number {
    const microseconds = Number(this.#options.env["WATCHDOG_USEC"]);
    return microseconds > 0 ? microseconds / 2_000 : UNWATCHED_MS;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#notify("STOPPING=1", "STATUS=stopping");
  }
}

const stuck = (ms: number): Health => ({
  fit: false,
  words: `the event loop stood still for ${Math.round(ms)} ms`,
});
