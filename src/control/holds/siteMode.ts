import type { Json } from "../../domain/audit.ts";
import { LONGEST_HOLD, type ObservePeriod, periodEnd } from "../../domain/hold.ts";
import { after, earlier, type Instant, iso, seconds } from "../../domain/units.ts";
import type { WallClock } from "../../platform/text.ts";

/** After a failed commit, the end of a period is tried again so soon. */
const RETRY = seconds(5);

/** The mode of the site: as configured, or observe for a period that a person asked for. */
export class SiteMode {
  readonly configured: "drive" | "observe";
  #period: ObservePeriod | null = null;
  #dueAt: Instant | null = null;
  #isObserving = false;

  constructor(configured: "drive" | "observe") {
    this.configured = configured;
  }

  get current(): "drive" | "observe" {
    return this.#isObserving ? "observe" : this.configured;
  }

  /** The period that lasts. Null: the mode is as configured. */
  get period(): ObservePeriod | null {
    return this.#isObserving ? this.#period : null;
  }

  begin(period: ObservePeriod): void {
    this.#period = period;
    this.#dueAt = periodEnd(period);
    this.#isObserving = true;
  }

  end(): void {
    this.#period = null;
    this.#dueAt = null;
    this.#isObserving = false;
  }

  /** As stored. A period that has passed meanwhile does not apply, and its end is recorded at `dueAt`. */
  restore(period: ObservePeriod | null, now: Instant, dueAt: Instant = now): void {
    this.end();
    if (period === null) return;
    // A clock that was ahead opened it: it lasts no longer than a day from now.
    this.begin({ ...period, cap: earlier(period.cap, after(now, LONGEST_HOLD)) });
    if (now < periodEnd(period)) return;
    this.#isObserving = false;
    this.#dueAt = dueAt;
  }

  /** As after a failed commit. */
  rollBack(stored: ObservePeriod | null, now: Instant): void {
    this.restore(stored, now, after(now, RETRY));
  }

  /** The period whose end has come. Null: none. */
  due(now: Instant): ObservePeriod | null {
    return this.#dueAt !== null && this.#dueAt <= now ? this.#period : null;
  }

  /** The next moment at which time changes the mode. Undefined: none. */
  next(): Instant | undefined {
    return this.#dueAt ?? undefined;
  }
}

/** "mode observe until 06:00:00, by anna: work on the panel". */
export const formatPeriod = (period: ObservePeriod, wallClock: WallClock): string =>
  `mode observe until ${wallClock(periodEnd(period))}, by ${period.by}: ${period.reason}`;

/** A period as the API shows it. */
export const periodFacts = (period: ObservePeriod): { readonly [member: string]: Json } => ({
  since: iso(period.since),
  until: iso(periodEnd(period)),
  by: period.by,
  reason: period.reason,
});
