import { isatty } from "node:tty";
import type { Logger } from "pino";

/** Resolves with the first of these signals. A second one ends the process at once. */
export function stopSignal(...signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isStopping = false;
  for (const signal of signals) {
    process.on(signal, () => {
      if (isStopping) process.exit(1);
      isStopping = true;
      resolve(signal);
    });
  }
  return promise;
}

const STDOUT = 1;

/**
 * Makes SIGHUP request a reload instead of ending the program, unless the terminal was closed. Answers a function that
 * sets the reload. A request that came before it is served then.
 */
export function reloadSignal(): (reload: () => void) => void {
  const hadTerminal = isatty(STDOUT);
  let isRequested = false;
  let request = (): void => {
    isRequested = true;
  };
  process.on("SIGHUP", () => {
    if (hadTerminal && !isatty(STDOUT)) process.kill(process.pid, "SIGTERM");
    else request();
  });
  return (reload) => {
    request = reload;
    if (isRequested) reload();
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
