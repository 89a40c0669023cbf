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
import { firstWhere } from "../platform/collections.ts";

/** A value that held over a stretch of time. */
export interface Step<Value> extends Window {
  readonly value: Value;
}

/**
 * Sorts readings by their time, late ones included. Of one charger, kind and time only the last received is kept: a
 * redelivery counts once.
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

/** Readings by charger. Registers and sequences are meaningful on one charger only. */
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
 * Values while this vehicle was there: each reading until the next one, at most `longest`; the last for `tail`.
 * Readings are in order, of one charger and kind. The next reading counts whichever vehicle it names.
 */
export function stepsOf<R extends Reading>(
  readings: readonly R[],
  vehicle: VehicleId,
  longest: Millis,
  tail: Millis,
): readonly Step<R["value"]>[] {
  const steps: Step<R["value"]>[] = [];
  for (const [index, { at, value, vehicle: seen }] of readings.entries()) {
    const next = readings[index + 1]?.at;
    const until = next === undefined ? after(at, tail) : earlier(next, after(at, longest));
    if (seen === vehicle) steps.push({ from: at, until, value });
  }
  return steps;
}

/** Merges the steps of several chargers. Where two overlap, the newer one holds. */
export function merged<S extends Window>(steps: readonly S[]): readonly S[] {
  const sorted = steps.toSorted((a, b) => a.from - b.from);
  return sorted
    .map((step, index) => {
      const next = sorted[index + 1]?.from;
      return next === undefined || next >= step.until ? step : { ...step, until: next };
    })
    .filter(({ from, until }) => from < until);
}

/** Steps that reach into a window. Input and output are disjoint and in order. */
export function reaching<W extends Window>(sorted: readonly W[], window: Window): readonly W[] {
  const first = firstWhere(sorted, ({ until }) => until > window.from);
  const end = firstWhere(sorted, ({ from }) => from >= window.until);
  return sorted.slice(first, end);
}

/** The steps that reach into a window, cut to it. */
export const within = <S extends Step<unknown>>(steps: readonly S[], window: Window): readonly S[] =>
  reaching(steps, window).map((step) =>
    step.from >= window.from && step.until <= window.until
      ? step
      : { ...step, from: later(step.from, window.from), until: earlier(step.until, window.until) },
  );

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

/** The value that holds at the end of a window. Null: none does, whatever held before. */
export function atEnd<Value>(steps: readonly Step<Value>[], window: Window): Value | null {
  const step = reaching(steps, window).at(-1);
  return step === undefined || step.until < window.until ? null : step.value;
}

/** Gaps between windows that are disjoint, in order, and inside `window`. */
export function holesIn(filled: readonly Window[], window: Window): readonly Window[] {
  const holes: Window[] = [];
  let { from } = window;
  for (const next of [...filled, { from: window.until, until: window.until }]) {
    if (from < next.from) holes.push({ from, until: next.from });
    from = next.until;
  }
  return holes;
}

/** Gaps longer than `longest` without a reading. The window's edges count where no reading lies beyond. */
export function gapsIn(times: readonly Instant[], window: Window, longest: Millis): readonly Window[] {
  const first = firstWhere(times, (at) => at >= window.from);
  const beyond = firstWhere(times, (at) => at >= window.until);
  const edges = [
    times[first - 1] ?? window.from,
    ...times.slice(first, beyond),
    times[beyond] ?? window.until,
  ];
  const gaps: Window[] = [];
  let [from = window.from] = edges;
  for (const until of edges) {
    if (until - from > longest)
      gaps.push({ from: later(from, window.from), until: earlier(until, window.until) });
    from = until;
  }
  return gaps;
}
