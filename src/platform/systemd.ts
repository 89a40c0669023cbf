import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import type { Committed } from "../domain/changes.ts";
import { type Millis, seconds } from "../domain/units.ts";

/** Tells the service manager something, e.g. `READY=1`; resolves when it has it, or when telling it failed. */
export type Notify = (...assignments: readonly string[]) => Promise<void>;

/** systemd-notify waits up to 5 s for the service manager; one that hangs for longer is ended. */
const PATIENCE_MS = 6_000;

/**
 * Speaks to the socket that systemd names in $NOTIFY_SOCKET; null: nobody listens, as outside of systemd. Node has
 * no Unix datagrams, so a `systemd-notify` child speaks: the unit needs `NotifyAccess=all` for it.
 */
export function systemdNotify(env: NodeJS.ProcessEnv, log: Logger): Notify | null {
  if (!env["NOTIFY_SOCKET"]) return null;
  return (...assignments) =>
    new Promise((told) => {
      execFile("systemd-notify", [...assignments], { env, timeout: PATIENCE_MS }, (error) => {
        if (error !== null) log.warn({ reason: error.message }, "the service manager could not be told");
        told();
      });
    });
}

/** What a health pass came to; `words` say what is wrong, or what works only in part. */
export interface Health {
  readonly fit: boolean;
  readonly words: string;
}

/** What one health pass found out. */
export interface Signs {
  /** Of a commit that was tried just now. */
  readonly committed: Committed;
  /** Reads the record back; throws where that fails. */
  readonly readBack: () => unknown;
  /** Since the last look at the depot, on a clock that never jumps; null: none yet. */
  readonly sinceLook: Millis | null;
}

/** Two of the longest naps of the alarm, and room for a slow look. */
const FRESH = seconds(150);

/**
 * Fit: the last look is fresh, and a commit works. A disk that refuses writes but can be read is no reason for a
 * restart, which would not even come up: standing commands are still refreshed, and the words say so (F05, F06).
 */
export function fitness({ committed, readBack, sinceLook }: Signs): Health {
  if (sinceLook === null) return { fit: false, words: "the depot was not looked at yet" };
  if (sinceLook > FRESH)
    return { fit: false, words: `the last look at the depot is ${Math.round(sinceLook / 1000)} s old` };
  if (committed.ok) return { fit: true, words: "controlling" };
  return canRead(readBack)
    ? { fit: true, words: `nothing new can be recorded or started: ${committed.reason}` }
    : { fit: false, words: `the state can be neither written nor read: ${committed.reason}` };
}

function canRead(readBack: () => unknown): boolean {
  try {
    readBack();
    return true;
  } catch {
    return false;
  }
}

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
