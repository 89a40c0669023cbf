import { isatty } from "node:tty";

import pino, { type Logger } from "pino";
import pretty from "pino-pretty";

/** JSON lines; on a terminal, lines for people. LOG_LEVEL changes how much (default info). */
export function logger(descriptor: 1 | 2, level: string): Logger {
  return isatty(descriptor)
    ? pino({ level }, pretty({ destination: descriptor, sync: true, ignore: "pid,hostname" }))
    : pino({ level }, pino.destination({ dest: descriptor, sync: true }));
}

/** One plain sentence a line, for the demo. */
export const plainLogger = (level: string): Logger =>
  pino(
    { level },
    pretty({
      destination: 1,
      sync: true,
      colorize: false,
      hideObject: true,
      translateTime: "SYS:HH:MM:ss",
      ignore: "pid,hostname",
      customPrettifiers: { level: () => "" },
    }),
  );
