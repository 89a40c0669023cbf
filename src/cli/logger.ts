import { isatty } from "node:tty";

import pino, { type Logger } from "pino";
import pretty from "pino-pretty";

/** JSON lines; on a terminal, lines for people. pino writes out what it holds when the process exits. */
export const logger = (descriptor: 1 | 2, level: string): Logger =>
  isatty(descriptor)
    ? pino({ level }, pretty({ destination: descriptor, sync: true, ignore: "pid,hostname" }))
    : // Not one system call a line: an event for a whole fleet is tens of thousands of lines.
      pino({ level }, pino.destination({ dest: descriptor, sync: false }));

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
