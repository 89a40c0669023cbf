import { below, chance, oneOf } from "../fuzz/chance.ts";
import { dayFrom } from "./generate.ts";
import {
  type Action,
  CALM_FROM,
  type Day,
  HOUR,
  MINUTE,
  type PlannedDeparture,
  type PlannedHold,
} from "./plan.ts";

const HOLDS_A_DAY = 30;
const ENDS_A_DAY = 10;
/** What is added to the day of the same seed is drawn apart. */
const HELD = 0x401d;
/** What was added later still, so that a seed keeps the rest of its day. */
const OBSERVED = 0x0b5e;
const PERIODS_A_DAY = 4;
const ENERGIES_A_DAY = 12;

/** A day on which operators override the events, beside everything that goes wrong on it. */
export function heldDay(seed: number, chargerCount: number): Day {
  const day = dayFrom(seed, chargerCount);
  const random = chance(seed ^ HELD);
  const moment = (): number => MINUTE + below(CALM_FROM - 2 * MINUTE, random);
  const holds = Array.from({ length: HOLDS_A_DAY }, (): Action => {
    const at = moment();
    return { kind: "hold", at, ...aHold(day, CALM_FROM - at, random) };
  });
  const ends = Array.from({ length: ENDS_A_DAY }, (): Action => ({ kind: "endHold", at: moment() }));
  const later = chance(seed ^ OBSERVED);
  const observed = Array.from({ length: PERIODS_A_DAY }, () => aPeriod(later)).flat();
  const energies = Array.from({ length: ENERGIES_A_DAY }, () => anEnergyHold(day, later));
  const vehicles = day.vehicles.map((vehicle, index) =>
    vehicle.charger === null ? vehicle : { ...vehicle, leaves: aDeparture(index, later) },
  );
  const actions = [...day.actions, ...holds, ...ends, ...observed, ...energies].toSorted(
    (a, b) => a.at - b.at,
  );
  return {
    ...day,
    vehicles,
    guardMost: 1 + below(2, later),
    knobs: { ...day.knobs, reports: false },
    actions,
  };
}

/** The site observes for a while, and is set to drive again before the end in every other case. */
function aPeriod(random: () => number): readonly Action[] {
  const at = MINUTE + below(CALM_FROM - 3 * HOUR, random);
  const lasts = MINUTE + below(oneOf([5 * MINUTE, HOUR], random), random);
  const observe: Action = { kind: "observe", at, lasts };
  return random() < 0.5 ? [observe] : [observe, { kind: "drive", at: at + below(lasts, random) }];
}

function anEnergyHold(day: Day, random: () => number): Action {
  const at = MINUTE + below(CALM_FROM - 3 * HOUR, random);
  const { scope, level } = aHold(day, HOUR, random);
  const isSite = "site" in scope;
  return {
    kind: "hold",
    at,
    scope: isSite ? { charger: oneOf(day.chargers, random).id } : scope,
    level,
    until: { energyWh: 1_000 + below(oneOf([2_000, 17_000, 40_000], random), random) },
  };
}

/** Much for some hours at a charger, so that an event before it costs what is needed. */
const aDeparture = (index: number, random: () => number): PlannedDeparture => ({
  at: `${String((5 + 6 * index + below(5, random)) % 23).padStart(2, "0")}:${String(below(60, random)).padStart(2, "0")}`,
  energyKwh: 10 + below(110, random),
});

function aHold({ chargers, vehicles }: Day, left: number, random: () => number): PlannedHold {
  const charger = { charger: oneOf(chargers, random).id };
  const scope = oneOf(
    [charger, charger, { vehicle: oneOf(vehicles, random).id }, { site: true } as const],
    random,
  );
  const level = oneOf(
    [
      null,
      null,
      { currentA: 1 + below(600, random) / 10 },
      { powerW: 500 + below(30_000, random) },
      { pause: true } as const,
    ],
    random,
  );
  const lasts = Math.min(left, MINUTE + below(oneOf([10 * MINUTE, HOUR, 4 * HOUR], random), random));
  return { scope, level, until: oneOf([lasts, lasts, lasts, "events", "unplugged"] as const, random) };
}
