import { write, writeSync } from "node:fs";
import { isatty } from "node:tty";

import pino, { type LogFn, type Logger } from "pino";
import pretty from "pino-pretty";

import { codeOf, oneLine, printable } from "../platform/text.ts";

/** Logs JSON lines; on a terminal, lines for people. Writes out its buffer at the exit. */
export const logger = (descriptor: 1 | 2, level: string): Logger =>
  isatty(descriptor)
    ? pino(
        { level, hooks: { logMethod: onOneLine } },
        pretty({ destination: descriptor, sync: true, ignore: "pid,hostname" }),
      )
    : pino({ level }, new LinesPerTick(descriptor));

/** Keeps a sentence and its fields on one line, whatever a partner or a charger put into them. */
function onOneLine(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const safe = args.map((argument: unknown) => {
    if (typeof argument === "string") return oneLine(argument);
    if (typeof argument !== "object" || argument === null || argument instanceof Error) return argument;
    return Object.fromEntries(
      Object.entries(argument).map(([key, value]) => [
        key,
        typeof value === "string" ? oneLine(value) : value,
      ]),
    );
  });
  method.apply(this, safe as Parameters<LogFn>);
}

/** Cap on buffered characters, ten times the lines of an event for a whole fleet. */
const MAX_WAITING = 64 * 1024 * 1024;
/** Pauses before the next write to a full pipe, and to a full disk, in ms. */
const FULL_PIPE_PAUSE = 5;
const FULL_DISK_PAUSE = 1_000;
const NOTHING = Buffer.alloc(0);
/** Writes to a full pipe at the exit. */
const LAST_TRIES = 200;
/** Pause at the exit for a write that is on its way, ms. */
const IN_FLIGHT_PAUSE = 50;

/** Blocks this thread, ms. */
const pause = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/**
 * Buffers the lines of one event-loop tick. An event for a whole fleet has tens of thousands, and a system call for each
 * would cost more than the event. A full disk neither ends the process nor keeps it alive, as pino's own destination
 * does at the exit. The lost lines are in the record too.
 */
class LinesPerTick {
  readonly #descriptor: number;
  #lines: string[] = [];
  #waiting = 0;
  #leftOut = 0;
  #isWriting = false;
  /** Bytes of a failed write, until the next attempt. */
  #refused: Buffer = NOTHING;
  #isGone = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    process.once("exit", () => this.flushSync());
  }

  write(line: string): void {
    if (this.#waiting > MAX_WAITING) this.#leftOut += 1;
    else this.#waiting += line.length;
    if (this.#leftOut > 0 || this.#isGone) return;
    // JSON does not escape all characters that a terminal obeys or that mislead a reader.
    if (this.#lines.push(printable(line)) === 1) setImmediate(() => this.#pass());
  }

  /** Called by `flush` of pino. */
  flush(done: () => void): void {
    this.flushSync();
    done();
  }

  flushSync(): void {
    // A write on its way ends in its thread meanwhile, so that its lines come first.
    if (this.#isWriting && this.#refused.length === 0) pause(IN_FLIGHT_PAUSE);
    let rest = Buffer.concat([this.#refused, this.#takeAll()]);
    this.#refused = NOTHING;
    for (let tries = 0; rest.length > 0 && tries < LAST_TRIES;) {
      try {
        rest = rest.subarray(writeSync(this.#descriptor, rest));
      } catch (error) {
        if (codeOf(error) !== "EAGAIN") return;
        tries += 1;
        pause(FULL_PIPE_PAUSE);
      }
    }
  }

  #pass(): void {
    if (!this.#isWriting && this.#lines.length > 0) this.#send(this.#takeAll());
  }

  #takeAll(): Buffer {
    const lost = this.#leftOut;
    const text = this.#lines.join("");
    const missing = {
      level: 40,
      time: Date.now(),
      msg: `${lost} lines are left out: the output was blocked`,
    };
    this.#lines = [];
    this.#waiting = 0;
    this.#leftOut = 0;
    return Buffer.from(lost === 0 ? text : `${text}${JSON.stringify(missing)}\n`);
  }

  #send(bytes: Buffer): void {
    this.#isWriting = true;
    write(this.#descriptor, bytes, (error, written) => {
      if (error !== null) return this.#wait(bytes, codeOf(error));
      if (written < bytes.length) return this.#send(bytes.subarray(written));
      this.#isWriting = false;
      this.#pass();
    });
  }

  #wait(bytes: Buffer, code: unknown): void {
    // The reader has closed the pipe.
    this.#isGone = code === "EPIPE";
    if (this.#isGone) return;
    this.#refused = bytes;
    const again = (): void => {
      this.#refused = NOTHING;
      this.#send(bytes);
    };
    setTimeout(again, code === "EAGAIN" ? FULL_PIPE_PAUSE : FULL_DISK_PAUSE).unref();
  }
}

/** Logs plain sentences after the time of day, for the demo. */
export const plainLogger = (level: string, logMethod: typeof onOneLine = onOneLine): Logger =>
  pino(
    { level, hooks: { logMethod } },
    pretty({
      destination: 1,
      sync: true,
      colorize: false,
      hideObject: true,
      // The time is part of the message: pino-pretty would put it in brackets.
      ignore: "pid,hostname,level,time",
      messageFormat: ({ time, msg }) =>
        `${new Date(Number(time)).toTimeString().slice(0, 8)}  ${String(msg)}`,
    }),
  );

/** `plainLogger` whose lines wait until `release`, so that what a verb prints by itself comes first. */
export function heldLogger(level: string): { readonly log: Logger; readonly release: () => void } {
  let waiting: (() => void)[] | null = [];
  const log = plainLogger(level, function (args, method) {
    const line = (): void => onOneLine.call(this, args, method);
    if (waiting === null) line();
    else waiting.push(line);
  });
  const release = (): void => {
    const lines = waiting ?? [];
    waiting = null;
    for (const line of lines) line();
  };
  return { log, release };
}
