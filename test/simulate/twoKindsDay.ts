import { below, chance, oneOf } from "../fuzz/chance.ts";
import { mixedDay } from "./mixedDay.ts";
import { type Action, type Day, HOUR, MINUTE, type PlannedCharger, type PlannedEvent } from "./plan.ts";

type Random = () => number;

const MOVES_PER_CHARGER_HOUR = 1;
/** Of the faults of a mixed day so many stay, or most of the moves would be excused. */
const FAULTS_KEPT = 0.4;
/** What a seed adds here is drawn apart: the rest is the mixed day of that seed. */
const MOVES = 0x2d0f;
/** Nobody moves in so much before the end. */
const CALM = 40 * MINUTE;

/**
 * Hours of a depot of two kinds of chargers, in turn: native ones that name their vehicle, and makes that do not.
 * Vehicles move from one kind to the other in the middle of events, or are named by a charger where they do not stand.
 */
export function twoKindsDay(seed: number, chargerCount: number, hours: number): Day {
  const day = mixedDay(seed, chargerCount, hours);
  const random = chance(seed ^ MOVES);
  const chargers = day.chargers.map((charger, index) => (index % 2 === 0 ? charger : native(charger)));
  const events = day.actions.flatMap((action) => (action.kind === "put" ? [action.event] : []));
  const until = hours * HOUR - CALM;
  const moves = Array.from({ length: Math.ceil(hours * chargerCount * MOVES_PER_CHARGER_HOUR) }, () =>
    aMove(oneOf(events, random), { ...day, chargers }, until, random),
  ).flat();
  const kept = day.actions.filter(({ kind }) => isNews(kind) || random() < FAULTS_KEPT);
  return { ...day, chargers, actions: [...kept, ...moves].toSorted((a, b) => a.at - b.at) };
}

const isNews = (kind: Action["kind"]): boolean => kind === "put" || kind === "withdraw";

function native(charger: PlannedCharger): PlannedCharger {
  const { make: _, ...rest } = charger;
  return { ...rest, tells: true };
}

/** In the middle of an event, or shortly before; and mostly back again. */
function aMove(
  { start, duration, vehicles: asked }: PlannedEvent,
  { chargers, vehicles }: Day,
  until: number,
  random: Random,
): readonly Action[] {
  const at = Math.min(Math.max(start + below(duration + 2 * MINUTE, random) - MINUTE, MINUTE), until);
  const whom = vehicles.filter(({ id }) => asked.includes(id));
  const { id: vehicle, charger: home } = oneOf(whom.length === 0 ? vehicles : whom, random);
  const isHomeNative = chargers.some(({ id, make }) => id === home && make === undefined);
  const others = chargers.filter(({ make }) => (make === undefined) !== isHomeNative);
  const natives = chargers.filter(({ id, make }) => id !== home && make === undefined);
  if (home === null || others.length === 0 || natives.length === 0) return [];
  const later = Math.min(at + 10_000 + below(oneOf([2 * MINUTE, 20 * MINUTE], random), random), until);
  const { id: there } = oneOf(others, random);
  const moves: Action = { kind: "plug", at, charger: there, vehicle };
  const returns: Action = { kind: "plug", at: later, charger: home, vehicle };
  switch (oneOf(["returns", "stays", "isReplaced", "isClaimed", "isClaimed", "isClaimed"] as const, random)) {
    case "returns":
      return [moves, returns];
    case "stays":
      return [moves];
    case "isReplaced":
      return [moves, { ...returns, vehicle: oneOf(["stranger", oneOf(vehicles, random).id], random) }];
    case "isClaimed":
      return [{ kind: "claims", at, charger: oneOf(natives, random).id, vehicle, lasts: later - at + 1_000 }];
  }
}
