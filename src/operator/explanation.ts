import { type ExplainedMoment, type Explanation, explain } from "../control/decide/explain.ts";
import { reasonOf } from "../control/decide/reason.ts";
import { type Bar, BAR_TEXTS, formatPeriod } from "../control/decide/gate.ts";
import { formatCost } from "../control/decide/holdCost.ts";
import { formatDeferral } from "../control/decide/pace.ts";
import type { Verdict } from "../control/decide/verdict.ts";
import type { Dispatch } from "../control/schedule/expand.ts";
import type { ControlState } from "../control/state.ts";
import type { AuditEntry, Json } from "../domain/audit.ts";
import type { Charger } from "../domain/charger.ts";
import type { Store } from "../domain/store.ts";
import { endOf, type Hold, periodEnd } from "../domain/hold.ts";
import { reasonIn, type Reason, restIn, restOf } from "../domain/reason.ts";
import { formatKilowatts } from "../domain/setpoint.ts";
import { after, type ChargerId, type Instant, instant, hours } from "../domain/units.ts";
import { type Vehicle, vehicleNamed } from "../domain/vehicle.ts";
import { type Answer, invalid, momentIn, noSuch, type Problem } from "./answer.ts";
import { restAhead, verdictAhead } from "./eventPlan.ts";
import { refusalText } from "./problems.ts";

/** The record, as far as an explanation of the past reads it. */
export interface PastDecisions {
  /** The newest decision row of a charger that is not later than `at`. Null: none, or pruned. */
  readonly decisionAt: (charger: ChargerId, at: Instant) => Promise<AuditEntry | null>;
  /** Chargers that a vehicle was on, on the days of this window. */
  readonly seats: Store["seats"];
}

export interface ExplainRequest {
  /** Id of a charger. Null: `vehicle` is given. */
  readonly charger: string | null;
  /** Id or name of a vehicle. */
  readonly vehicle: string | null;
  /** Null: now. */
  readonly at: Instant | null;
}

/** Most coming dispatches in an explanation. */
const MOST_WAITING = 5;
const DAY = hours(24);
const PARAMETERS = ["vehicle", "charger", "at"];

/** Parses a query: one of `vehicle` and `charger`, and perhaps `at` (ISO 8601; UTC without a zone). */
export function explainRequest(query: Readonly<Record<string, unknown>>): Answer<Json> | ExplainRequest {
  const unknownName = Object.keys(query).find((name) => !PARAMETERS.includes(name));
  if (unknownName !== undefined)
    return invalid({
      path: unknownName,
      found: String(query[unknownName]),
      expected: `one of ${PARAMETERS.join(", ")}`,
    });
  const { charger, vehicle, at } = query;
  if ((charger === undefined) === (vehicle === undefined))
    return invalid({
      path: "vehicle",
      found: typeof vehicle === "string" ? vehicle : null,
      expected: "either vehicle=ID or charger=ID",
    });
  const named = charger ?? vehicle;
  if (typeof named !== "string")
    return invalid({
      path: charger === undefined ? "vehicle" : "charger",
      found: String(named),
      expected: "one id",
    });
  const moment = at === undefined ? null : typeof at === "string" ? (momentIn(at) ?? undefined) : undefined;
  if (moment === undefined)
    return invalid({ path: "at", found: String(at), expected: "a moment, e.g. 2026-11-21T05:30:00Z" });
  return {
    charger: charger === undefined ? null : named,
    vehicle: charger === undefined ? named : null,
    at: moment,
  };
}

/** Explains a charger or a vehicle: now, ahead by the plan, or behind by the record. `isLinked`: its broker is connected. */
export async function explanation(
  state: ControlState,
  past: PastDecisions,
  request: ExplainRequest,
  now: Instant,
  isLinked: (charger: ChargerId) => boolean,
): Promise<Answer<Explanation>> {
  const found = findSubject(state, request);
  if (!found.ok) return found;
  const { charger, vehicle } = found;
  const at = request.at ?? now;
  const circumstances =
    at < now
      ? await behind(state, past, request.charger === null ? "vehicle" : "charger", found, at)
      : at > now
        ? ahead(state, found, now, at)
        : current(state, charger, vehicle, now, isLinked);
  const value = explain(circumstances, state.settings, state.wallClock);
  return { ok: true, value: { ...value, claims: value.claims.map((claim) => withCosts(state, claim)) } };
}

/** The claim of a hold, with the cost to each event. */
function withCosts({ holds }: ControlState, claim: Explanation["claims"][number]): typeof claim {
  const costs = claim.kind === "hold" ? (holds.get(claim.source)?.costs ?? []) : [];
  return { ...claim, because: [claim.because, ...costs.map(formatCost)].join("; ") };
}

type Place = Pick<ExplainedMoment, "charger" | "vehicle">;
type Subject =
  | { readonly ok: true; readonly charger: Charger | null; readonly vehicle: Vehicle | null }
  | { readonly ok: false; readonly problem: Problem };

/** The charger and the vehicle on it. A vehicle is named by its id, or by its name in any case. */
function findSubject(state: ControlState, request: ExplainRequest): Subject {
  if (request.charger !== null) {
    const charger = [...state.chargers.values()].find(({ id }) => id === request.charger);
    if (charger === undefined) return noSuch("charger", request.charger, [...state.chargers.keys()]);
    return { ok: true, charger, vehicle: vehicleOn(state, charger.id) };
  }
  const wanted = request.vehicle ?? "";
  const vehicle = vehicleNamed(state.vehicles.values(), wanted);
  if (vehicle === null) {
    const known = [...state.vehicles.values()].flatMap(({ id, name }) => (name === id ? [id] : [id, name]));
    return noSuch("vehicle", wanted, known);
  }
  const where = state.occupancy.where(vehicle.id);
  return { ok: true, charger: where === null ? null : (state.chargers.get(where) ?? null), vehicle };
}

const vehicleOn = ({ occupancy, vehicles }: ControlState, charger: ChargerId): Vehicle | null => {
  const occupant = occupancy.at(charger);
  return occupant.kind === "vehicle" ? (vehicles.get(occupant.vehicle) ?? null) : null;
};

function current(
  state: ControlState,
  charger: Charger | null,
  vehicle: Vehicle | null,
  now: Instant,
  isLinked: (charger: ChargerId) => boolean,
): ExplainedMoment {
  const found = charger === null ? null : state.verdictOn(charger, now);
  const reason = found === null ? null : reasonFrom(found, state);
  return {
    at: now,
    isAhead: false,
    charger,
    vehicle,
    unknown: unknownAt(state, charger?.id ?? vehicle?.charger ?? null),
    reason,
    rest: charger === null ? null : restOf(state.commands.get(charger.id)?.command),
    otherHolds: holdsBeside(state, charger, vehicle, found, now),
    waiting: waitingFor(state, charger, vehicle, now),
    bars: charger === null ? [] : barsOf(state, charger, reason, isLinked(charger.id)),
  };
}

function unknownAt({ occupancy }: ControlState, charger: ChargerId | null): ExplainedMoment["unknown"] {
  const occupant = charger === null ? null : occupancy.at(charger);
  return charger === null || occupant?.kind !== "unknown" ? null : { charger, identity: occupant.identity };
}

function ahead(state: ControlState, { charger, vehicle }: Place, now: Instant, at: Instant): ExplainedMoment {
  const window = { from: now, until: at };
  const found = charger === null ? null : verdictAhead(state, charger, vehicle, at);
  return {
    at,
    isAhead: true,
    charger,
    vehicle,
    unknown: null,
    reason: found === null ? null : reasonFrom(found, state),
    rest: charger === null || vehicle === null ? null : restAhead(state, charger, vehicle, window),
    otherHolds: holdsBeside(state, charger, vehicle, found, at).filter((hold) => at < endOf(hold)),
    waiting: waitingFor(state, charger, vehicle, at),
    bars: [],
  };
}

/**
 * By the newest decision in the record. `subject`: of a charger, or of a vehicle at the chargers that it was on. `charger`
 * and `vehicle` are those of now.
 */
async function behind(
  state: ControlState,
  past: PastDecisions,
  subject: "charger" | "vehicle",
  { charger, vehicle }: Place,
  at: Instant,
): Promise<ExplainedMoment> {
  const ofVehicle = subject === "vehicle" ? vehicle : null;
  const seats =
    ofVehicle === null
      ? []
      : [ofVehicle.charger, ...(await past.seats(ofVehicle.id, instant(at - DAY), after(at, DAY)))];
  const candidates = new Set([charger?.id ?? null, ...seats].filter((id) => id !== null));
  const rows = await Promise.all([...candidates].map((id) => past.decisionAt(id, at)));
  const row = rows
    .filter((found) => found !== null && (ofVehicle === null || found.vehicle === ofVehicle.id))
    .reduce((newest, found) => ((found?.at ?? 0) > (newest?.at ?? 0) ? found : newest), null);
  return {
    at,
    isAhead: false,
    charger: row?.charger == null ? charger : (state.chargers.get(row.charger) ?? charger),
    vehicle: row?.vehicle == null ? vehicle : (state.vehicles.get(row.vehicle) ?? vehicle),
    unknown: null,
    isUnrecorded: row === null,
    reason: row === null ? null : reasonIn(row.facts),
    rest: row === null ? null : restIn(row.facts),
    otherHolds: [],
    waiting: [],
    bars: [],
  };
}

function reasonFrom(found: Verdict, { wallClock }: ControlState): Reason | null {
  const { winner, hold, desired, until } = found;
  if (winner === null && hold === null) return null;
  const by = { vehicle: found.vehicle?.id ?? null, event: winner?.event.id ?? null };
  return reasonOf(found, { desired, until, ...by, cause: winner === null ? "operator" : "event" }, wallClock);
}

/** Open holds over the charger, or the vehicle, that do not apply. */
function holdsBeside(
  { holds }: ControlState,
  charger: Charger | null,
  vehicle: Vehicle | null,
  found: Verdict | null,
  at: Instant,
): readonly Hold[] {
  const over =
    charger === null
      ? holds.open().filter(({ scope }) => scope.kind === "vehicle" && scope.vehicle === vehicle?.id)
      : holds.over(charger.id, vehicle?.id ?? null, at);
  return over.filter(({ id }) => id !== found?.hold?.id);
}

/** Dispatches that start after `at`, the next first. For a vehicle at no charger, also those in force. */
function waitingFor(
  { agenda, wallClock }: ControlState,
  charger: Charger | null,
  vehicle: Vehicle | null,
  at: Instant,
): ExplainedMoment["waiting"] {
  if (vehicle === null) return [];
  const isNext = ({ from, until }: Dispatch): boolean => from > at || (charger === null && until > at);
  return agenda
    .of(vehicle.id)
    .filter(isNext)
    .toSorted((a, b) => a.from - b.from)
    .slice(0, MOST_WAITING)
    .map((dispatch) => ({
      dispatch,
      because: dispatch.from > at ? `starts ${wallClock(dispatch.from)}` : "the vehicle is at no charger",
    }));
}

function barOf({ mode: { period }, wallClock }: ControlState, bar: Bar): ExplainedMoment["bars"][number] {
  if (bar !== "observing" || period === null) return { source: bar, until: null, because: BAR_TEXTS[bar] };
  const because = `${formatPeriod(period, wallClock)}; decided and recorded, not sent`;
  return { source: bar, until: periodEnd(period), because };
}

/** Answers and readings of the charger that speak against the setpoint being in force. */
function effectOf({ commands, silence, presence }: ControlState, id: ChargerId): ExplainedMoment["bars"] {
  const { progress, followedAt = null, refusal } = commands.get(id) ?? {};
  const { telemetry, heardAt } = presence.of(id);
  const draws = telemetry?.powerW === undefined ? "" : `, it draws ${formatKilowatts(telemetry.powerW)}`;
  const quiet = heardAt === null ? "no message of the charger since the start" : "the charger is silent";
  if (heardAt === null || silence.has(id))
    return effect("silent", `${quiet}: whether it follows is not known`);
  if (progress === "refused")
    return effect(progress, `the charger refuses it${refusalText(refusal)}${draws}`);
  // It may follow again: the verdict changes once that has lasted.
  if (progress !== "notFollowed" || followedAt !== null) return [];
  return effect(progress, `the charger does not follow it${draws}`);
}

const AWAY = "its broker is not connected: nothing reaches the charger, and what it does now is not known";
const effect = (source: string, because: string) => [{ source, until: null, because }];

/** Conditions that keep the decision from the charger now, or the charger from following it. */
function barsOf(
  state: ControlState,
  { id, writesPerHour }: Charger,
  reason: Reason | null,
  isLinked: boolean,
): ExplainedMoment["bars"] {
  const bars = new Set<Bar>();
  for (const bar of [state.barTo("queue", id), reason === null ? null : state.barTo("start", id)])
    // A broker that stops publishes the last will of each charger.
    if (bar !== null && (isLinked || bar !== "offline")) bars.add(bar);
  const shown = [
    ...[...bars].map((bar) => barOf(state, bar)),
    ...(isLinked ? [] : effect("broker", AWAY)),
    ...(!isLinked || reason === null || bars.has("observing") ? [] : effectOf(state, id)),
  ];
  const deferral = state.deferrals.get(id);
  if (deferral === undefined) return shown;
  const because = `an increase waits until ${state.wallClock(deferral.until)}: ${formatDeferral(deferral, writesPerHour)}`;
  return [...shown, { source: deferral.by, until: deferral.until, because }];
}
