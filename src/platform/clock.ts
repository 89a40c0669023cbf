import { DateTime, IANAZone } from "luxon";

import {
  after,
  between,
  type Instant,
  instant,
  iso,
  later,
  type Millis,
  millis,
  minutes,
  seconds,
} from "../domain/units.ts";

/** A moment on two clocks: the wall clock, which can be set, and the monotonic clock. */
export interface ClockReading {
  readonly wall: Instant;
  /** Monotonic clock, ms since an arbitrary moment. */
  readonly monotonic: Millis;
}

/** Smaller differences are slewing or a slow event loop. */
const SMALLEST_JUMP = seconds(2);

/** Step of the wall clock between two readings, forward or back. Zero: not set. */
export function jumpBetween(before: ClockReading, after: ClockReading): Millis {
  const jump = after.wall - before.wall - (after.monotonic - before.monotonic);
  return millis(Math.abs(jump) < SMALLEST_JUMP ? 0 : jump);
}

/**
 * Lead of our clock over the partner's, beyond `tolerated`. Zero: within it, or unknown.
 * `partner`: the partner's `Date` and the monotonic time of its receipt. Null: none received.
 */
export function aheadOf(partner: ClockReading | null, ours: ClockReading, tolerated: Millis): Millis {
  const ahead = partner === null ? millis(0) : jumpBetween(partner, ours);
  return ahead > tolerated ? ahead : millis(0);
}

/**
 * The time that decisions use. While the wall clock is behind an earlier moment, time continues on the monotonic
 * clock.
 * Running commands then end on time, and new starts wait until the wall clock is believed again.
 */
export class BelievedClock {
  readonly #read: () => ClockReading;
  /** Called when the wall clock falls behind. */
  readonly #onDoubt: () => void;
  #last: ClockReading;
  #isDoubted: boolean;

  /** `recorded`: time of the last audit row. Null: none. */
  constructor(read: () => ClockReading, recorded: Instant | null, onDoubt: () => void) {
    this.#read = read;
    this.#onDoubt = onDoubt;
    this.#last = read();
    this.#isDoubted = recorded !== null && this.#last.wall < recorded;
    if (recorded !== null && this.#isDoubted) this.#last = { ...this.#last, wall: recorded };
  }

  get isDoubted(): boolean {
    return this.#isDoubted;
  }

  readonly now = (): Instant => {
    const { wall, monotonic } = this.#read();
    const fallsBehind = !this.#isDoubted && wall < this.#last.wall - SMALLEST_JUMP;
    if (fallsBehind) this.#isDoubted = true;
    const carriedOn = after(this.#last.wall, millis(monotonic - this.#last.monotonic));
    this.#last = { wall: this.#isDoubted ? later(wall, carriedOn) : wall, monotonic };
    if (fallsBehind) this.#onDoubt();
    // The monotonic clock has fractions of a millisecond; stored moments have none.
    return instant(Math.floor(this.#last.wall));
  };

  /** Accepts the wall clock: the partner's `Date` agrees, or the waiting time has passed. */
  believe(): void {
    this.#isDoubted = false;
    this.#last = this.#read();
  }
}

/** Longest timer. Timers beyond 2^31-1 ms fire at once, and long ones miss a wall clock that is set. */
export const LONGEST_TIMER = seconds(60);

/** Delay of a timer for this moment, at most `LONGEST_TIMER`. Undefined: no moment is known. */
export const delayUntil = (due: Instant | undefined, now: Instant): Millis =>
  due === undefined ? LONGEST_TIMER : millis(Math.min(Math.max(between(now, due), 0), LONGEST_TIMER));

/** Zone offsets only change at multiples of this. */
const STEP = minutes(15);
/** Cap on cached offsets: all boundaries of a busy week. */
const MAX_CACHED_OFFSETS = 1_000;

/** A zone that asks luxon once for each step. Luxon formats a date each time, and a fleet has 40,000 moments. */
class SteppedZone extends IANAZone {
  readonly #offsets = new Map<number, number>();

  override offset(at: number): number {
    const step = Math.floor(at / STEP);
    let offset = this.#offsets.get(step);
    if (offset === undefined) {
      offset = super.offset(at);
      if (this.#offsets.size >= MAX_CACHED_OFFSETS) this.#offsets.clear();
      this.#offsets.set(step, offset);
    }
    return offset;
  }
}

/** Zones by name. Luxon checks the name of each new one, which takes a millisecond, and a fleet starts thousands of sites. */
const zones = new Map<string, SteppedZone>();

function zoneOf(name: string): SteppedZone {
  const zone = zones.get(name) ?? new SteppedZone(name);
  zones.set(name, zone);
  return zone;
}

/**
 * Formats a moment in the site's zone: the time of day, with the date unless it is today. A time that the clocks show
 * twice, when they are set back, has its offset.
 */
export function wallClock(zone: string, now: () => Instant): WallClock {
  const rules = zoneOf(zone);
  const local = (at: Instant): string => iso(after(at, minutes(rules.offset(at))));
  return (at) => {
    const [moment, today] = [local(at), local(now())];
    const [day, clock] = [moment.slice(0, 10), moment.slice(11, 19)];
    const isShownTwice =
      rules.offset(at - HOUR) > rules.offset(at) || rules.offset(at) > rules.offset(at + HOUR);
    const time = isShownTwice ? `${clock} GMT${rules.formatOffset(at, "narrow")}` : clock;
    return today.startsWith(day) ? time : `${day} ${time}`;
  };
}

/** Clocks are set back by no more than this. */
const HOUR = minutes(60);
const MINUTE = minutes(1);
const DAY = minutes(24 * 60);

/** Calendar of a zone: the same time of day, across changes of its offset. */
export const siteCalendar = (name: string): Calendar => {
  const zone = zoneOf(name);
  return (at, days) => {
    const local = at - days * DAY + zone.offset(at) * MINUTE;
    const offset = zone.offset(at - days * DAY);
    const same = instant(local - offset * MINUTE);
    // Luxon is for times near a change of the offset: a proof of a fleet asks for a million days.
    if (zone.offset(same) === offset) return { at: same, weekday: weekdayOf(local) };
    const day = DateTime.fromMillis(at, { zone }).minus({ days });
    return { at: instant(day.toMillis()), weekday: day.weekday };
  };
};

/** Day of the week of a local time, in ms since 1970. 1 is Monday. */
const weekdayOf = (local: number): number => ((((Math.floor(local / DAY) + 3) % 7) + 7) % 7) + 1;

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

/**
 * Full jitter: uniform between zero and the ceiling, so that gateways do not retry at the same time. `fraction`:
 * random, 0 to 1.
 */
export const backoff = (failures: number, fraction: number, first: Millis, most: Millis): Millis =>
  millis(Math.round(fraction * Math.min(most, first * 2 ** Math.min(failures, 30))));
