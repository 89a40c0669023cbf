import { readFileSync, readSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import type { Command } from "commander";
import { DateTime } from "luxon";

import { factOf, type Json } from "../domain/audit.ts";
import { fromIso, type Instant, instant, minutes } from "../domain/units.ts";
import { type Answer, formatProblem, type Problem } from "../operator/answer.ts";
import { wallClock } from "../platform/clock.ts";
import { codeOf, messageOf, oneLine, printable } from "../platform/text.ts";

/** 0 ok, 1 failed, 2 usage or configuration. */
export type ExitCode = 0 | 1 | 2;

/** Prints a line to standard output. */
export const say = (text: string): void => write(1, printable(text));

/** `say` for foreign text: a partner or a charger cannot forge a second line. */
export const writeLine = (text: string): void => write(1, oneLine(text));

/** Prints sealed text byte for byte. On a terminal without escape sequences. */
export const saySealed = (text: string): void => (isatty(1) ? say(text) : write(1, text));

/** Prints a line about a mistake or an oddity to standard error. */
export const complain = (text: string): void => write(2, printable(text));

/** Prints why a verb ends with this exit code. */
export function fail(code: 1 | 2, reason: string): ExitCode {
  complain(reason);
  return code;
}

/** `complain` for foreign text. */
export const writeErrorLine = (text: string): void => write(2, oneLine(text));

/**
 * Prints an answer as JSON or by `print`. A problem, or the reason why there is no answer, goes to standard error. `local`: see
 * `inZone`.
 */
export function printAnswer<Value extends Json>(
  answer: Answer<Value> | string,
  json: boolean,
  print: (value: Value) => void,
  local: (text: string) => string = (text) => text,
): ExitCode {
  if (typeof answer === "string") {
    writeErrorLine(answer);
    return 1;
  }
  if (!answer.ok) {
    writeErrorLine(local(formatRefusal(answer.problem)));
    return answer.problem.status === 400 ? 2 : 1;
  }
  if (json) say(JSON.stringify(answer.value));
  else print(answer.value);
  return 0;
}

/** Text of a file. `-`: standard input. Null: it cannot be read, which has been printed. */
export function readText(file: string): string | null {
  try {
    return readInput(file).toString("utf8");
  } catch (error) {
    complain(`${file} cannot be read: ${messageOf(error)}`);
    return null;
  }
}

/** Size of a piece of standard input, as much as a pipe holds. */
const PIECE = 65_536;

/** Bytes of a file. `-`: standard input, whose writer may be slower than we are. Throws if it cannot be read. */
export function readInput(file: string): Buffer {
  if (file !== "-") return readFileSync(file);
  const pieces: Buffer[] = [];
  const piece = Buffer.alloc(PIECE);
  for (let isOpen = true; isOpen;) {
    try {
      const length = readSync(0, piece);
      // A copy: a slow writer makes thousands of short pieces.
      pieces.push(Buffer.from(piece.subarray(0, length)));
      isOpen = length > 0;
    } catch (error) {
      if (codeOf(error) !== "EAGAIN") throw error;
      waitForPipe();
    }
  }
  return Buffer.concat(pieces);
}

/** A list in an answer. Empty: the member is no list. */
export const listIn = (value: Json, member: string): readonly Json[] => {
  const found = factOf(value, member);
  return Array.isArray(found) ? (found as readonly Json[]) : [];
};

const MOST_FOUND = 80;

/** A refusal with each mistake: what was found, and what is right. */
export function formatRefusal(problem: Problem): string {
  if (problem.status !== 400 || problem.errors.length === 0) return formatProblem(problem);
  const mistakes = problem.errors.map(({ path, found, expected }) => {
    const text = JSON.stringify(found);
    const short = text.length <= MOST_FOUND ? text : `${text.slice(0, MOST_FOUND)}…`;
    return `${path}: ${found === null ? "missing" : `found ${short}`}; expected ${expected}`;
  });
  return `${problem.title}: ${mistakes.join("; ")}`;
}

/** Pause before the next write to a full pipe, or read of an empty one, in ms. */
const PIPE_PAUSE = 5;

/** Blocking is fine: nothing else runs in a verb. */
const waitForPipe = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PIPE_PAUSE);

function write(descriptor: 1 | 2, text: string): void {
  let rest = Buffer.from(`${text}\n`);
  while (rest.length > 0) {
    try {
      // A pipe may accept only a part.
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      const code = codeOf(error);
      // The reader has closed the pipe (`| head`), or the terminal.
      if (code === "EPIPE" || code === "EIO") return;
      if (code !== "EAGAIN") return giveUp(descriptor, error);
      waitForPipe();
    }
  }
}

/** Ends with 1 because the output cannot be written, mostly for a full disk. */
function giveUp(descriptor: 1 | 2, error: unknown): void {
  if (descriptor === 1) complain(`the answer cannot be written: ${messageOf(error)}`);
  process.exit(1);
}

const momentForms = (time: string): string =>
  `ISO 8601, e.g. 2026-11-21T05:30 or ${time} in the site's zone, or with a zone of its own`;

/** Accepted forms of a moment on the command line, for error messages. */
export const MOMENT = momentForms("05:30 (today)");
/** `MOMENT` where `readNext` reads it. */
export const NEXT_MOMENT = momentForms("05:30 (the next)");

/** A moment as the API writes it. */
const UTC_MOMENT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;

/** Replaces the moments of the API by those of the site's zone, which a person typed, and names the zone. */
export const inZone =
  (zone: string, now: () => Instant) =>
  (text: string): string => {
    const clock = wallClock(zone, now);
    const local = text.replaceAll(UTC_MOMENT, (moment) => clock(fromIso(moment)));
    return local === text ? text : `${local}; times in ${zone}`;
  };

/** Parses a moment as a person types it. Default zone: the site's. Default date: today. Null: not a moment. */
export function readMoment(text: string, zone: string, now: Instant): Instant | null {
  // The library would read the current date from the machine's clock.
  const isTime = /^\d{1,2}:\d{2}(:\d{2})?$/.test(text);
  const today = DateTime.fromMillis(now, { zone }).toISODate() ?? "";
  const read = DateTime.fromISO(isTime ? `${today}T${text.padStart(5, "0")}` : text, { zone });
  if (!read.isValid) return null;
  const hasZone = /T.*[Z+-]/i.test(text);
  return hasZone ? instant(read.toMillis()) : firstShown(instant(read.toMillis()), zone);
}

/** The first moment at which the clocks show a time. The library takes the one with the offset of the present. */
function firstShown(at: Instant, zone: string): Instant {
  const before = instant(at - HOUR);
  return isShownAgain(before, zone) ? before : at;
}

/** `readMoment` of a time ahead: a time that has passed today is tomorrow's, unless the clocks are set back and show it again. */
export function readNext(text: string, zone: string, now: Instant): Instant | null {
  const today = readMoment(text, zone, now);
  if (today === null || today > now || !/^\d{1,2}:\d{2}/.test(text)) return today;
  const again = instant(today + HOUR);
  if (again > now && isShownAgain(today, zone)) return again;
  // Not every day has 24 hours.
  return readMoment(text, zone, instant(DateTime.fromMillis(now, { zone }).plus({ days: 1 }).toMillis()));
}

/** True: the clocks show the same time an hour later, when they are set back. */
const isShownAgain = (at: Instant, zone: string): boolean =>
  DateTime.fromMillis(at, { zone }).hour === DateTime.fromMillis(at + HOUR, { zone }).hour;

const HOUR = minutes(60);

/** Inputs of every verb. */
export interface VerbContext {
  /** Value of `--config`. Undefined: not given. */
  readonly config: () => string | undefined;
  readonly now: () => Instant;
  readonly randomBytes: (count: number) => Buffer;
  /** Receives the exit code. */
  readonly done: (code: ExitCode) => void;
}

/** Adds options, help and action to the command of a verb. `program.ts` has the table of verbs. */
export type Verb = (verb: Command, context: VerbContext) => void;
