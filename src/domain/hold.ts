import { type Setpoint, formatLevel } from "./setpoint.ts";
import {
  after,
  type ChargerId,
  earlier,
  type EventId,
  type Instant,
  millis,
  type VehicleId,
  hours,
} from "./units.ts";

/** A vehicle's hold moves along with it. */
export type HoldScope =
  | { readonly kind: "vehicle"; readonly vehicle: VehicleId }
  | { readonly kind: "charger"; readonly charger: ChargerId }
  | { readonly kind: "site" };

/** The end of a hold, unless its longest duration passes or a person ends it before. */
export type HoldEnd =
  | { readonly kind: "at"; readonly at: Instant }
  /** `vehicle`: the one on the charger at the opening. Null: not known. */
  | { readonly kind: "unplugged"; readonly charger: ChargerId; readonly vehicle: VehicleId | null }
  | { readonly kind: "energy"; readonly wh: number; readonly meter: Meter }
  /** `latest`: last window end of these events, extended when they are. */
  | { readonly kind: "events"; readonly events: readonly EventId[]; readonly latest: Instant };

/** Energy since the opening, by the register of the charger. */
export interface Meter {
  readonly charger: ChargerId;
  readonly register: "energyWh" | "sessionWh";
  /** Reading from which this charger's share counts. */
  readonly fromWh: number;
  /** Delivered before that reading. */
  readonly deliveredWh: number;
  /** A later reading. A register below it has started anew. Absent: none yet. */
  readonly lastWh?: number;
}

/** An operator's override. It is one more claim in the arbitration, and it ends by itself. */
export interface Hold {
  /** `hold-EPOCH-NUMBER`. Holds of versions before 0.1 have the id of their charger. */
  readonly id: string;
  readonly scope: HoldScope;
  /** Null: exempt. Events do not apply, and the charger gets its own default. */
  readonly level: Setpoint | { readonly kind: "pause" } | null;
  readonly end: HoldEnd;
  readonly since: Instant;
  /** The opening by the clock as it was set back since. Absent: `since`. */
  readonly openedAt?: Instant;
  /** Latest end. Null: only for an exemption from the events in force, which ends with them. */
  readonly cap: Instant | null;
  readonly by: string;
  readonly reason: string;
  /** `Idempotency-Key` of the request. Null: none. */
  readonly key: string | null;
  /** Null: open. An ended hold is kept for a day, so that a repeated request finds it. */
  readonly ended: { readonly at: Instant; readonly by: string; readonly why: string } | null;
  /** Absent: not computed yet. */
  readonly costs?: readonly HoldCost[];
  /** The hold is over, and its costs have their measured part. */
  readonly isMeasured?: true;
}

/** Energy that a hold takes from an event: what is drawn above the level of the event, in Wh. */
export interface HoldCost {
  readonly event: EventId;
  /** By the plan, when the hold opened. Null: charger and vehicle have no limit to estimate their draw from. */
  readonly estimatedWh: number | null;
  /** By the meters, when it is over. Null: not over yet. */
  readonly measured: MeasuredCost | null;
}

/** Measured part of a cost. */
export interface MeasuredCost {
  /** Null: no vehicle has readings. */
  readonly wh: number | null;
  /** Vehicles that the hold freed from the event. */
  readonly vehicles: number;
  /** Vehicles of these without readings: their part is unknown. */
  readonly unknown: number;
}

/** Longest duration of a hold. */
export const LONGEST_HOLD = hours(24);

/** Moment at which time alone ends the hold. An exemption from events may be extended when these are. */
export function endOf({ end, since, cap }: Pick<Hold, "end" | "since" | "cap">): Instant {
  const own = end.kind === "at" ? end.at : end.kind === "events" ? end.latest : after(since, LONGEST_HOLD);
  return cap === null ? own : earlier(own, cap);
}

/** Energy so far, by the latest reading of the register. */
export const deliveredWh = ({ deliveredWh, fromWh }: Meter, readingWh: number): number =>
  deliveredWh + Math.max(0, readingWh - fromWh);

/** "exempt", "16 A", "pause". */
export const formatHoldLevel = ({ level }: Pick<Hold, "level">): string =>
  level === null ? "exempt" : formatLevel(level);

/** "veh-214", "bay-01", "the site". */
export function formatScope(scope: HoldScope): string {
  switch (scope.kind) {
    case "vehicle":
      return scope.vehicle;
    case "charger":
      return scope.charger;
    case "site":
      return "the site";
  }
}

/** The body of version 0.1 and earlier: a release of one charger from the events in force. */
interface FormerHold {
  readonly charger: ChargerId;
  readonly events: readonly EventId[];
  readonly since: Instant;
  readonly until: Instant;
}

/** Reads a stored hold, also one of an earlier version. */
export function storedHold(stored: Hold | FormerHold): Hold {
  if ("scope" in stored) return stored;
  const { charger, events, since, until } = stored;
  return releaseHold({ id: charger, charger, events, since, latest: until, by: "operator" });
}

/** The hold that `release` opens: exempt from the events in force, until these end. */
export const releaseHold = ({
  id,
  charger,
  events,
  since,
  latest,
  by,
}: Pick<Hold, "id" | "since" | "by"> & {
  readonly charger: ChargerId;
  readonly events: readonly EventId[];
  readonly latest: Instant;
}): Hold => ({
  id,
  scope: { kind: "charger", charger },
  level: null,
  end: { kind: "events", events, latest },
  since,
  cap: null,
  by,
  reason: "release",
  key: null,
  ended: null,
});

/** A release of one charger by a person. Its own decision shows what it sets aside. */
export const isRelease = ({ scope, level, end, reason }: Hold): boolean =>
  scope.kind === "charger" && level === null && end.kind === "events" && reason === "release";

/** A person has the whole site observe: decisions are recorded and not sent, until the end. */
export interface ObservePeriod {
  readonly since: Instant;
  /** The end that was asked for. */
  readonly until: Instant;
  /** Latest end. */
  readonly cap: Instant;
  readonly by: string;
  readonly reason: string;
}

/** Moment at which the period ends. */
export const periodEnd = ({ until, cap }: Pick<ObservePeriod, "until" | "cap">): Instant =>
  earlier(until, cap);

/** The clock was set back by `jump` ms: the longest duration ends at the same real moment as before. */
export const cappedAfterJump = <Capped extends { readonly cap: Instant | null }>(
  hold: Capped,
  jump: number,
): Capped => (hold.cap === null ? hold : { ...hold, cap: after(hold.cap, millis(-jump)) });

/** `cappedAfterJump`, and what is reported from now on was reported after the opening. */
export function heldAfterJump(hold: Hold, jump: number): Hold {
  const capped = cappedAfterJump(hold, jump);
  const { openedAt, since } = capped;
  return endsByReport(capped) ? { ...capped, openedAt: after(openedAt ?? since, millis(-jump)) } : capped;
}

/** A message of a charger ends the hold, not time alone. */
export const endsByReport = ({ end }: Hold): boolean => end.kind === "unplugged" || end.kind === "energy";

/** Events that a hold exempts from. Empty: it lasts until something else. */
export const setAsideBy = (hold: Hold | null): ReadonlySet<EventId> =>
  new Set(hold?.end.kind === "events" ? hold.end.events : []);
