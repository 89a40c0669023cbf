import { isatty } from "node:tty";

import pino, { type Logger } from "pino";
import pretty from "pino-pretty";

/** JSON lines; on a terminal, lines for people. What is held is written out when the process exits. */
export const logger = (descriptor: 1 | 2, level: string): Logger =>
  isatty(descriptor)
    ? pino({ level }, pretty({ destination: descriptor, sync: true, ignore: "pid,hostname" }))
    : pino({ level }, new LinesOfATurn(descriptor));

/**
 * Gathers the lines of a turn of the event loop: an event for a whole fleet is tens of thousands of them. One system
 * call each would cost more than the event, and what pino gathers by itself it copies with every line.
 */
class LinesOfATurn {
  readonly #destination: ReturnType<typeof pino.destination>;
  #lines: string[] = [];

  constructor(descriptor: number) {
    this.#destination = pino.destination({ dest: descriptor, sync: false });
    process.once("exit", () => this.flushSync());
  }

  write(line: string): void {
    if (this.#lines.push(line) === 1) setImmediate(() => this.#pass());
  }

  flushSync(): void {
    this.#pass();
    this.#destination.flushSync();
  }

  #pass(): void {
    if (this.#lines.length === 0) return;
    this.#destination.write(this.#lines.join(""));
    this.#lines = [];
  }
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
