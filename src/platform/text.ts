import { IANAZone, DateTime } from "luxon";

import { type Instant, after, iso, minutes, instant } from "../domain/units.ts";

/** Zone offsets only change at multiples of this. */
const STEP = minutes(15);
/** Cap on cached offsets: all boundaries of a busy week. */
const MAX_CACHED_OFFSETS = 1_000;

/** Formats a moment in the site's zone: the time of day, with the date unless it is today. */
export function wallClock(zone: string, now: () => Instant): WallClock {
  const rules = IANAZone.create(zone);
  // An evaluation of 20,000 vehicles formats 40,000 moments. Asking luxon for each would take most of its time.
  const offsets = new Map<number, number>();
  const local = (at: Instant): string => {
    const step = Math.floor(at / STEP);
    let offset = offsets.get(step);
    if (offset === undefined) {
      offset = rules.offset(at);
      if (offsets.size >= MAX_CACHED_OFFSETS) offsets.clear();
      offsets.set(step, offset);
    }
    return iso(after(at, minutes(offset)));
  };
  return (at) => {
    const [moment, today] = [local(at), local(now())];
    const [day, time] = [moment.slice(0, 10), moment.slice(11, 19)];
    return today.startsWith(day) ? time : `${day} ${time}`;
  };
}

/** Calendar of a zone: the same time of day, across changes of its offset. */
export const siteCalendar =
  (zone: string): Calendar =>
  (at, days) => {
    const day = DateTime.fromMillis(at, { zone }).minus({ days });
    return { at: instant(day.toMillis()), weekday: day.weekday };
  };

/** Times of day in a zone. A time that a change of the offset skips is as long after midnight as written. */
export const timesOfDay =
  (zone: string): TimeOfDay =>
  (now, days, hour, minute) => {
    const day = DateTime.fromMillis(now, { zone }).plus({ days });
    const moment = day.startOf("day").set({ hour, minute });
    return { at: instant(moment.toMillis()), weekday: day.weekday, date: day.toISODate() ?? "" };
  };

/** A time of day, `days` after the day of `now`. `weekday`: 1 is Monday. `date`: e.g. 2026-11-21. */
export type TimeOfDay = (
  now: Instant,
  days: number,
  hour: number,
  minute: number,
) => { readonly at: Instant; readonly weekday: number; readonly date: string };

/** Formats a moment in the site's zone for people. */
export type WallClock = (at: Instant) => string;

/** Gives the same time of day, `days` earlier, in the site's zone. `weekday`: 1 is Monday. */
export type Calendar = (at: Instant, days: number) => { readonly at: Instant; readonly weekday: number };

/** Maximum characters of foreign text in a sentence. */
const MOST = 128;
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Foreign text for use in a sentence: one line, no control characters, capped. */
export function sanitizeForLog(text: string): string {
  const line = text.slice(0, MOST).toWellFormed().replaceAll(CONTROLS, "\uFFFD");
  return text.length > MOST ? `${line}...` : line;
}

/** Control and format characters (escape sequences, direction marks), line separators, lone surrogates. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const UNSAFE_BUT_LINES = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** Fast path: nearly all lines are plain, and matching Unicode properties is slow. */
const PLAIN = /^[\x20-\x7e\n\t]*$/;

/** Foreign text on one line. Characters that a terminal could obey become JSON escapes, line breaks as well. */
export const oneLine = (text: string): string => text.replaceAll(UNSAFE, escaped);

/** As `oneLine`, and keeps line breaks and tabs. JSON keeps its meaning. */
export const printable = (text: string): string =>
  PLAIN.test(text) ? text : text.replaceAll(UNSAFE_BUT_LINES, escaped);

const escaped = (character: string): string =>
  character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

/** Text of a caught value. Not every library throws an `Error`. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
