import { MINUTE } from "./plan.ts";

const SECOND = 1_000;
/** Whom an excuse for all concerns. */
const EVERYONE = "*";
/** L1: undisturbed, nobody is wrong for longer than this; the start or the end of an event is no disturbance. */
const SETTLE = 30 * SECOND;
/** After a start, nothing new begins before the partner was asked, or for so long (DESIGN 5.7). */
export const GATE = 11 * SECOND;
/** A charger that was deaf or refused learns from the next refresh (5.6). */
export const REFRESH = 60 * SECOND;
/** A clock that was set is noticed at the end of a nap (5.7). */
export const NAP = 60 * SECOND;
/** A clock that is behind the record is doubted for so long, and nothing new starts (5.7). */
const DOUBT = 5 * MINUTE;
/** The partner is asked again after a failure within the longest back-off (5.7). */
export const BACKOFF = 5 * MINUTE;
/** An unplanned end releases within so much (5.2). */
const TAIL = 10 * MINUTE;
/** A change that only lists can tell of may still be on its way for so long. */
const NEWS_LASTS = 30 * MINUTE;
/** A moment that is further off than this is none that could pass today. */
const LONGEST_ERROR = 60 * MINUTE;
/** A request, with the jitter of the polling aside. */
const REQUEST = 15 * SECOND;

/**
 * L1 for every charger. It does what the oracle says, or has not for at most 30 s; or one of these excuses it:
 * - a fault that it suffers, until 30 s after its end; plus 11 s after a crash, a refresh after deafness, a nap after
 *   the clock was set, and as long as that clock may be doubted;
 * - a change at the partner that concerns its vehicle, until 30 s after the first webhook with it was taken, plus the
 *   10 min over which an unplanned end may be spread;
 * - where no webhook brings it, until 30 s (and 10 min) after the next list could; after the second for an absence,
 *   or for old news that came late; counted from when the partner, the disk and the gateway could work again, back-off
 *   included;
 * - where only telemetry can tell who is where, until 30 s after it did.
 *
 * A disk that refuses commits excuses everyone from everything but one: a charger whose event is over is released
 * within 30 s, unless a reason other than the disk excuses it.
 */
export class Patience {
  readonly #now: () => number;
  /** The longest from one list to the next. */
  readonly #list: number;
  /** By charger, by vehicle, "*" for all. */
  readonly #until = new Map<string, number>();
  /** The same, for what is excused only because the disk refuses commits. */
  readonly #refusedUntil = new Map<string, number>();
  readonly #wrongSince = new Map<string, number>();
  readonly #limitedSince = new Map<string, number>();
  /** What changed at the partner lately: whom it concerns, and when. */
  readonly #news: { readonly whom: readonly string[]; readonly at: number }[] = [];
  /** Until then nothing may be heard of, or kept. */
  #troubledUntil = 0;
  /** Until then what was stored may carry a wrong moment. */
  #wrongMomentsUntil = 0;

  constructor(now: () => number, pollEvery: number) {
    this.#now = now;
    this.#list = 1.1 * pollEvery + REQUEST;
  }

  /** A fault: it takes so long, and 30 s. */
  disturbed(whom: string, takes: number): void {
    this.#excuse([whom], takes + SETTLE);
  }

  /** Something changed at the partner. `webhook`: when it is told; null: so many lists will tell. */
  changed(whom: readonly string[], webhook: number | null, lists: number): void {
    this.#news.push({ whom, at: this.#now() });
    if (webhook === null) this.listsWillTell(whom, lists);
    else this.#excuse(whom, webhook + SETTLE + TAIL);
    this.heard(whom);
  }

  /** Only so many complete lists in a row can set this right. */
  listsWillTell(whom: readonly string[], lists: number): void {
    const trouble = Math.max(0, this.#troubledUntil - this.#now());
    this.#excuse(whom, trouble + lists * this.#list + SETTLE + TAIL);
  }

  /** A change is stored now, with the moment that the gateway's clock shows. */
  heard(whom: readonly string[]): void {
    this.#excuse(whom, this.#wrongMomentsUntil - this.#now());
  }

  /** For so long nothing can be heard of, or kept. */
  newsDelayed(takes: number): void {
    this.#troubledUntil = Math.max(this.#troubledUntil, this.#now() + takes);
    for (const whom of this.#recent()) this.listsWillTell(whom, 2);
  }

  /**
   * The disk refuses commits for so long. What was stored before is known all the same: only who waits for news until
   * then goes on to wait.
   */
  diskRefuses(takes: number): void {
    this.#excuse(["*"], takes + SETTLE, this.#refusedUntil);
    this.#troubledUntil = Math.max(this.#troubledUntil, this.#now() + takes);
    const waits = takes + 2 * this.#list + SETTLE + TAIL;
    for (const one of this.#recent().flat()) {
      const isWaiting = (this.#until.get(one) ?? 0) >= this.#now();
      this.#excuse([one], waits, isWaiting ? this.#until : this.#refusedUntil);
    }
  }

  /** The gateway's clock is wrong for so long. */
  clockSet(by: number, lasts: number): void {
    this.disturbed("*", lasts + DOUBT + NAP);
    const until = this.#now() + lasts + DOUBT + Math.min(Math.abs(by), LONGEST_ERROR) + TAIL + SETTLE;
    this.#wrongMomentsUntil = Math.max(this.#wrongMomentsUntil, until);
    for (const whom of this.#recent()) this.heard(whom);
  }

  /** Whether this charger has been wrong for too long. */
  isOver(charger: string, vehicle: string | null, isRight: boolean): boolean {
    return this.#lasts(this.#wrongSince, charger, isRight) && !this.isExcused(charger, vehicle);
  }

  /** Whether this charger, which should be free, has been limited for too long, the disk being no excuse. */
  isOverdue(charger: string, vehicle: string | null, isRight: boolean): boolean {
    const isLong = this.#lasts(this.#limitedSince, charger, isRight);
    return isLong && !isIn(this.#until, charger, vehicle, this.#now());
  }

  isExcused(charger: string, vehicle: string | null): boolean {
    const now = this.#now();
    return isIn(this.#until, charger, vehicle, now) || isIn(this.#refusedUntil, charger, vehicle, now);
  }

  /** Whether nothing but a disk that refuses commits excuses it. */
  isExcusedByDisk(charger: string, vehicle: string | null): boolean {
    return this.isExcused(charger, vehicle) && !isIn(this.#until, charger, vehicle, this.#now());
  }

  /** Whether anybody is excused. */
  get isNeeded(): boolean {
    return [this.#until, this.#refusedUntil].some((untils) =>
      [...untils.values()].some((until) => until > this.#now()),
    );
  }

  #lasts(since: Map<string, number>, charger: string, isRight: boolean): boolean {
    const now = this.#now();
    if (isRight) {
      since.delete(charger);
      return false;
    }
    const from = since.get(charger) ?? now;
    since.set(charger, from);
    return now - from > SETTLE;
  }

  #recent(): readonly (readonly string[])[] {
    return this.#news.filter(({ at }) => at > this.#now() - NEWS_LASTS).map(({ whom }) => whom);
  }

  #excuse(whom: readonly string[], forMs: number, untils = this.#until): void {
    const until = this.#now() + forMs;
    for (const one of whom) untils.set(one, Math.max(untils.get(one) ?? 0, until));
  }
}

const isIn = (
  untils: ReadonlyMap<string, number>,
  charger: string,
  vehicle: string | null,
  now: number,
): boolean => [EVERYONE, charger, vehicle ?? EVERYONE].some((one) => now <= (untils.get(one) ?? 0));
