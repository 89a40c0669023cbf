import { isatty } from "node:tty";
import type { Logger } from "pino";

/** Resolves with the first of these signals; a second one does not wait for anything. */
export function stopSignal(...signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let asked = false;
  for (const signal of signals) {
    process.on(signal, () => {
      if (asked) process.exit(1);
      asked = true;
      resolve(signal);
    });
  }
  return promise;
}

const STDOUT = 1;

/**
 * From now on SIGHUP asks for a reload, and no longer ends the program, unless it says that the terminal has gone.
 * Answers who is to be told what to do; a request that came before is made up for then.
 */
export function reloadSignal(): (reload: () => void) => void {
  const hadTerminal = isatty(STDOUT);
  let asked = false;
  let ask = (): void => {
    asked = true;
  };
  process.on("SIGHUP", () => {
    if (hadTerminal && !isatty(STDOUT)) process.kill(process.pid, "SIGTERM");
    else ask();
  });
  return (reload) => {
    ask = reload;
    if (asked) reload();
  };
}

/**
 * What nobody caught, promises included, is a bug: it is logged, and the process ends with 1. Whoever watches it starts
 * it again, which is safe by design; to go on after it would not be (F15).
 */
export function lastWords(log: Logger): void {
  process.on("uncaughtException", (error, origin) => {
    log.fatal({ err: error, origin }, "a bug ends this process: what is stored goes on with the next start");
    process.exit(1);
  });
}
