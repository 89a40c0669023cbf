import type { SetMessage } from "../chargers/native/payload.ts";
import type { ConnectorConfig } from "../config/ocpp.ts";
import type { Desired } from "../domain/setpoint.ts";
import { type Instant, instant, iso, type Millis, millis, minutes } from "../domain/units.ts";
import type { Answer } from "./calls.ts";
import type { OthersLimits } from "./foreignProfiles.ts";
import type { Composite, Capabilities, Dialect, Limit, Outcome, Request } from "./wire/dialect.ts";
import type { Level } from "./wire/profiles.ts";

/* Rules of orders to a connector. */

/** Answer to a `set`, as `ack` publishes it. */
export interface Ack {
  readonly id: string;
  readonly accepted: boolean;
  readonly value: number | null;
  readonly reason: string | null;
}

/** The station at the moment, as a connector needs it. */
export interface ReadyStation {
  readonly dialect: Dialect;
  readonly capabilities: Capabilities;
  /** The station's clock is ahead of ours by this much. Zero: it is not, or not known. */
  readonly clockAhead: Millis;
  readonly ask: <T>(request: Request<T>) => Promise<Answer<T>>;
}

export interface ConnectorPorts {
  readonly now: () => Instant;
  /** Null: the station is not ready. */
  readonly station: () => ReadyStation | null;
  /**
   * The limit is for the whole station: the lower one of ours and of another central system holds, whatever their stack
   * levels.
   */
  readonly isWholeStation: boolean;
  /** Limits of another central system that compete with ours in the charger. */
  readonly others: OthersLimits;
  readonly ack: (ack: Ack) => void;
  /** The charger reported the limit that it applies. Null: the last report no longer holds. */
  readonly onComposite: (composite: Composite | null) => void;
  /** `what`: a sentence for the log. */
  readonly onEvent: (what: string, details: Readonly<Record<string, unknown>>) => void;
}

/** A charging session of OCPP, by the id that the station reports. */
export interface Transaction {
  readonly id: string;
  /** Null: unknown. It began before our connection. */
  readonly startedAt: Instant | null;
}

/** An order, and the end of its lease. The lease counts from the receipt. */
export interface Leased {
  readonly order: SetMessage;
  readonly leaseEnd: Instant;
}

/** A limit that the charger accepted. */
export interface InForce extends Leased {
  readonly level: Level;
  readonly writtenAt: Instant;
  /** End of the profile in the charger. */
  readonly until: Instant;
  /** Null: outside a transaction. */
  readonly transaction: string | null;
}

const HOUR = 3_600_000;

/** Charging profiles that may be written, to spare the flash memory of the charger. */
export class WriteBudget {
  readonly #perHour: number;
  /** Writes of the last hour that were no refresh. */
  #writes: readonly Instant[] = [];
  /** Null: none yet. */
  lastWriteAt: Instant | null = null;

  constructor(perHour: number) {
    this.#perHour = perHour;
  }

  /** Time between two refreshes. */
  get interval(): Millis {
    return millis(HOUR / this.#perHour);
  }

  /** A profile outlasts the time until the next write is allowed. */
  get shortestProfile(): Millis {
    return millis(this.interval * 1.5);
  }

  /** `isRefresh`: the level was in force. Refreshes have a pace of their own, so they use up no writes. */
  add(at: Instant, isRefresh: boolean): void {
    this.lastWriteAt = at;
    if (isRefresh) return;
    this.#writes = [...this.#lastHour(at), at];
  }

  /** Reason why nothing more may be written now. Null: it may. */
  denial(now: Instant): string | null {
    const [first, ...more] = this.#lastHour(now);
    if (first === undefined || more.length + 1 < this.#perHour) return null;
    return `${this.#perHour} writes per hour are used up; the next is possible at ${iso(instant(first + HOUR))}`;
  }

  /** Without those dated ahead: the clock was set back since, by more than an hour perhaps. */
  #lastHour(now: Instant): readonly Instant[] {
    return this.#writes.filter((at) => at > now - HOUR && at <= now);
  }
}

/** Profile ids of ours begin here. Other systems number theirs from 1. */
const FIRST_PROFILE_ID = 7_300_000;

export const profileIdOf = (connector: number, inTransaction: boolean): number =>
  FIRST_PROFILE_ID + connector * 10 + (inTransaction ? 1 : 0);

/** Ids of all profiles of a connector. A limit of the whole station has none for a transaction. */
export const profileIdsOf = (connector: number, isWholeStation: boolean): readonly number[] =>
  (isWholeStation ? [false] : [false, true]).map((inTransaction) => profileIdOf(connector, inTransaction));

/** Start of a schedule before now. A clock that shows local time of the Americas is up to 12 h late. */
const EARLIER_START = minutes(12 * 60);

/** Connector, id and transaction of a charging profile. Null transaction: for every one. */
interface ProfileOf {
  readonly connector: number;
  readonly profileId: number;
  readonly transaction: Transaction | null;
}

/** Times of a charging profile by our clock, and the lead of the station's clock over it. */
interface ProfileSpan extends Pick<ReadyStation, "clockAhead"> {
  readonly began: Instant;
  readonly until: Instant;
}

/** The charging profile of a level, from now until its end. */
export function limitOf(
  { value, unit }: Level,
  { connector, profileId, transaction }: ProfileOf,
  { began, until, clockAhead }: ProfileSpan,
  { phases, sendPhases, profileKind }: ConnectorConfig,
  stackLevel: number,
): Limit {
  const from = instant(began - EARLIER_START);
  // A limit of the whole station has no session to be relative to. OCPP 2.0.1 forbids it (K01.FR.38).
  const kind = connector === 0 ? "absolute" : profileKind;
  return {
    connector,
    transaction: transaction?.id ?? null,
    value,
    unit,
    phases: sendPhases ? phases : null,
    stackLevel,
    profileId,
    kind,
    from,
    // Window in the time of a charger whose clock is ahead. By ours the limit would be over before it begins.
    until: instant(until + clockAhead),
    // A relative schedule for every transaction has no begin of its own.
    begin: kind === "absolute" ? from : transaction === null ? began : transaction.startedAt,
  };
}

/** Highest stack level for our profiles. Null: neither the charger nor the configuration names one. */
export function highestStackLevel(
  { stackLevel }: Pick<ConnectorConfig, "stackLevel">,
  { maxStackLevel }: Pick<Capabilities, "maxStackLevel">,
): number | null {
  if (stackLevel === null || maxStackLevel === null) return stackLevel ?? maxStackLevel;
  return Math.min(stackLevel, maxStackLevel);
}

/** Stack level of our profiles beside others. `isOutranked`: the charger allows none above them. */
export function stackBeside(
  others: number | null,
  config: Pick<ConnectorConfig, "stackLevel">,
  capabilities: Pick<Capabilities, "maxStackLevel">,
): { readonly level: number; readonly isOutranked: boolean } {
  const level = highestStackLevel(config, capabilities) ?? Math.max(1, (others ?? 0) + 1);
  return { level, isOutranked: others !== null && others >= level };
}

export const NO_SMART_CHARGING =
  "the charger has no Smart Charging (SupportedFeatureProfiles): it cannot be limited over OCPP";

export const isRefusal = (outcome: Outcome | string): boolean =>
  typeof outcome === "string" || !outcome.accepted;

export const describeRefusal = (outcome: Outcome | string): string =>
  typeof outcome === "string" ? outcome : `the charger answered SetChargingProfile with ${outcome.status}`;

/** True: the charger may have the profile. One that does not answer may have applied it. */
export const mayHold = (answer: Answer<Outcome>): boolean =>
  answer.kind === "unanswered" || (answer.kind === "answered" && answer.value.accepted);

/** True: this level is above the one in force. */
export const isIncrease = (held: Pick<InForce, "level"> | null, level: Level): boolean =>
  held !== null && held.level.unit === level.unit && level.value > held.level.value;

/** True: this level is in force, for this transaction. */
export const isHeld = (
  held: Pick<InForce, "level" | "transaction"> | null,
  level: Level,
  transaction: Transaction | null,
): boolean =>
  held !== null && isSameLevel(held.level, level) && held.transaction === (transaction?.id ?? null);

export const isSameLevel = (a: Level, b: Level): boolean => a.unit === b.unit && a.value === b.value;

/** Level in the unit of the order. Null: pause or release. */
export function acceptedValue(desired: Desired, level: Level | null): number | null {
  if (desired.kind === "current") return level?.unit === "A" ? level.value : desired.amperes;
  if (desired.kind === "power") return level?.unit === "W" ? level.value : desired.watts;
  return null;
}

/** Time from a new level to the question which limit applies, ms. Setpoints of other chargers go first. */
const ASK_APPLIED_AFTER = 1_000;
/** Time between two questions whether a cleared limit still applies, ms. */
const ASK_AGAIN_AFTER = 60_000;
/** Rounding of a charger. */
const SAME_LIMIT = 0.5;

/** The limit that a charger reports to apply (GetCompositeSchedule), as proof for the record. */
export class AppliedLimit {
  readonly #connector: number;
  readonly #station: () => ReadyStation | null;
  readonly #onChange: (composite: Composite | null) => void;
  #isUnsupported = false;
  /** Questions in a row that the charger left open. The third one is the last. */
  #unanswered = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Number of the present question. An answer to an earlier one is about a former level. */
  #question = 0;
  /** Null: not reported. */
  reported: Composite | null = null;
  /** Last level of ours. Null: none yet. */
  #level: Level | null = null;
  /** The charger has reported that it keeps that level after its profile was cleared. */
  #isKept = false;

  constructor(connector: number, { station, onComposite }: Pick<ConnectorPorts, "station" | "onComposite">) {
    this.#connector = connector;
    this.#station = station;
    this.#onChange = onComposite;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#question += 1;
  }

  forget(): void {
    this.close();
    if (this.reported === null) return;
    this.reported = null;
    this.#onChange(null);
  }

  /** The level has changed. The last report is of the former one. */
  askSoon(level: Level): void {
    this.forget();
    this.#level = level;
    this.#isKept = false;
    this.#timer = setTimeout(() => void this.#ask(level, false), ASK_APPLIED_AFTER);
  }

  /**
   * The level was cleared. Some makes accept that, and go on to apply it. `isUsed`: a session is under way. Without one the
   * limit of a charger may be 0.
   */
  askWhetherKept(isUsed: boolean): void {
    const level = this.#level;
    if (level === null || (level.value === 0 && !isUsed)) return;
    this.#timer = setTimeout(() => void this.#ask(level, true), ASK_APPLIED_AFTER);
  }

  async #ask(level: Level, isCleared: boolean): Promise<void> {
    const station = this.#station();
    if (this.#isUnsupported || station === null) return;
    const { ask, dialect } = station;
    const question = this.#question;
    const answer = await ask(dialect.composite(this.#connector, 60, level.unit));
    this.#unanswered = answer.kind === "unanswered" ? this.#unanswered + 1 : 0;
    if (answer.kind === "unsupported" || this.#unanswered === 3) this.#isUnsupported = true;
    if (answer.kind !== "answered" || answer.value === null || question !== this.#question) return;
    const { unit, value } = answer.value;
    const isOurs = unit === level.unit && Math.abs(value - level.value) < SAME_LIMIT;
    // A limit of the charger's own is none of the record, unless it ends one that was kept.
    if (isCleared && !isOurs && !this.#isKept) return;
    this.#isKept = isCleared && isOurs;
    this.reported = answer.value;
    this.#onChange(answer.value);
    if (this.#isKept) this.#timer = setTimeout(() => void this.#ask(level, true), ASK_AGAIN_AFTER);
  }
}
