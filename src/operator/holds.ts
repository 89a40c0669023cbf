import { BAR_TEXTS } from "../control/decide/gate.ts";
import { formatEnd, scopeFacts, formatHold, holdFacts } from "../control/holds/holds.ts";
import { chargersUnder, closeHold, type HoldRequest, openHold } from "../control/holds/lifecycle.ts";
import { estimatedCosts } from "../control/decide/holdCost.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import type { Committed } from "../domain/changes.ts";
import {
  deliveredWh,
  endOf,
  formatHoldLevel,
  formatScope,
  type Hold,
  type HoldScope,
} from "../domain/hold.ts";
import { viewOf } from "../domain/setpoint.ts";
import { type ChargerId, type Instant, iso } from "../domain/units.ts";
import { runCooperatively } from "../platform/cooperative.ts";
import {
  type Answer,
  asJson,
  conflict,
  FirstAnswers,
  invalid,
  keyOfAnother,
  notStored,
  starting,
} from "./answer.ts";
import { costViews, storeEstimate } from "./holdCosts.ts";
import { type HoldBody, holdBody, holdFrom, requestHash, scopeIn } from "./holdRequest.ts";

/** Requests about holds: from the API, the command line and MQTT. */
export interface HoldApi {
  readonly list: (query: Readonly<Record<string, unknown>>) => Answer<Json>;
  /** `by`: name of the person. `key`: a repeated one gets the first answer. */
  readonly open: (body: unknown, by: string, key: string | null) => Promise<Answer<Json>>;
  readonly end: (id: string, body: unknown, by: string) => Promise<Answer<Json>>;
  /** Energy that a hold would take from each event. Opens none. */
  readonly preview: (body: unknown, by: string) => Promise<Answer<Json>>;
}

/** `HoldApi`, and the request that only MQTT makes. */
interface AllHolds extends HoldApi {
  /** Ends the hold that applies to a charger, or to the vehicle there. A hold of the site stays. */
  readonly endOver: (
    scope: Exclude<HoldBody["scope"], { site: true }>,
    body: unknown,
    by: string,
  ) => Promise<Answer<Json>>;
}

/** Cap on chargers in the effect of a listed hold. */
const MOST_LISTED = 100;
const DEFAULT_LIMIT = 100;

/** `request`: hands a change to the control flow. */
export function holdApi(
  state: ControlState,
  request: (request: HoldRequest) => void,
  now: () => Instant,
  isReady: () => boolean,
  monotonic: () => number,
): AllHolds {
  const answers = new FirstAnswers();

  const apply = (change: HoldRequest["apply"]): Promise<Committed> => {
    const { promise, resolve } = Promise.withResolvers<Committed>();
    request({ apply: change, settle: resolve });
    return promise;
  };

  const open = async (body: unknown, by: string, key: string | null): Promise<Answer<Json>> => {
    const checked = holdBody(body);
    if ("ok" in checked) return checked;
    if (!isReady()) return starting;
    const made = holdFrom(state, checked.body, { by, key }, now());
    if ("ok" in made) return made;
    const { hold } = made;
    const before = chargersUnder(state, hold.scope);
    const others = othersOver(state, before, hold.id, now());
    const committed = await apply((state, at) => openHold(state, hold, at));
    if (!committed.ok) return notStored(committed.reason);
    // The hold acts already: the estimate of a large site takes seconds.
    await storeEstimate({ state, request, now, monotonic }, hold);
    const opened = state.holds.get(hold.id) ?? hold;
    return { ok: true, value: { ...holdView(state, opened, now(), Infinity), others } };
  };

  const preview = async (body: unknown, by: string): Promise<Answer<Json>> => {
    const checked = holdBody(body);
    if ("ok" in checked) return checked;
    if (!isReady()) return starting;
    const made = holdFrom(state, checked.body, { by, key: null }, now());
    if ("ok" in made) return made;
    const { hold } = made;
    const chargers = chargersUnder(state, hold.scope);
    const costs = await runCooperatively(estimatedCosts(state, hold, now()), monotonic);
    return {
      ok: true,
      value: {
        sentence: `${formatScope(hold.scope)}: ${formatHoldLevel(hold)} ${formatEnd(hold, state.wallClock)}`,
        until: iso(endOf(hold)),
        chargers: chargers.length,
        costs: costViews({ costs }),
        others: othersOver(state, chargers, hold.id, now()),
      },
    };
  };

  const end = async (id: string, body: unknown, by: string): Promise<Answer<Json>> => {
    const reason = (body as { readonly reason?: unknown } | null)?.reason;
    if (typeof reason !== "string" || reason.trim() === "" || reason.length > 200)
      return invalid({
        path: "reason",
        found: typeof reason === "string" ? reason : null,
        expected: "why, in 1 to 200 characters",
      });
    const hold = state.holds.get(id);
    if (hold === undefined) return noSuchHold(state, id);
    if (hold.ended !== null) return hasEnded(hold);
    const committed = await apply((state, at) => {
      const current = state.holds.get(id);
      // Another person was faster in the same moment.
      if (current === undefined || current.ended !== null) return { changes: [], affectedChargers: [] };
      return closeHold(state, current, by, reason.trim(), at);
    });
    if (!committed.ok) return notStored(committed.reason);
    const ended = state.holds.get(id) ?? hold;
    if (ended.ended !== null && (ended.ended.by !== by || ended.ended.why !== reason.trim()))
      return hasEnded(ended);
    return { ok: true, value: holdView(state, ended, now(), Infinity) };
  };

  return {
    list(query) {
      const { limit = DEFAULT_LIMIT, after, state: shownState } = query;
      const most = /^\d{1,15}$/.test(String(limit)) ? Number(limit) : 0;
      if (most < 1)
        return invalid({ path: "limit", found: String(limit), expected: "a whole number, at least 1" });
      if (shownState !== undefined && shownState !== "open")
        return invalid({
          path: "state",
          found: typeof shownState === "string" ? shownState : null,
          expected: "open, or nothing for all",
        });
      const all = shownState === "open" ? state.holds.open() : state.holds.all();
      const seen = all.findIndex(({ id }) => id === after);
      if (after !== undefined && seen < 0)
        return invalid({ path: "after", found: asJson(after), expected: "the id of a hold of this list" });
      const shown = all.slice(seen + 1, seen + 1 + most);
      return { ok: true, value: shown.map((hold) => holdRow(state, hold, now())) };
    },

    async open(body, by, key) {
      if (key === null) return open(body, by, null);
      const checked = holdBody(body);
      if ("ok" in checked) return checked;
      const requested = requestHash(checked.body, by);
      const first = answers.get(key, requested);
      if (first !== undefined) return first ?? keyOfAnother(key);
      const stored = state.holds.withKey(key);
      if (stored !== undefined) {
        if (stored.key !== `${key} ${requested}`) return keyOfAnother(key);
        return { ok: true, value: { ...holdView(state, stored, now(), Infinity), others: [] } };
      }
      const answer = open(body, by, key);
      answers.add(key, requested, answer);
      return answer;
    },

    end,
    preview,

    endOver(scope, body, by) {
      const found = scopeIn(state, scope);
      if ("ok" in found) return Promise.resolve(found);
      const hold = narrowHoldOver(state, found, now());
      return hold === null ? Promise.resolve(noHoldOver(found)) : end(hold.id, body, by);
    },
  };
}

/** The newest open hold of a charger, of a vehicle, or of the vehicle at the charger. Null: none. */
function narrowHoldOver(state: ControlState, scope: HoldScope, now: Instant): Hold | null {
  if (scope.kind === "vehicle")
    return (
      state.holds
        .open()
        .find((hold) => hold.scope.kind === "vehicle" && hold.scope.vehicle === scope.vehicle) ?? null
    );
  const [charger] = chargersUnder(state, scope);
  if (charger === undefined) return null;
  const occupant = state.occupancy.at(charger);
  const over = state.holds.over(charger, occupant.kind === "vehicle" ? occupant.vehicle : null, now);
  return over.find((hold) => hold.scope.kind !== "site") ?? null;
}

const noHoldOver = (scope: HoldScope): Answer<Json> => ({
  ok: false,
  problem: {
    status: 404,
    title: `no hold is open on ${formatScope(scope)}`,
    detail: "a hold of the site stays",
    errors: [],
  },
});

/** A row of the list of holds. */
export const holdRow = (state: ControlState, hold: Hold, now: Instant): Json =>
  holdView(state, hold, now, MOST_LISTED);

/** A hold with what each charger under it gets now. */
function holdView(
  state: ControlState,
  hold: Hold,
  now: Instant,
  most: number,
): { readonly [member: string]: Json } {
  const { ended, end } = hold;
  const chargers = chargersUnder(state, hold.scope);
  const reading =
    end.kind === "energy" ? state.presenceOf(end.meter.charger).telemetry?.[end.meter.register] : undefined;
  return {
    ...holdFacts(hold),
    sentence: formatHold(hold, state.wallClock),
    energyWh: end.kind === "energy" ? end.wh : null,
    deliveredWh: end.kind === "energy" ? deliveredWh(end.meter, reading ?? end.meter.fromWh) : null,
    state: ended === null ? "open" : "ended",
    ended: ended === null ? null : { at: iso(ended.at), by: ended.by, why: ended.why },
    costs: costViews(hold),
    chargers: chargers.length,
    effect: chargers.slice(0, most).map((charger) => effectOn(state, charger, hold, now)),
  };
}

/** The level that a charger gets now. `verdict`: whether it was measured as followed. */
function effectOn(state: ControlState, id: ChargerId, hold: Hold, now: Instant): Json {
  const charger = state.chargers.get(id);
  if (charger === undefined) return { charger: id, vehicle: null, level: null, verdict: "none" };
  const verdict = state.verdictOn(charger, now);
  const bar = state.barTo("queue", id);
  const deferral = state.deferrals.get(id);
  return {
    charger: id,
    vehicle: verdict.vehicle?.id ?? null,
    level: viewOf(verdict.desired),
    /** Another hold, a narrower or a newer one, may apply instead. */
    applies: verdict.hold?.id === hold.id,
    limits: verdict.limits.map(({ asked, allowed }) => `${asked} asked, ${allowed} allowed`),
    overrules: verdict.overruled.map(({ event }) => event.id),
    waits:
      bar !== null
        ? BAR_TEXTS[bar]
        : deferral === undefined
          ? null
          : `until ${state.wallClock(deferral.until)}: ${deferral.by}`,
    verdict: state.commands.get(id)?.progress ?? "none",
  };
}

/** Open holds that already apply to these chargers, so that a second person sees those of the first. */
function othersOver(state: ControlState, chargers: readonly ChargerId[], id: string, now: Instant): Json {
  const others = new Map<string, Hold>();
  for (const charger of chargers) {
    const occupant = state.occupancy.at(charger);
    const vehicle = occupant.kind === "vehicle" ? occupant.vehicle : null;
    for (const hold of state.holds.over(charger, vehicle, now)) if (hold.id !== id) others.set(hold.id, hold);
  }
  return [...others.values()].slice(0, MOST_LISTED).map((hold) => ({
    id: hold.id,
    scope: scopeFacts(hold.scope),
    sentence: formatHold(hold, state.wallClock),
  }));
}

function hasEnded({ id, ended }: Hold): Answer<Json> {
  const detail = ended === null ? "" : `ended ${iso(ended.at)} by ${ended.by}: ${ended.why}`;
  return conflict(`hold ${id} has ended already`, detail);
}

function noSuchHold(state: ControlState, id: string): Answer<Json> {
  const open = state.holds
    .open()
    .slice(0, 20)
    .map((hold) => hold.id);
  const expected = open.length === 0 ? "no hold is open" : `one of ${open.join(", ")}`;
  return {
    ok: false,
    problem: {
      status: 404,
      title: `there is no hold ${id}`,
      detail: expected,
      errors: [{ path: "id", found: id, expected }],
    },
  };
}
