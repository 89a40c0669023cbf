import { formatEnd } from "../control/holds/holds.ts";
import { chargersUnder, closeHold, openHold } from "../control/holds/lifecycle.ts";
import { estimatedCosts } from "../control/decide/holdCost.ts";
import { NO_CHANGES, type RequestedChange } from "../control/stage.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import type { Committed } from "../domain/changes.ts";
import { endOf, formatHoldLevel, formatScope, type Hold, type HoldScope } from "../domain/hold.ts";
import { type Instant, iso, type VehicleId } from "../domain/units.ts";
import { inSteps, runCooperatively } from "../platform/cooperative.ts";
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
import { holdRow, holdView, othersOver } from "./holdView.ts";

/** Requests about holds: from the API, the command line and MQTT. */
export interface HoldApi {
  readonly list: (query: Readonly<Record<string, unknown>>) => Answer<Json>;
  /** `by`: name of the person. `key`: a repeated one gets the first answer. */
  readonly open: (body: unknown, by: string, key: string | null) => Promise<Answer<Json>>;
  readonly end: (id: string, body: unknown, by: string) => Promise<Answer<Json>>;
  /** Energy that a hold would take from each event, and the departures under it. Opens none. */
  readonly preview: (body: unknown, by: string) => Promise<Answer<Json>>;
}

/** Scope of a hold that is not of the whole site. */
type NarrowScope = Exclude<HoldBody["scope"], { site: true }>;

const DEFAULT_LIMIT = 100;

interface HoldParts {
  readonly state: ControlState;
  /** Hands a change to control. Resolves after its commit. */
  readonly request: (change: RequestedChange) => Promise<Committed>;
  readonly now: () => Instant;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
  readonly monotonic: () => number;
  /** The departure of a vehicle as if this hold were open. Null: it has none. */
  readonly departureUnder: (vehicle: VehicleId, hold: Hold) => Json;
}

/** Answers requests about holds. Only MQTT calls `endOver`. */
export class OperatorHolds implements HoldApi {
  readonly #parts: HoldParts;
  /** By idempotency key. */
  readonly #answers = new FirstAnswers();

  constructor(parts: HoldParts) {
    this.#parts = parts;
  }

  list(query: Readonly<Record<string, unknown>>): Answer<Json> {
    const { state, now } = this.#parts;
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
  }

  /** A request that is repeated with its key gets the first answer, from this run or from the store. */
  async open(body: unknown, by: string, key: string | null): Promise<Answer<Json>> {
    const { state } = this.#parts;
    if (key === null) return this.#open(body, by, null);
    const checked = holdBody(body);
    if ("ok" in checked) return checked;
    const requested = requestHash(checked.body, by);
    const opened = (): Promise<Answer<Json>> => this.#open(body, by, key);
    return this.#answers.once(key, requested, async () => {
      const stored = state.holds.withKey(key);
      if (stored === undefined) return opened();
      return stored.key === `${key} ${requested}` ? this.#again(stored, opened) : keyOfAnother(key);
    });
  }

  /** The hold of an earlier request, which may not be stored yet. `opened`: it was not, and is no more. */
  async #again({ id }: Hold, opened: () => Promise<Answer<Json>>): Promise<Answer<Json>> {
    const { state, now } = this.#parts;
    const committed = await this.#parts.request(() => NO_CHANGES);
    if (!committed.ok) return notStored(committed);
    const hold = state.holds.get(id);
    if (hold === undefined) return opened();
    return { ok: true, value: { ...holdView(state, hold, now(), Infinity), others: [] } };
  }

  async preview(body: unknown, by: string): Promise<Answer<Json>> {
    const { state, now, monotonic, departureUnder } = this.#parts;
    const made = this.#holdOf(body, by, null);
    if ("ok" in made) return made;
    const { hold } = made;
    const chargers = chargersUnder(state, hold.scope);
    const costs = await runCooperatively(estimatedCosts(state, hold, now()), monotonic);
    const departures: Json[] = [];
    const leaves = inSteps(chargers, (charger) => {
      const occupant = state.occupancy.at(charger);
      const departure = occupant.kind === "vehicle" ? departureUnder(occupant.vehicle, hold) : null;
      if (departure !== null) departures.push(departure);
    });
    await runCooperatively(leaves, monotonic);
    return {
      ok: true,
      value: {
        sentence: `${formatScope(hold.scope)}: ${formatHoldLevel(hold)} ${formatEnd(hold, state.wallClock)}`,
        until: iso(endOf(hold)),
        chargers: chargers.length,
        costs: costViews({ costs }),
        departures,
        others: othersOver(state, chargers, hold.id, now()),
      },
    };
  }

  async end(id: string, body: unknown, by: string): Promise<Answer<Json>> {
    const { state, now } = this.#parts;
    const reason = (body as { readonly reason?: unknown } | null)?.reason;
    if (typeof reason !== "string" || reason.trim() === "" || reason.length > 200)
      return invalid({
        path: "reason",
        found: typeof reason === "string" ? reason : null,
        expected: "why, in 1 to 200 characters",
      });
    const known = state.holds.get(id);
    if (known === undefined || known.ended !== null) {
      // Its end may not be stored yet. A process whose lease is in doubt does not know what the next leader has opened.
      const isSure = await this.#parts.request(() => NO_CHANGES);
      if (!isSure.ok) return notStored(isSure);
    }
    const hold = state.holds.get(id);
    if (hold === undefined) return noSuchHold(state, id);
    if (hold.ended !== null) return hasEnded(hold, state);
    const committed = await this.#parts.request((state, at) => {
      const current = state.holds.get(id);
      // Another person was faster in the same moment.
      if (current === undefined || current.ended !== null) return NO_CHANGES;
      return closeHold(state, current, by, reason.trim(), at);
    });
    if (!committed.ok) return notStored(committed);
    const ended = state.holds.get(id) ?? hold;
    if (ended.ended !== null && (ended.ended.by !== by || ended.ended.why !== reason.trim()))
      return hasEnded(ended, state);
    return { ok: true, value: holdView(state, ended, now(), Infinity) };
  }

  /** Ends the hold that applies to a charger, or to the vehicle there. A hold of the site stays. */
  async endOver(scope: NarrowScope, body: unknown, by: string): Promise<Answer<Json>> {
    const { state, now } = this.#parts;
    const found = scopeIn(state, scope);
    if ("ok" in found) return found;
    const hold = narrowHoldOver(state, found, now());
    return hold === null ? noHoldOver(found) : this.end(hold.id, body, by);
  }

  async #open(body: unknown, by: string, key: string | null): Promise<Answer<Json>> {
    const { state, now } = this.#parts;
    const made = this.#holdOf(body, by, key);
    if ("ok" in made) return made;
    const { hold } = made;
    const under = chargersUnder(state, hold.scope);
    const committed = await this.#parts.request((state, at) => openHold(state, hold, at));
    if (!committed.ok) return notStored(committed);
    // The hold acts already: the estimate of a large site takes seconds.
    await storeEstimate(this.#parts, hold);
    const opened = state.holds.get(hold.id) ?? hold;
    // The others include a hold that another person opened in the same moment.
    const others = othersOver(state, under, hold.id, now());
    return { ok: true, value: { ...holdView(state, opened, now(), Infinity), others } };
  }

  /** The hold that a body asks for. */
  #holdOf(body: unknown, by: string, key: string | null): Answer<Json> | { readonly hold: Hold } {
    const checked = holdBody(body);
    if ("ok" in checked) return checked;
    if (!this.#parts.isReady()) return starting;
    return holdFrom(this.#parts.state, checked.body, { by, key }, this.#parts.now());
  }
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

function hasEnded({ id, ended }: Hold, { wallClock }: ControlState): Answer<Json> {
  const detail = ended === null ? "" : `ended ${wallClock(ended.at)} by ${ended.by}: ${ended.why}`;
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
