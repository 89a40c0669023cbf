import { execFile } from "node:child_process";

import type { Logger } from "pino";

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
