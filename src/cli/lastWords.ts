import type { Logger } from "pino";

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
