import type { Reading } from "../domain/reading.ts";
import {
  after,
  type ChargerId,
  earlier,
  type Instant,
  later,
  type Millis,
  type VehicleId,
  type Window,
} from "../domain/units.ts";
import { firstWhere } from "../platform/dueQueue.ts";

/** A value that held over a stretch of time. */
export interface Step<Value> extends Window {
  readonly value: Value;
}

/**
 * Readings in the order in which things were so, late ones in their place; of those of one charger, kind and moment
 * only the last that came (a redelivery counts once).
 */
export function inOrder<R extends Reading>(readings: readonly R[]): readonly R[] {
  const sorted = readings.toSorted((a, b) => a.at - b.at || a.receivedAt - b.receivedAt);
  return sorted.filter((reading, index) => !isReplaced(reading, sorted, index));
}

function isReplaced(reading: Reading, sorted: readonly Reading[], index: number): boolean {
  for (let next = index + 1; sorted[next]?.at === reading.at; next += 1) {
    if (sorted[next]?.kind === reading.kind && sorted[next]?.charger === reading.charger) return true;
  }
  return false;
}

/** Readings by charger: a register, and what follows on what, mean something on one charger only. */
export function byCharger<R extends Reading>(readings: readonly R[]): ReadonlyMap<ChargerId, readonly R[]> {
  const chargers = new Map<ChargerId, R[]>();
  for (const reading of readings) {
    const sofar = chargers.get(reading.charger);
    if (sofar === undefined) chargers.set(reading.charger, [reading]);
    else sofar.push(reading);
  }
  return chargers;
}

/**
 * What held while this vehicle was there: each reading (in order, of one charger and kind) until the next of that
 * charger, whoever is on it then, for `longest` at most; the last one for `tail`.
 */
export function stepsOf<R extends Reading>(
  readings: readonly R[],
  vehicle: VehicleId,
  longest: Millis,
  tail: Millis,
): readonly Step<R["value"]>[] {
  return readings.flatMap(({ at, value, vehicle: seen }, index) => {
    const next = readings[index + 1]?.at;
    const until = next === undefined ? after(at, tail) : earlier(next, after(at, longest));
    return seen === vehicle ? [{ from: at, until, value }] : [];
  });
}

/** Steps of several chargers as one line: where two overlap, the newer one holds. */
export function merged<S extends Window>(steps: readonly S[]): readonly S[] {
  const sorted = steps.toSorted((a, b) => a.from - b.from);
  return sorted
    .map((step, index) => ({ ...step, until: earlier(step.until, sorted[index + 1]?.from ?? step.until) }))
    .filter(({ from, until }) => from < until);
}

/** Those that reach into a window; disjoint and in order, as they were. */
export function reaching<W extends Window>(sorted: readonly W[], window: Window): readonly W[] {
  const first = firstWhere(sorted, ({ until }) => until > window.from);
  const end = firstWhere(sorted, ({ from }) => from >= window.until);
  return sorted.slice(first, end);
}

/** The steps that reach into a window, cut to it. */
export const within = <S extends Step<unknown>>(steps: readonly S[], window: Window): readonly S[] =>
  reaching(steps, window).map((step) => ({
    ...step,
    from: later(step.from, window.from),
    until: earlier(step.until, window.until),
  }));

/** Value times milliseconds. */
export const integral = (steps: readonly Step<number>[]): number =>
  steps.reduce((sum, { from, until, value }) => sum + value * (until - from), 0);

export const lengthOf = (windows: readonly Window[]): number =>
  windows.reduce((sum, { from, until }) => sum + until - from, 0);

/** Time-weighted over what is covered; null: nothing is. */
export function mean(steps: readonly Step<number>[]): number | null {
  const covered = lengthOf(steps);
  return covered === 0 ? null : integral(steps) / covered;
}

/** The highest value; null: none. */
export const peak = (steps: readonly Step<number>[]): number | null =>
  steps.reduce<number | null>((most, { value }) => Math.max(most ?? value, value), null);

/** The value that held last; null: none. */
export const last = <Value>(steps: readonly Step<Value>[]): Value | null => steps.at(-1)?.value ?? null;

/** What a window has besides these, which are disjoint, in order, and within it. */
export function holesIn(filled: readonly Window[], window: Window): readonly Window[] {
  const holes: Window[] = [];
  let { from } = window;
  for (const next of [...filled, { from: window.until, until: window.until }]) {
    if (from < next.from) holes.push({ from, until: next.from });
    from = next.until;
  }
  return holes;
}

/** Where nothing was read for longer than that: between two readings, or the window's edges where none lies beyond. */
export function gapsIn(times: readonly Instant[], window: Window, longest: Millis): readonly Window[] {
  const first = firstWhere(times, (at) => at >= window.from);
  const beyond = firstWhere(times, (at) => at >= window.until);
  const edges = [
    times[first - 1] ?? window.from,
    ...times.slice(first, beyond),
    times[beyond] ?? window.until,
  ];
  return edges.flatMap((from, index) => {
    const until = edges[index + 1];
    if (until === undefined || until - from <= longest) return [];
    return [{ from: later(from, window.from), until: earlier(until, window.until) }];
  });
}
