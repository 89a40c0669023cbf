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
  hours,
} from "../../domain/units.ts";
import { chargingPhases } from "../decide/limits.ts";

/** A measurement's time by the charger's clock, and the time of its receipt. */
export interface Stamped {
  readonly at: Instant;
  readonly receivedAt: Instant;
}

/** State of a charger's clock, from its messages so far. */
export interface OwnClock {
  /** Lag of the clock. 0: not distinguishable from the delay of a message. */
  readonly behind: Millis;
  /**
   * A late message although the clock is right: buffered, or the clock was set back. Null: none since the last one
   * on time.
   */
  readonly late: Stamped | null;
}

/** Clock state before the first message. */
export const NO_CLOCK_KNOWN: OwnClock = { behind: millis(0), late: null };

/** `live`: the current state. `kept`: a past state from a buffer. `unsure`: the next messages decide. */
export type Age = "live" | "kept" | "unsure";

/** A shorter lag may be the delay of the message. */
const NOTABLE = minutes(1);
/** Cap on the age of measurements that a charger buffers while it is cut off. */
const LONGEST_KEPT = hours(7 * 24);
/** Tolerance of equal lags of one clock. Some clocks have whole seconds only. */
const EQUAL_LAG = seconds(1.5);
/** Two messages with equal lags prove a slow clock only this far apart. Buffered ones arrive all at once. */
const APART = seconds(2);
/** Tolerance of a right clock, for delays of the network. */
const STEADY = millis(500);

/**
 * Decides whether a live message shows the current state.
 * Messages that were buffered while the charger was cut off have shrinking lags.
 * A clock that is behind has equal lags, and one that stands still repeats its time.
 * `clock` is the state that `measuredAt` needs for this message.
 */
export function ageOfMessage(
  clock: OwnClock,
  message: Stamped,
): { readonly age: Age; readonly clock: OwnClock } {
  const lag = millis(message.receivedAt - message.at);
  if (lag <= NOTABLE) return { age: "live", clock: NO_CLOCK_KNOWN };
  const isBehind = { age: "live", clock: { behind: lag, late: null } } as const;
  if (lag > LONGEST_KEPT) return isBehind;
  const { behind, late } = clock;
  if (lag - behind <= NOTABLE)
    return { age: "live", clock: { behind: millis(Math.min(behind, lag)), late: null } };
  if (late === null) return { age: "unsure", clock: { behind, late: message } };
  if (late.at === message.at && message.receivedAt - late.receivedAt > NOTABLE) return isBehind;
  if (!hasEqualLag(late, message, EQUAL_LAG))
    return { age: "kept", clock: { behind, late: late.at === message.at ? late : message } };
  return message.receivedAt - late.receivedAt < APART ? { age: "unsure", clock } : isBehind;
}

/** Time of the measurement by our clock, at the latest its receipt. */
export const measuredAt = ({ behind }: Pick<OwnClock, "behind">, { at, receivedAt }: Stamped): Instant =>
  earlier(instant(at + behind), receivedAt);

/** The age of a retained message is known from its own time only. Null: that time is impossible. */
export const waitingSince = ({ at, receivedAt }: Stamped): Instant | null =>
  at > receivedAt + NOTABLE || at < receivedAt - LONGEST_KEPT ? null : earlier(at, receivedAt);

/** True: both messages have equal lags, so one clock sent them without a buffer in between. */
export const hasEqualLag = (before: Stamped, next: Stamped, slack: Millis = STEADY): boolean =>
  Math.abs(next.receivedAt - before.receivedAt - (next.at - before.at)) <= slack;

/** Last known facts from a charger's messages. */
export interface Presence {
  /** Null: never reported. */
  readonly online: boolean | null;
  readonly heardAt: Instant | null;
  /** Measurement time of the last voltages. Null: never reported. */
  readonly voltagesAt: Instant | null;
  /**
   * Volts that limits use since the last measurement, with hysteresis (limits.ts). Null: the declared ones.
   */
  readonly voltage: number | null;
  /** Measurement time of the last currents. Null: never reported. */
  readonly currentsAt: Instant | null;
  /** Last renewal of the published state by telemetry. Null: none. */
  readonly stateAt: Instant | null;
  /** Times of the last live telemetry. Null: none. */
  readonly stamped: Stamped | null;
  readonly clock: OwnClock;
  /** Telemetry since the clock is in doubt. Null: it is not in doubt. */
  readonly undecided: Telemetry | null;
  /** Measurement time of the newest telemetry. Null: none. */
  readonly measuredAt: Instant | null;
  /**
   * Time of the last report that nothing is plugged in. A vehicle may have come within the same second. Null: none since the
   * start, or since the clock was set back.
   */
  readonly unpluggedAt: Instant | null;
  /** All members reported so far, the newest value of each. */
  readonly telemetry: Telemetry | null;
}

/** Before the first message of a charger. */
export const ABSENT: Presence = {
  online: null,
  heardAt: null,
  voltagesAt: null,
  voltage: null,
  currentsAt: null,
  stateAt: null,
  stamped: null,
  clock: NO_CLOCK_KNOWN,
  undecided: null,
  measuredAt: null,
  unpluggedAt: null,
  telemetry: null,
};

/** Last report of every charger. */
export class Presences {
  readonly #presence = new Map<ChargerId, Presence>();
  readonly #mayReturn = new Set<ChargerId>();

  of(charger: ChargerId): Presence {
    return this.#presence.get(charger) ?? ABSENT;
  }

  update(charger: ChargerId, changes: Partial<Presence>): void {
    this.#presence.set(charger, { ...this.of(charger), ...changes });
  }

  /** The broker of this charger was away and came back: its next live "online" is a return. */
  expectReturn(charger: ChargerId): void {
    this.#mayReturn.add(charger);
  }

  mayReturn(charger: ChargerId): boolean {
    return this.#mayReturn.has(charger);
  }

  returned(charger: ChargerId): void {
    this.#mayReturn.delete(charger);
  }

  /** Times after now become now: nothing newer would be known for as long as the clock was ahead. */
  onClockMovedBack(now: Instant): void {
    const cut = (at: Instant | null): Instant | null => (at === null ? null : earlier(at, now));
    for (const [charger, known] of this.#presence)
      this.update(charger, {
        heardAt: cut(known.heardAt),
        voltagesAt: cut(known.voltagesAt),
        currentsAt: cut(known.currentsAt),
        stateAt: cut(known.stateAt),
        measuredAt: cut(known.measuredAt),
        // Holds that opened since have moved back by the whole step: an unplug as of now would be after them.
        unpluggedAt: null,
      });
  }
}

/** Measured currents older than this are not used. */
const FRESH_CURRENTS = minutes(1);
/**
 * Measured volts older than this are not used. A shorter value would alternate with a slow meter's interval.
 */
const FRESH_VOLTS = minutes(3);

/** Phases that carry a freshly measured current. Null: not known. */
export const freshPhases = ({ telemetry, currentsAt }: Presence, now: Instant): number | null =>
  currentsAt === null || now - currentsAt > FRESH_CURRENTS ? null : chargingPhases(telemetry?.currentsA);

/** Freshly measured volts, phase to neutral. Null: none. */
export const freshVoltage = ({ voltage, voltagesAt }: Presence, now: Instant): number | null =>
  voltagesAt === null || now - voltagesAt > FRESH_VOLTS ? null : voltage;

/** Shortest interval between two scans of all chargers. */
const CHECK_EVERY = seconds(10);

/**
 * Chargers that sent messages before and then fell silent, by the age of their last message.
 * `tick` is a monotonic clock: a clock step makes no charger silent.
 */
export class Silence {
  readonly #heard = new Map<ChargerId, Millis>();
  readonly #silent = new Set<ChargerId>();
  #checkedAt = millis(-Infinity);

  has(charger: ChargerId): boolean {
    return this.#silent.has(charger);
  }

  /** Records a message. Returns the length of the silence that it ends. Null: there was none. */
  noteMessage(charger: ChargerId, tick: Millis): Millis | null {
    const since = this.#heard.get(charger) ?? tick;
    this.#heard.set(charger, tick);
    return this.#silent.delete(charger) ? millis(tick - since) : null;
  }

  /** Restarts the charger's timer: no message could arrive until now. */
  restartTimer(charger: ChargerId, tick: Millis): void {
    this.#silent.delete(charger);
    if (this.#heard.has(charger)) this.#heard.set(charger, tick);
  }

  /** Chargers that became silent for `longest` since the last scan. */
  newlySilent(
    tick: Millis,
    longest: Millis,
    couldBeHeard: (charger: ChargerId) => boolean,
  ): readonly ChargerId[] {
    if (tick < this.#checkedAt + CHECK_EVERY) return [];
    this.#checkedAt = tick;
    const fallen: ChargerId[] = [];
    for (const [charger, heardAt] of this.#heard) {
      if (!couldBeHeard(charger)) this.restartTimer(charger, tick);
      else if (tick - heardAt >= longest && !this.#silent.has(charger)) fallen.push(charger);
    }
    for (const charger of fallen) this.#silent.add(charger);
    return fallen;
  }
}
