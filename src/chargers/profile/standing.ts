import { type Means, whole } from "./means.ts";

/** All that a charger told so far, since each message says a part. */
export interface Standing {
  /** Its own words, each until it says otherwise. */
  readonly told: Means;
  /** What its last state says of the rest, which goes when another state comes. */
  readonly implied: Means;
}

export const NOTHING_STANDS: Standing = { told: {}, implied: {} };

/** How it stands, in one. */
export const standsAs = ({ told, implied }: Standing): Means => ({ ...told, ...implied });

const OF_A_STATE = ["plugged", "charging", "paused", "error"] as const;
const OF_A_VEHICLE = ["vehicleId", "vehicleIdKind"] as const;

/**
 * What stands after another message: what it tells replaces what was told before, the rest stays. But what a state
 * implies, and what is said along with one, is over with the next state: a pause of the last session is none of this.
 */
export function folded(standing: Standing, means: Means): Standing {
  const said = whole(means);
  // Who leaves takes its name along.
  const before = said.plugged === false ? without(standing.told, OF_A_VEHICLE) : standing.told;
  if (means.state === undefined)
    return { told: withWords(before, means, standing), implied: without(standing.implied, keysOf(means)) };
  const implied = keysOf(said).filter((key) => OF_A_STATE.some((one) => one === key));
  const contradicted = implied.filter((key) => said[key] !== before[key]);
  return {
    told: withWords(without(before, contradicted), without(means, OF_A_STATE), standing),
    implied: Object.fromEntries(implied.map((key) => [key, said[key]])),
  };
}

/** A name that a gateway guessed, where the vehicle or its card has already spoken. */
export const isWeaker = (means: Means, { told }: Standing): boolean =>
  means.vehicleIdKind === "name" &&
  whole(means).plugged !== false &&
  typeof told.vehicleId === "string" &&
  told.vehicleIdKind !== "name";

function withWords(before: Means, means: Means, standing: Standing): Means {
  if (means.vehicleId === undefined || isWeaker(means, standing))
    return { ...before, ...without(means, OF_A_VEHICLE) };
  // A vehicle that is unknown now has no kind from before.
  return { ...without(before, OF_A_VEHICLE), ...means };
}

export const without = (means: Means, signals: readonly string[]): Means =>
  Object.fromEntries(Object.entries(means).filter(([signal]) => !signals.includes(signal)));

const keysOf = (means: Means) => Object.keys(means) as readonly (keyof Means)[];
