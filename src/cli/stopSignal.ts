import { isatty } from "node:tty";
import type { Logger } from "pino";

/**
 * Resolves with the first of these signals. A Ctrl-C after it ends the process at once. Any other repetition changes
 * nothing: a closed terminal, a shell and a supervisor may each send a signal of their own.
 */
export function stopSignal(...signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isStopping = false;
  for (const signal of signals) {
    process.on(signal, () => {
      if (isStopping && signal === "SIGINT") process.exit(1);
      isStopping = true;
      resolve(signal);
    });
  }
  return promise;
}

const STDOUT = 1;

/** Sets the reload. Null: there is nothing to reload now, and a request waits for the next one. */
export type SetReload = (reload: (() => void) | null) => void;

/**
 * Makes SIGHUP request a reload instead of ending the program, unless the terminal was closed. A request that comes
 * before there is a reload is served by the first one.
 */
export function reloadSignal(): SetReload {
  const hadTerminal = isatty(STDOUT);
  let isRequested = false;
  let current: (() => void) | null = null;
  process.on("SIGHUP", () => {
    if (hadTerminal && !isatty(STDOUT)) process.kill(process.pid, "SIGTERM");
    else if (current === null) isRequested = true;
    else current();
  });
  return (reload) => {
    current = reload;
    if (reload === null || !isRequested) return;
    isRequested = false;
    reload();
  };
}

/**
 * Logs an uncaught error and ends the process with 1, promises included. The supervisor restarts it, which is safe by
 * design; to continue after a bug is not. `contained`: true for an error that harms a part of the process only, which was
 * ended for it.
 */
export function exitOnBug(log: Logger, contained: (error: unknown) => boolean = () => false): void {
  process.on("uncaughtException", (error, origin) => {
    if (contained(error)) return;
    log.fatal(
      { err: error, origin },
      "a bug ends this process: the next start continues from the stored state",
    );
    process.exit(1);
  });
}
