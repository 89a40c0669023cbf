import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { DateTime } from "luxon";

import { type Instant, instant } from "../domain/units.ts";
import { oneLine, printable } from "../platform/sanitize.ts";

/** DESIGN 6.4: 0 ok, 1 failed, 2 usage or configuration. */
export type ExitCode = 0 | 1 | 2;

/** A line for whoever called, or for the next program in the pipe. */
export const say = (text: string): void => write(1, printable(text));

/** As `say`, for a line with foreign text in it: a partner or a charger cannot make it look like two. */
export const writeLine = (text: string): void => write(1, oneLine(text));

/** Sealed text, byte for byte; a terminal is shown no escape sequence of it. */
export const saySealed = (text: string): void => (isatty(1) ? say(text) : write(1, text));

/** A line for people: what is wrong, or what was odd. */
export const complain = (text: string): void => write(2, printable(text));

/** As `complain`, for a line with foreign text in it. */
export const writeErrorLine = (text: string): void => write(2, oneLine(text));

/** How long a full pipe is left alone before the next try, in ms. */
const FULL_PIPE_PAUSE = 5;

function write(descriptor: 1 | 2, text: string): void {
  let rest = Buffer.from(`${text}\n`);
  while (rest.length > 0) {
    try {
      // A pipe takes what fits into it, which may be less than all.
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      // The reader has gone (`| head`): there is nobody to tell.
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") return giveUp(descriptor, error);
      // The reader is slower than we are. Nothing else runs in a verb that could be held up.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_PAUSE);
    }
  }
}

/** A full disk, mostly: what was asked for cannot be told, which is a failure. */
function giveUp(descriptor: 1 | 2, error: unknown): void {
  if (descriptor === 1)
    complain(`the answer cannot be written: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}

/** Accepted forms of a moment on the command line, for error messages. */
export const MOMENT =
  "ISO 8601, e.g. 2026-11-21T05:30 or 05:30 (today) in the site's zone, or with a zone of its own";

/** A moment as a person types it. Without a zone it is in the site's zone; a time alone is today's. Null: not a moment. */
export function readMoment(text: string, zone: string, now: Instant): Instant | null {
  // A time alone takes the current date, which the library would read from the machine's clock.
  const isTime = /^\d{1,2}:\d{2}(:\d{2})?$/.test(text);
  const today = DateTime.fromMillis(now, { zone }).toISODate() ?? "";
  const read = DateTime.fromISO(isTime ? `${today}T${text.padStart(5, "0")}` : text, { zone });
  return read.isValid ? instant(read.toMillis()) : null;
}
