import { below, chance, oneOf } from "../fuzz/chance.ts";
import { dayFrom } from "./generate.ts";
import { type Action, CALM_FROM, type Day, HOUR, MINUTE, type PlannedHold } from "./plan.ts";

const HOLDS_A_DAY = 30;
const ENDS_A_DAY = 10;
/** What is added to the day of the same seed is drawn apart. */
const HELD = 0x401d;

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
  const actions = [...day.actions, ...holds, ...ends].toSorted((a, b) => a.at - b.at);
  return { ...day, knobs: { ...day.knobs, reports: false }, actions };
}

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
