import { BAR_TEXTS } from "../control/decide/gate.ts";
import { formatHold, holdFacts, scopeFacts } from "../control/holds/holds.ts";
import { chargersUnder } from "../control/holds/lifecycle.ts";
import type { Verdict } from "../control/decide/verdict.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import { deliveredWh, type Hold } from "../domain/hold.ts";
import { formatRecorded, viewOf } from "../domain/setpoint.ts";
import { type ChargerId, type EventId, type Instant, iso, isOpenAt } from "../domain/units.ts";
import { costViews } from "./holdCosts.ts";

/** Cap on chargers in the effect of a listed hold. */
const MOST_LISTED = 100;

/** A row of the list of holds. */
export const holdRow = (state: ControlState, hold: Hold, now: Instant): Json =>
  holdView(state, hold, now, MOST_LISTED);

/** A hold with what each charger under it gets now. */
export function holdView(
  state: ControlState,
  hold: Hold,
  now: Instant,
  most: number,
): { readonly [member: string]: Json } {
  const { ended, end } = hold;
  const chargers = chargersUnder(state, hold.scope);
  const reading =
    end.kind === "energy" ? state.presence.of(end.meter.charger).telemetry?.[end.meter.register] : undefined;
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
    limits: verdict.limits.map(
      ({ asked, allowed }) => `${formatRecorded(asked)} asked, ${formatRecorded(allowed)} allowed`,
    ),
    overrules: [
      ...new Set([...verdict.overruled.map(({ event }) => event.id), ...setAside(state, verdict, now)]),
    ],
    waits:
      bar !== null
        ? BAR_TEXTS[bar]
        : deferral === undefined
          ? null
          : `until ${state.wallClock(deferral.until)}: ${deferral.by}`,
    verdict: state.commands.get(id)?.progress ?? "none",
  };
}

/** Events in force that an exemption until events names: the arbitration never sees them. */
function setAside({ agenda }: ControlState, { hold, vehicle }: Verdict, now: Instant): readonly EventId[] {
  if (vehicle === null || hold?.level !== null || hold.end.kind !== "events") return [];
  const { events } = hold.end;
  return agenda
    .of(vehicle.id)
    .filter((dispatch) => isOpenAt(dispatch, now) && events.includes(dispatch.event.id))
    .map(({ event }) => event.id);
}

/** Open holds that already apply to these chargers, so that a second person sees those of the first. */
export function othersOver(
  state: ControlState,
  chargers: readonly ChargerId[],
  id: string,
  now: Instant,
): Json {
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
