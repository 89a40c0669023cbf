import { write, writeSync } from "node:fs";
import { isatty } from "node:tty";

import pino, { type LogFn, type Logger } from "pino";
import pretty from "pino-pretty";

import { oneLine, printable } from "../platform/sanitize.ts";

/** JSON lines; on a terminal, lines for people. What is held is written out when the process exits. */
export const logger = (descriptor: 1 | 2, level: string): Logger =>
  isatty(descriptor)
    ? pino(
        { level, hooks: { logMethod: onOneLine } },
        pretty({ destination: descriptor, sync: true, ignore: "pid,hostname" }),
      )
    : pino({ level }, new LinesOfATurn(descriptor));

/** On a terminal a sentence and its fields stay on their line, whatever a partner or a charger wrote into them. */
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

/** Characters that wait where nobody takes them: the lines of an event for a whole fleet are a tenth of it. */
const MOST_WAITING = 64 * 1024 * 1024;
/** How long a full pipe, and a full disk, are left alone before the next try, in ms. */
const FULL_PIPE_PAUSE = 5;
const FULL_DISK_PAUSE = 1_000;
const NOTHING = Buffer.alloc(0);
/** So often a full pipe is tried at the exit. */
const LAST_TRIES = 200;

/**
 * Gathers the lines of a turn of the event loop: an event for a whole fleet is tens of thousands of them. One system
 * call each would cost more than the event. By itself, as pino's own destination would for ever at the exit, it never
 * insists: a full disk takes no lines, which is no reason to end or to stay. The record has it all.
 */
class LinesOfATurn {
  readonly #descriptor: number;
  #lines: string[] = [];
  #waiting = 0;
  #leftOut = 0;
  #isWriting = false;
  /** What nobody took, until it is tried again. */
  #refused: Buffer = NOTHING;
  #isGone = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    process.once("exit", () => this.flushSync());
  }

  write(line: string): void {
    if (this.#waiting > MOST_WAITING) this.#leftOut += 1;
    else this.#waiting += line.length;
    if (this.#leftOut > 0 || this.#isGone) return;
    // What JSON escapes by itself does not cover all that a terminal obeys, or a reader is misled by.
    if (this.#lines.push(printable(line)) === 1) setImmediate(() => this.#pass());
  }

  flushSync(): void {
    let rest = Buffer.concat([this.#refused, this.#taken()]);
    this.#refused = NOTHING;
    for (let tries = 0; rest.length > 0 && tries < LAST_TRIES;) {
      try {
        rest = rest.subarray(writeSync(this.#descriptor, rest));
      } catch (error) {
        if (codeOf(error) !== "EAGAIN") return;
        tries += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_PAUSE);
      }
    }
  }

  #pass(): void {
    if (!this.#isWriting && this.#lines.length > 0) this.#send(this.#taken());
  }

  #taken(): Buffer {
    const lost = this.#leftOut;
    const text = this.#lines.join("");
    const missing = { level: 40, time: Date.now(), msg: `${lost} lines are left out: nobody took them` };
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
    // The reader has gone: there is nobody to tell.
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

const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined;

/** One plain sentence a line, after the time of day, for the demo. */
export const plainLogger = (level: string): Logger =>
  pino(
    { level, hooks: { logMethod: onOneLine } },
    pretty({
      destination: 1,
      sync: true,
      colorize: false,
      hideObject: true,
      // What goes before the message is put in brackets, or parted from it by a colon: the time is a part of it.
      ignore: "pid,hostname,level,time",
      messageFormat: ({ time, msg }) =>
        `${new Date(Number(time)).toTimeString().slice(0, 8)}  ${String(msg)}`,
    }),
  );
