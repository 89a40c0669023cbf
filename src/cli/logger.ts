import { isatty } from "node:tty";

import pino, { type Logger } from "pino";
import pretty from "pino-pretty";

/** Characters that wait for a slow reader, or for room. */
const MOST_WAITING = 4 * 1024 * 1024;

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
    this.#destination = forgiving(
      pino.destination({ dest: descriptor, sync: false, maxLength: MOST_WAITING }),
    );
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

/**
 * A full disk takes no lines, which is no reason to end: what waits is written once there is room, and what is too much
 * is left out. The record has it all. By itself the library would write for ever where the process is to exit.
 */
function forgiving<Destination extends ReturnType<typeof pino.destination>>(
  destination: Destination,
): Destination {
  const flush = destination.flushSync.bind(destination);
  let fails = false;
  destination.on("error", () => (fails = true));
  destination.on("write", () => (fails = false));
  destination.flushSync = () => {
    if (!fails) flush();
  };
  return destination;
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
