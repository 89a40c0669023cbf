import { type Json, numberOf, textOf } from "../../domain/audit.ts";
import type { Charger } from "../../domain/charger.ts";
import type { Decision } from "../../domain/command.ts";
import type { TrackedEvent } from "../../domain/event.ts";
import { type Hold, isRelease } from "../../domain/hold.ts";
import { type Reason, MOST_OVERRULED } from "../../domain/reason.ts";
import { formatLevel, formatRecorded, levelOnRecord } from "../../domain/setpoint.ts";
import { type Instant, iso, type VehicleId, fromIso } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";
import type { WallClock } from "../../platform/clock.ts";
import { listed } from "../../platform/text.ts";
import { type Dispatch, askedOf, type ExpandContext } from "../schedule/expand.ts";
import { formatEnd as formatHoldEnd, holdFacts } from "../holds/holds.ts";
import type { Limit } from "./limits.ts";
import { type Deferral, formatDeferral } from "./pace.ts";
import type { Verdict } from "./verdict.ts";

/**
 * A sentence for operators.
 * Example: "bay-01 (Bus 214) to 16 A until 06:00:41: event EV-7731 priority 1, offset 137 s of 600 s;
 * overrules EV-7702".
 */
function sentence(verdict: Verdict, decision: Decision, wallClock: WallClock, ended: Ended): string {
  const { charger, vehicle, winner } = verdict;
  const subject = vehicle === null ? charger.id : `${charger.id} (${vehicle.name})`;
  const ends = decision.cause === "held" ? decision.until : (winner?.until ?? verdict.until);
  const until = ends === null ? "" : ` until ${wallClock(ends)}`;
  return `${subject} ${action(decision)}${until}: ${because(verdict, decision, wallClock, ended)}`;
}

/** The reason as a sentence and as values: winner, overruled, applied limits, end. */
export function reasonOf(
  verdict: Verdict,
  decision: Decision,
  wallClock: WallClock,
  ended: Ended = "in its time",
): Reason {
  const { winner, overruled, overruledCount, limits, hold, occupant } = verdict;
  return {
    words: sentence(verdict, decision, wallClock, ended),
    cause: decision.cause,
    until: verdict.until === null ? null : iso(verdict.until),
    held: null,
    winner: winner === null ? null : claim(winner),
    overruled: overruled.map(claim),
    overruledCount,
    limits: limits.map(({ by, asked, allowed }) => ({ by, asked, allowed })),
    occupant: occupantFacts(occupant),
    hold: hold === null ? null : holdFacts(hold),
  };
}

/** The record keeps its member `said` for the identity of an unknown vehicle. */
const occupantFacts = (occupant: Verdict["occupant"]): Json =>
  occupant.kind === "unknown" ? { kind: "unknown", said: occupant.identity } : { ...occupant };

function claim({ event, from, until, offset, setpoint, cutAt }: Dispatch): Json {
  return {
    event: event.id,
    priority: event.priority,
    asked: levelOnRecord(setpoint),
    from: iso(from),
    until: iso(until),
    offsetMs: offset,
    spreadMs: event.randomizeStart,
    cutAt: cutAt === null ? null : iso(cutAt),
  };
}

/** The reason while an increase is deferred: the same, and why the increase has to wait. */
export const reasonWhileDeferred = (
  reason: Reason,
  deferral: Deferral,
  charger: Charger,
  wallClock: WallClock,
): Reason => ({
  ...reason,
  words: `${reason.words}; held back until ${wallClock(deferral.until)}: ${formatDeferral(deferral, charger.writesPerHour)}`,
  held: { by: deferral.by, until: iso(deferral.until) },
});

function action({ desired, cause }: Decision): string {
  switch (desired.kind) {
    case "current":
    case "power":
      return `${cause === "held" ? "stays at" : "to"} ${formatLevel(desired)}`;
    case "pause":
      return "paused";
    case "release":
      return "released";
  }
}

function because(verdict: Verdict, decision: Decision, wallClock: WallClock, ended: Ended): string {
  const { winner, overruled, overruledCount, limits, hold } = verdict;
  if (decision.cause === "held") return "the next level has to wait";
  if (winner === null && hold?.level != null && decision.desired.kind !== "release") {
    const parts = [whyHeld(hold, wallClock), ...limits.map(formatLimit)];
    return [...parts, ...overrules(overruled, overruledCount)].join("; ");
  }
  if (winner === null) return whyReleased(verdict, decision, wallClock, ended);
  const { event, offset } = winner;
  const spread = event.randomizeStart;
  const shift = spread > 0 ? `, offset ${inSeconds(offset)} of ${inSeconds(spread)}` : "";
  const parts = [`event ${event.id} ${priority(winner)}${shift}`];
  if (winner.cutAt !== null)
    parts.push(`withdrawn or changed at ${wallClock(winner.cutAt)}, release is spread`);
  for (const bit of limits) parts.push(formatLimit(bit));
  return [...parts, ...overrules(overruled, overruledCount)].join("; ");
}

const overrules = (overruled: readonly Dispatch[], count: number): readonly string[] =>
  overruled.length === 0
    ? []
    : [
        `overrules ${listed(
          overruled.map(({ event: { id } }) => id),
          MOST_OVERRULED,
          count,
        )}`,
      ];

function whyReleased(
  { occupant, hold, vehicle }: Verdict,
  { event, vehicle: before, cause }: Decision,
  wallClock: WallClock,
  ended: Ended,
): string {
  if (cause === "operator" && hold !== null) return whyHeld(hold, wallClock);
  if (cause === "operator") return event === null ? "the hold on it has ended" : "by an operator";
  if (cause === "stop") return "setpointd stops";
  if (cause === "observe") return "setpointd observes from now on";
  if (event === null) return "the state was lost, so its former setpoint is not known";
  if (occupant.kind === "unknown")
    return `${before ?? "the vehicle"} has left, ${occupant.identity} is not ours`;
  if (vehicle === null || vehicle.id !== before) return `${before ?? "the vehicle"} has left`;
  return `event ${event} ${formatEnd(ended, vehicle)}`;
}

/** A release by a person keeps its own sentence. */
function whyHeld(hold: Hold, wallClock: WallClock): string {
  const { end, by, reason } = hold;
  if (isRelease(hold) && end.kind === "events")
    return `by an operator, from ${listed(end.events, MOST_OVERRULED)} until ${wallClock(end.latest)}`;
  return `hold ${hold.id} of ${by}, ${formatHoldEnd(hold, wallClock)}${reason === "" ? "" : `: ${reason}`}`;
}

function formatEnd(ended: Ended, { name }: Vehicle): string {
  switch (ended) {
    case "in its time":
      return "has ended";
    case "withdrawn":
      return "was withdrawn";
    case "no longer asked":
      return `was changed and no longer asks for ${name}`;
    case "cut short":
      return "was changed and has ended";
    case "put off":
      return `was changed and does not ask for ${name} yet`;
  }
}

function formatLimit(limit: { readonly [member in keyof Limit]: string }): string {
  const { by } = limit;
  const [asked, allowed] = [formatRecorded(limit.asked), formatRecorded(limit.allowed)];
  switch (by) {
    case "charger maximum":
      return `${asked} asked, the charger allows ${allowed}`;
    case "vehicle maximum":
      return `${asked} asked, the vehicle allows ${allowed}`;
    case "discharge maximum":
      return `${asked} asked, it can feed back ${allowed}`;
    case "charger minimum":
      return `${asked} asked, less than the charger can: ${allowed}`;
    case "held at minimum":
      return `${asked} asked, less than the charger can: held at ${allowed}`;
    case "zero":
      return `${asked} asked: ${allowed}`;
    case "takes amperes":
      return `${asked} asked, at this charger ${allowed}`;
    case "one phase":
      return `${asked} asked, less than three phases can: on ${allowed}`;
    case "phase switch":
      return `paused to be switched to ${asked}`;
    case "phase interval":
      return `${asked} would do it, but phases were switched too recently: ${allowed}`;
    case "cannot discharge":
      return `${asked} asked, it cannot feed back: ${allowed}`;
    default:
      // Recorded by another version.
      return `${by}: ${asked} to ${allowed}`;
  }
}

const priority = ({ event }: Dispatch): string =>
  event.priority === null ? "without priority" : `priority ${event.priority}`;

/** Seconds, with one decimal only where needed: "137 s", "2.4 s". */
const inSeconds = (span: number): string => `${Math.round(span / 100) / 10} s`;

/** Why an event is no longer in force for a vehicle that acted on it. */
export type Ended = "in its time" | "withdrawn" | "no longer asked" | "cut short" | "put off";

/** The way an event ended. `known` undefined: the event was forgotten, which happens only after its end. */
export function howEnded(
  known: TrackedEvent | undefined,
  vehicle: VehicleId,
  context: ExpandContext,
  now: Instant,
): Ended {
  if (known?.kind === "withdrawn") return "withdrawn";
  if (known?.kind === "over") return known.was === "withdrawn" ? "withdrawn" : "in its time";
  // The usual end: a fleet is released within moments, so no target is searched for.
  if (known === undefined || known.endings.length === 0) return "in its time";
  const asked = askedOf(known, vehicle, context);
  if (asked === null) return "no longer asked";
  if (asked.from > now) return "put off";
  return asked.until <= known.receivedAt ? "cut short" : "in its time";
}

/** A level of a stored reason, for people. Null: it has none. */
function levelIn(claim: Json, member: "asked" | "allowed"): string | null {
  const level = textOf(claim, member);
  return level === null ? null : formatRecorded(level);
}

/**
 * "Bus 214 at bay-01 is limited to 16 A until 06:00:41 because event EV-7731 (priority 1) asks for 11 kW; started
 * 05:02:17 (random offset 137 s of max 600 s)". The words of a deferred level, or of another program, stay as they are.
 * `verb`: "should be" while something keeps the setpoint from being in force, "would be" while the site only observes.
 */
export function limitedSentence(
  subject: string,
  { words, winner, limits, held, overruled, overruledCount }: Reason,
  { isAhead, verb }: { readonly isAhead: boolean; readonly verb: "is" | "should be" | "would be" },
  wallClock: WallClock,
): string {
  const [event, asked, from] = [textOf(winner, "event"), levelIn(winner, "asked"), textOf(winner, "from")];
  const until = textOf(winner, "until");
  if (event === null || asked === null || from === null || until === null || held !== null) return words;
  const time = (iso: string): string => wallClock(fromIso(iso));
  const level = levelIn(limits.at(-1) ?? null, "allowed") ?? asked;
  const spread = numberOf(winner, "spreadMs") ?? 0;
  const offset = Math.round((numberOf(winner, "offsetMs") ?? 0) / 100) / 10;
  const rank = numberOf(winner, "priority");
  const cutAt = textOf(winner, "cutAt");
  const random = spread > 0 ? ` (random offset ${offset} s of max ${spread / 1000} s)` : "";
  const others = overruled.flatMap((claim) => textOf(claim, "event") ?? []);
  return [
    `${subject} ${verb} ${level === "pause" ? "paused" : `limited to ${level}`} until ${time(until)} because event ${event} (${rank === null ? "no priority" : `priority ${rank}`}) asks for ${asked}`,
    `${isAhead ? "starts" : "started"} ${time(from)}${random}`,
    ...(cutAt === null ? [] : [`withdrawn or changed at ${time(cutAt)}, its release is spread`]),
    ...limits.flatMap((entry) => {
      const [by, asked, allowed] = [textOf(entry, "by"), textOf(entry, "asked"), textOf(entry, "allowed")];
      const isShown = by !== null && by !== "takes amperes" && asked !== null && allowed !== null;
      return isShown ? [formatLimit({ by, asked, allowed })] : [];
    }),
    ...(others.length === 0 ? [] : [`overrules ${listed(others, MOST_OVERRULED, overruledCount)}`]),
  ].join("; ");
}
