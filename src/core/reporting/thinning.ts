import { seconds, type Millis } from "../units.ts";
import type { Reading } from "./reading.ts";

/** The newest reading of each kind that was kept, of one charger. */
export type Kept = ReadonlyMap<Reading["kind"], Reading>;

/** What is counted and integrated, and what only has to be seen still to hold. */
const OFTEN = seconds(10);
const NOW_AND_THEN = seconds(60);

/**
 * Which readings of one message are worth storing. One of power, current and the register each 10 s, one of the rest
 * each minute; at once what steps: power by more than 5 % and 100 W, current by more than 5 % and 0.5 A, charge by a
 * percent, a limit at all. A message that changes state, vehicle or setpoint is kept whole. So means and peaks are
 * right to within a step, and energy to within 10 s of power at each edge of a report. Duplicates are not kept.
 */
export function thin(kept: Kept, message: readonly Reading[]): readonly Reading[] {
  const fresh = message.filter((reading) => !isRepeat(kept.get(reading.kind), reading));
  const turns = fresh.some((reading) => isTurn(kept.get(reading.kind), reading));
  return turns ? fresh : fresh.filter((reading) => isWorthIt(kept.get(reading.kind), reading));
}

const isRepeat = (last: Reading | undefined, next: Reading): boolean =>
  last !== undefined && last.at === next.at && last.vehicle === next.vehicle && isSame(last, next);

function isTurn(last: Reading | undefined, next: Reading): boolean {
  if (last === undefined) return false;
  if (last.vehicle !== next.vehicle) return true;
  return (next.kind === "state" || next.kind === "setpoint") && !isSame(last, next);
}

function isWorthIt(last: Reading | undefined, next: Reading): boolean {
  if (last === undefined) return true;
  // Late readings come in a row too: what counts is the distance, not the direction.
  if (Math.abs(next.at - last.at) >= everyOf(next.kind)) return true;
  const step = stepOf(next);
  if (step === null || typeof last.value !== "number" || typeof next.value !== "number") return false;
  const change = Math.abs(next.value - last.value);
  return change > step.least && change > step.share * Math.abs(last.value);
}

function everyOf(kind: Reading["kind"]): Millis {
  switch (kind) {
    case "power":
    case "current":
    case "energy":
      return OFTEN;
    case "voltage":
    case "soc":
    case "limit":
    case "state":
    case "setpoint":
      return NOW_AND_THEN;
  }
}

/** How far a value must move to be stored before its time; null: it may wait. */
function stepOf({ kind }: Reading): { readonly least: number; readonly share: number } | null {
  switch (kind) {
    case "power":
      return { least: 100, share: 0.05 };
    case "current":
      return { least: 0.5, share: 0.05 };
    case "soc":
      return { least: 0.99, share: 0 };
    case "limit":
      return { least: 0, share: 0 };
    case "energy":
    case "voltage":
    case "state":
    case "setpoint":
      return null;
  }
}

const isSame = (a: Reading, b: Reading): boolean => wordsOf(a) === wordsOf(b);
/** The same level for another event, or for longer, is another setpoint. */
const wordsOf = (reading: Reading): string =>
  JSON.stringify(reading.kind === "setpoint" ? [reading.value, reading.until, reading.event] : reading.value);
