import { below, oneOf } from "../fuzz/chance.ts";
import { type Action, MINUTE, type PlannedAsk, type PlannedEvent, type PlannedVehicle } from "./plan.ts";

type Random = () => number;

/** The longest from the first word on such an event to the end of its disk. */
const LASTS = 90 * MINUTE;
/** Long enough before the end for all to be told and stored. */
const KNOWN_FOR = 30 * MINUTE;

/** What such an event asks for, minutes over which it is spread, and how long after its last release the disk may stay full, ms. */
interface FullDisk {
  readonly ask: PlannedAsk;
  readonly spreads: readonly number[];
  readonly longest: number;
}

/** A level ends at a native charger by itself, a pause does not. */
const PAUSES: FullDisk = {
  ask: { kind: "current", amperes: 0 },
  spreads: [0, 1, 10],
  longest: 10 * MINUTE,
};
/** Makes know no end of a level. */
export const LEVELS: FullDisk = { ask: { kind: "current", amperes: 8 }, spreads: [0], longest: MINUTE };

/**
 * Events that end while the disk is full: it fills up minutes before the end, and takes commits again minutes after the
 * last release.
 */
export function endsOnAFullDisk(
  count: number,
  vehicles: readonly PlannedVehicle[],
  until: number,
  random: Random,
  { ask, spreads, longest }: FullDisk = PAUSES,
): readonly Action[] {
  return Array.from({ length: count }, (_, index): readonly Action[] => {
    const at = MINUTE + below(until - LASTS - MINUTE, random);
    const start = Math.floor(at / 1000) * 1000;
    const event: PlannedEvent = {
      id: `D${index + 1}`,
      start,
      duration: KNOWN_FOR + MINUTE * below(20, random),
      spread: MINUTE * oneOf(spreads, random),
      priority: oneOf([null, 0, 1], random),
      ask,
      vehicles: vehicles.map(({ id }) => id).filter(() => random() < 0.7),
      reports: [],
    };
    const end = start + event.duration;
    const full = end - 5_000 - below(2 * MINUTE, random);
    const lasts = end + event.spread + MINUTE + below(longest, random) - full;
    return [
      { kind: "put", at, event, sameTime: false, deliveries: [500] },
      { kind: "disk", at: full, how: "full", lasts },
    ];
  }).flat();
}
