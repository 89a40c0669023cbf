import { factOf, type Json, numberOf, textOf } from "../../domain/audit.ts";
import type { Charger } from "../../domain/charger.ts";
import type { Hold } from "../../domain/hold.ts";
import type { Reason } from "../../domain/reason.ts";
import {
  formatLevel,
  formatRecorded,
  levelOf,
  type LevelView,
  parseLevel,
  viewOf,
} from "../../domain/setpoint.ts";
import { iso, type Instant } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import type { WallClock } from "../../platform/clock.ts";
import { formatHold, holdFacts } from "../holds/holds.ts";
import type { Dispatch } from "../schedule/expand.ts";
import { limitedSentence } from "./reason.ts";
import { levelAtRest, mostOf } from "./limits.ts";
import type { ControlSettings } from "../ports.ts";

/**
 * An input that counts for a charger.
 * Status: `wins`; `overruled` by the winner; `limits` the winner's level; `waits` for its start or for a condition;
 * `over`: has ended.
 */
type Claim = {
  readonly kind: "event" | "hold" | "limit" | "default";
  /** Id of the event or hold, or the name of the limit. */
  readonly source: string;
  /** Null: the claim has no level of its own. */
  readonly level: LevelView | null;
  readonly since: string | null;
  readonly until: string | null;
  readonly status: "wins" | "overruled" | "limits" | "waits" | "over";
  readonly because: string;
};

/** All claims on a charger or a vehicle at one moment, the winner first. */
export type Explanation = {
  /** A sentence for people. */
  readonly sentence: string;
  /** Null: the vehicle is at no charger. */
  readonly charger: string | null;
  readonly vehicle: string | null;
  readonly at: string;
  readonly claims: readonly Claim[];
  /** The level without any event. `most`: the largest that charger and vehicle allow. Null: no limit is configured. */
  readonly without: { readonly level: LevelView; readonly most: LevelView | null };
};

/** The reason at a moment, and the facts that no reason has. */
export interface ExplainedMoment {
  readonly at: Instant;
  /** By the plan: it has not begun yet. */
  readonly isAhead: boolean;
  /** The moment is in the past, and no decision is on record. Absent: false. */
  readonly isUnrecorded?: boolean;
  /** Null: the vehicle is at no charger. */
  readonly charger: Charger | null;
  readonly vehicle: Vehicle | null;
  /** An identity that no vehicle has, and the charger that reports it. Null: none. */
  readonly unknown: { readonly charger: string; readonly identity: string } | null;
  /** Null: no event and no hold applies. */
  readonly reason: Reason | null;
  /** Level that stays since the last event (`atEnd`), while none wins. Absent or null: none. */
  readonly rest?: LevelView | null;
  /** Open holds that do not apply, since a newer or a narrower one does, or no event of theirs is in force. */
  readonly otherHolds: readonly Hold[];
  /** Dispatches that start later, or that wait for the vehicle to be plugged in. */
  readonly waiting: readonly WaitingDispatch[];
  /** Conditions that keep the decision from the charger. */
  readonly bars: readonly ShownBar[];
}

interface WaitingDispatch {
  readonly dispatch: Dispatch;
  readonly because: string;
}

interface ShownBar {
  readonly source: string;
  readonly until: Instant | null;
  readonly because: string;
}

type Rules = Pick<ControlSettings, "ties">;

/** Combines reason, conditions and coming dispatches to the full stack of claims. */
export function explain(moment: ExplainedMoment, rules: Rules, wallClock: WallClock): Explanation {
  const { at, charger, vehicle, reason, waiting, bars, otherHolds } = moment;
  const isLimited = reason !== null && reason.winner !== null && charger !== null && vehicle !== null;
  const rest = isLimited ? levelAtRest(charger, vehicle) : (moment.rest ?? null);
  const most = charger === null ? null : mostOf(charger, vehicle);
  const level = rest?.pause === true ? "paused" : rest === null ? null : `at ${formatLevel(levelOf(rest))}`;
  const own = level === null ? `decides by itself${upTo(most)}` : `stays ${level} (atEnd)`;
  const held = reason === null ? null : heldClaim(reason);
  const limits = reason === null ? [] : limitsOf(reason);
  // An event does not change the level that a hold sets.
  const heldLevel = held?.status === "wins" ? (limits.at(-1)?.level ?? held.level) : null;
  const without = { level: heldLevel ?? rest ?? { release: true }, most } as const;
  const event = reason === null ? null : winnerOf(reason);
  const winner = event ?? held;
  const claims: Claim[] = [
    ...(winner === null ? [] : [winner]),
    ...(held === null || held === winner ? [] : [held]),
    ...bars.map(barClaim),
    ...limits,
    ...(reason === null ? [] : overruledOf(reason, rules)),
    ...(reason === null ? [] : setAsideOf(reason)),
    ...otherHolds.map((hold) => otherHold(hold, wallClock)),
    ...waiting.map(({ dispatch, because }) => waitingClaim(dispatch, because)),
  ];
  const fallback: Claim = {
    kind: "default",
    source: "charger",
    level: rest ?? { release: true },
    since: null,
    until: null,
    status: winner === null ? "wins" : "overruled",
    because: `without ${rest === null ? "a setpoint" : "an event"} the charger ${own}`,
  };
  return {
    sentence: sentenceOf(moment, own, wallClock),
    charger: charger?.id ?? null,
    vehicle: vehicle?.id ?? null,
    at: iso(at),
    claims: winner === null ? [fallback, ...claims] : [...claims, fallback],
    without,
  };
}

const winnerOf = ({ winner }: Reason): Claim | null =>
  winner === null ? null : eventClaim(winner, "wins", `${rankOf(winner)}${offsetOf(winner)}`);

/** The hold of a reason. It wins, or it only sets some events aside and another event wins. Null: none. */
function heldClaim({ hold, winner }: Reason): Claim | null {
  if (hold === null) return null;
  const level = factOf(hold, "level");
  const [by, reason] = [textOf(hold, "by") ?? "an operator", textOf(hold, "reason") ?? ""];
  return {
    kind: "hold",
    source: textOf(hold, "id") ?? "",
    level: level === null ? { release: true } : (level as LevelView),
    since: textOf(hold, "since"),
    until: textOf(hold, "until"),
    status: winner === null ? "wins" : "limits",
    because: `by ${by}${reason === "" ? "" : `: ${reason}`}`,
  };
}

/** Events that an exemption names. */
function setAsideOf({ hold }: Reason): readonly Claim[] {
  const events = factOf(hold, "events");
  if (!Array.isArray(events) || textOf(hold, "kind") === "level") return [];
  return events.map((event) => ({
    kind: "event",
    source: String(event),
    level: null,
    since: null,
    until: null,
    status: "overruled",
    because: `set aside by ${textOf(hold, "id") ?? "an operator"}`,
  }));
}

function otherHold(hold: Hold, wallClock: WallClock): Claim {
  const facts = holdFacts(hold);
  return {
    kind: "hold",
    source: hold.id,
    level: hold.level === null ? { release: true } : viewOf(hold.level),
    since: textOf(facts, "since"),
    until: textOf(facts, "until"),
    status: "overruled",
    because: `${formatHold(hold, wallClock)}; another claim applies`,
  };
}

function overruledOf({ winner, overruled, overruledCount, hold }: Reason, { ties }: Rules): readonly Claim[] {
  const isHeld = winner === null && hold !== null;
  const claims = overruled.map((claim) =>
    eventClaim(
      claim,
      "overruled",
      isHeld ? `${rankOf(claim)}; a hold beats every event` : whyOverruled(claim, winner, ties),
    ),
  );
  const more = overruledCount - overruled.length;
  if (more <= 0) return claims;
  const rest: Claim = {
    kind: "event",
    source: `${more} more`,
    level: null,
    since: null,
    until: null,
    status: "overruled",
    because: "rank lower than those above",
  };
  return [...claims, rest];
}

function whyOverruled(claim: Json, winner: Json, ties: Rules["ties"]): string {
  const by = textOf(winner, "event");
  if (by === null) return rankOf(claim);
  if (numberOf(claim, "priority") !== numberOf(winner, "priority"))
    return `${rankOf(claim)}; ${by} has ${rankOf(winner)}`;
  return `${rankOf(claim)} as ${by}, which ${ties === "newest" ? "is newer" : "asks for less or is newer"}`;
}

const limitsOf = ({ limits }: Reason): readonly Claim[] =>
  limits.map((entry) => ({
    kind: "limit",
    source: textOf(entry, "by") ?? "",
    level: parseLevel(textOf(entry, "allowed") ?? ""),
    since: null,
    until: null,
    status: "limits",
    because: `${formatRecorded(textOf(entry, "asked") ?? "")} asked, ${formatRecorded(textOf(entry, "allowed") ?? "")} allowed`,
  }));

const eventClaim = (claim: Json, status: Claim["status"], because: string): Claim => ({
  kind: "event",
  source: textOf(claim, "event") ?? "",
  level: parseLevel(textOf(claim, "asked") ?? ""),
  since: textOf(claim, "from"),
  until: textOf(claim, "until"),
  status,
  because,
});

const waitingClaim = (dispatch: Dispatch, because: string): Claim => ({
  kind: "event",
  source: dispatch.event.id,
  level: viewOf(dispatch.setpoint),
  since: iso(dispatch.from),
  until: iso(dispatch.until),
  status: "waits",
  because,
});

const barClaim = ({ source, until, because }: ShownBar): Claim => ({
  kind: "limit",
  source,
  level: null,
  since: null,
  until: until === null ? null : iso(until),
  status: "limits",
  because,
});

const rankOf = (claim: Json): string => {
  const priority = numberOf(claim, "priority");
  return priority === null ? "no priority" : `priority ${priority}`;
};

function offsetOf(claim: Json): string {
  const [offset, spread] = [numberOf(claim, "offsetMs") ?? 0, numberOf(claim, "spreadMs") ?? 0];
  const cut = factOf(claim, "cutAt") === null ? "" : ", withdrawn or changed: its release is spread";
  return spread > 0
    ? `, starts ${Math.round(offset / 100) / 10} s into a random ${spread / 1000} s${cut}`
    : cut;
}

const upTo = (most: LevelView | null): string =>
  most === null ? "" : `, up to ${formatLevel(levelOf(most))}`;

function sentenceOf(
  { at, charger, vehicle, unknown, reason, waiting, bars, isAhead, isUnrecorded = false }: ExplainedMoment,
  own: string,
  wallClock: WallClock,
): string {
  const reported =
    unknown === null ? "" : `${unknown.charger} reports ${unknown.identity}, which no vehicle has`;
  const name = vehicle?.name ?? "the vehicle";
  const subject = charger === null ? name : vehicle === null ? charger.id : `${charger.id} (${name})`;
  if (isUnrecorded) return `${subject}: no decision is on record up to ${wallClock(at)}`;
  if (charger === null)
    return `${subject} is at no charger: no event acts on it now${reported && `; ${reported}`}`;
  const isObserved = bars.some(({ source }) => source === "observing");
  const verb = isObserved ? "would be" : bars.length > 0 ? "should be" : "is";
  const barred = bars.map(({ because }) => `; ${because}`).join("");
  const limited = vehicle === null ? charger.id : `${vehicle.name} at ${charger.id}`;
  if (reason !== null && reason.winner !== null)
    return `${limitedSentence(limited, reason, { isAhead, verb }, wallClock)}${barred}. Without any event the charger ${own}`;
  if (reason !== null && reason.hold !== null) return `${reason.words}${barred}`;
  const next = waiting.find(({ dispatch }) => dispatch.cutAt === null)?.dispatch;
  const then = next === undefined ? "" : `; ${next.event.id} starts ${wallClock(next.from)}`;
  const why = reported === "" ? "no event applies" : `${reported}, so no event applies`;
  return `${subject} ${own}: ${why}${then}${barred}`;
}
