import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import type { Beat } from "../domain/store.ts";
import { type Millis, seconds } from "../domain/units.ts";

/** Sends assignments to the service manager, e.g. `READY=1`. Resolves after delivery or failure. */
export type Notify = (...assignments: readonly string[]) => Promise<void>;

/** Time limit for `systemd-notify`, which itself waits up to 5 s. */
const PATIENCE_MS = 6_000;

/**
 * Sends to the socket in $NOTIFY_SOCKET. Null: not run by systemd.
 * Node has no Unix datagrams, so a `systemd-notify` child sends them: the unit needs `NotifyAccess=all`.
 */
export function systemdNotify(env: NodeJS.ProcessEnv, log: Logger): Notify | null {
  if (!env["NOTIFY_SOCKET"]) return null;
  return (...assignments) =>
    new Promise((resolve) => {
      execFile("systemd-notify", [...assignments], { env, timeout: PATIENCE_MS }, (error) => {
        if (error !== null) log.warn({ reason: error.message }, "systemd-notify failed");
        resolve();
      });
    });
}

/** Result of a health check. `status`: what is wrong, or what works only in part. */
export interface Health {
  readonly fit: boolean;
  readonly status: string;
}

/** Inputs of a health check. */
export interface Signs {
  /** Result of a commit that was tried just now. */
  readonly committed: Beat;
  /** Time since the last evaluation, monotonic. Null: none yet. */
  readonly sinceEvaluation: Millis | null;
}

/** Two of the longest timers, and margin for a slow evaluation. */
const FRESH = seconds(150);

/**
 * Fit: the last evaluation is recent and a commit works.
 * A readable disk that refuses writes is no reason for a restart, which would fail. Running commands are still
 * refreshed, as the message reports.
 */
export function fitness({ committed, sinceEvaluation }: Signs): Health {
  if (sinceEvaluation === null) return { fit: false, status: "no evaluation yet" };
  if (sinceEvaluation > FRESH)
    return { fit: false, status: `the last evaluation is ${Math.round(sinceEvaluation / 1000)} s old` };
  if (committed.ok) return { fit: true, status: "controlling" };
  return committed.isReadable
    ? { fit: true, status: `nothing new can be recorded or started: ${committed.reason}` }
    : { fit: false, status: `the state can be neither written nor read: ${committed.reason}` };
}

export interface WatchdogOptions {
  /** Null: not run by systemd, so there is no watchdog. */
  readonly notify: Notify | null;
  /** Environment of the process. `WATCHDOG_USEC`: the service manager's time limit, microseconds. */
  readonly env: NodeJS.ProcessEnv;
  readonly healthy: () => Health;
  /** Monotonic clock, ms. */
  readonly monotonic: () => number;
  readonly log: Logger;
}

/** A zero timer that is later than this means a blocked event loop. */
const LONGEST_LAG_MS = 1_000;
/** Interval of health checks after a failure, and before the first success. */
const RETRY_MS = 250;
/** Interval without a watchdog. It renews the status line. */
const UNWATCHED_MS = 30_000;

/**
 * Sends `READY=1` after the first successful health check. Then feeds the watchdog after each successful one, at half
 * of its time limit.
 * Disposal sends `STOPPING=1`.
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

  /** Null: not run by systemd. */
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
      const { fit, status } = lag > LONGEST_LAG_MS ? stuck(lag) : this.#options.healthy();
      if (fit) {
        await this.#notify(ready ? "WATCHDOG=1" : "READY=1", `STATUS=${status}`);
        ready = true;
      } else if (ready && !unwell) {
        this.#options.log.error({ reason: status }, "unhealthy: the watchdog is not fed");
        await this.#notify(`STATUS=unhealthy: ${status}`);
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
  status: `the event loop stood still for ${Math.round(ms)} ms`,
});
