import type { Telemetry } from "../../domain/telemetry.ts";
import {
  earlier,
  type Instant,
  instant,
  type Millis,
  millis,
  minutes,
  seconds,
  type ChargerId,
} from "../../domain/units.ts";
import { chargingPhases } from "../decide/limits.ts";

/** When a charger says that something was so, and when that came. */
export interface Stamped {
  readonly at: Instant;
  readonly receivedAt: Instant;
}

/** What is known of a charger's clock by what it said so far. */
export interface OwnClock {
  /** How far it is behind; 0: not so far that it could be told from a measurement that took its time on the way. */
  readonly behind: Millis;
  /** A word that was late all the same: it was kept, or the clock was set back. Null: none since one was on time. */
  readonly late: Stamped | null;
}

/** Of a charger that has said nothing yet. */
export const NO_CLOCK_KNOWN: OwnClock = { behind: millis(0), late: null };

/** `live`: it is how things are. `kept`: how they were. `unsure`: the next words tell which of the two. */
export type Age = "live" | "kept" | "unsure";

/** A word that is late by less may have taken its time on the way. */
const NOTABLE = minutes(1);
/** A charger may keep what it measures while it is cut off, but not for longer. */
const LONGEST_KEPT = minutes(7 * 24 * 60);
/** Words of one clock are late alike to so much, whatever the network does; some clocks have whole seconds only. */
const ALIKE = seconds(1.5);
/** Two words that are late alike show it only when they came so far apart: kept ones come all at once. */
const APART = seconds(2);
/** A right clock, whatever the network does. */
const STEADY = millis(500);

/**
 * What a live message is worth. What was kept while the charger was cut off catches up, word by word; a clock that is
 * behind is late alike each time, and one that stands still says the same for long. `clock` is as `measuredAt` wants it for this word.
 */
export function ageOfMessage(
  clock: OwnClock,
  word: Stamped,
): { readonly age: Age; readonly clock: OwnClock } {
  const lag = millis(word.receivedAt - word.at);
  if (lag <= NOTABLE) return { age: "live", clock: NO_CLOCK_KNOWN };
  const isBehind = { age: "live", clock: { behind: lag, late: null } } as const;
  if (lag > LONGEST_KEPT) return isBehind;
  const { behind, late } = clock;
  if (lag - behind <= NOTABLE)
    return { age: "live", clock: { behind: millis(Math.min(behind, lag)), late: null } };
  if (late === null) return { age: "unsure", clock: { behind, late: word } };
  if (late.at === word.at && word.receivedAt - late.receivedAt > NOTABLE) return isBehind;
  if (!lagsAlike(late, word, ALIKE))
    return { age: "kept", clock: { behind, late: late.at === word.at ? late : word } };
  return word.receivedAt - late.receivedAt < APART ? { age: "unsure", clock } : isBehind;
}

/** By our clock; nothing is measured after it was received. */
export const measuredAt = ({ behind }: Pick<OwnClock, "behind">, { at, receivedAt }: Stamped): Instant =>
  earlier(instant(at + behind), receivedAt);

/** Of what waited at the broker only its own time tells the age: null where that cannot be. */
export const waitingSince = ({ at, receivedAt }: Stamped): Instant | null =>
  at > receivedAt + NOTABLE || at < receivedAt - LONGEST_KEPT ? null : earlier(at, receivedAt);

/** Whether the same clock, right or wrong, spoke twice without anything being kept in between. */
export const lagsAlike = (before: Stamped, next: Stamped, slack: Millis = STEADY): boolean =>
  Math.abs(next.receivedAt - before.receivedAt - (next.at - before.at)) <= slack;

/** What a charger last said. */
export interface Presence {
  /** Null: it never said. */
  readonly online: boolean | null;
  readonly heardAt: Instant | null;
  /** When the voltages were that it told last; null: it never told any. */
  readonly voltagesAt: Instant | null;
  /** Volts that limits use since the last measurement (hysteresis: limits.ts); null: the declared ones. */
  readonly voltage: number | null;
  /** When the currents were that it told last; null: it never told any. */
  readonly currentsAt: Instant | null;
  /** When its telemetry last had its published state renewed; null: never. */
  readonly stateAt: Instant | null;
  /** Of its last live telemetry; null: it told none. */
  readonly stamped: Stamped | null;
  readonly clock: OwnClock;
  /** What was said since its clock is in doubt; null: it is not. */
  readonly unsure: Telemetry | null;
  /** When the newest telemetry was measured; null: it told none. */
  readonly measuredAt: Instant | null;
  /** All members it ever told, the newest of each. */
  readonly telemetry: Telemetry | null;
}

/** Of a charger that never said anything. */
export const ABSENT: Presence = {
  online: null,
  heardAt: null,
  voltagesAt: null,
  voltage: null,
  currentsAt: null,
  stateAt: null,
  stamped: null,
  clock: NO_CLOCK_KNOWN,
  unsure: null,
  measuredAt: null,
  telemetry: null,
};

/** Measured currents older than this are not used. */
const FRESH_CURRENTS = minutes(1);
/** The same for volts. Shorter than a slow meter's interval, it would alternate between measured and declared volts. */
const FRESH_VOLTS = minutes(3);

/** Phases that carry a current, freshly measured; null: not known. */
export const freshPhases = ({ telemetry, currentsAt }: Presence, now: Instant): number | null =>
  currentsAt === null || now - currentsAt > FRESH_CURRENTS ? null : chargingPhases(telemetry?.currentsA);

/** Fresh measured volts, phase to neutral; null: none. */
export const freshVoltage = ({ voltage, voltagesAt }: Presence, now: Instant): number | null =>
  voltagesAt === null || now - voltagesAt > FRESH_VOLTS ? null : voltage;

/** Asked more often than this, everyone is not looked through again. */
const CHECK_EVERY = seconds(10);

/**
 * Which chargers spoke before and then fell silent, by the age of their last message (DESIGN 5.7). Measured on a clock
 * that never jumps: one that is set by years makes nobody silent. `tick` is its reading.
 */
export class Silence {
  readonly #heard = new Map<ChargerId, Millis>();
  readonly #silent = new Set<ChargerId>();
  #checkedAt = millis(-Infinity);

  has(charger: ChargerId): boolean {
    return this.#silent.has(charger);
  }

  /** A message came; answers how long it had been silent, null: not long enough to be noticed. */
  heard(charger: ChargerId, tick: Millis): Millis | null {
    const since = this.#heard.get(charger) ?? tick;
    this.#heard.set(charger, tick);
    return this.#silent.delete(charger) ? millis(tick - since) : null;
  }

  /** Nothing could be heard of it until now: what it missed is not held against it. */
  pardon(charger: ChargerId, tick: Millis): void {
    this.#silent.delete(charger);
    if (this.#heard.has(charger)) this.#heard.set(charger, tick);
  }

  /** Who has been silent for `longest` since the last time this was asked. */
  fallen(tick: Millis, longest: Millis, couldBeHeard: (charger: ChargerId) => boolean): readonly ChargerId[] {
    if (tick < this.#checkedAt + CHECK_EVERY) return [];
    this.#checkedAt = tick;
    const fallen: ChargerId[] = [];
    for (const [charger, heardAt] of this.#heard) {
      if (!couldBeHeard(charger)) this.pardon(charger, tick);
      else if (tick - heardAt >= longest && !this.#silent.has(charger)) fallen.push(charger);
    }
    for (const charger of fallen) this.#silent.add(charger);
    return fallen;
  }
}
