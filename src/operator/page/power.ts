import type { Charger, Level, Point, Rating, Vehicle } from "./apiAnswers.ts";
import { type BrokersAway, isUnheard } from "./derive.ts";
import { loadedPhase } from "./format.ts";

/** Below this current, in A, the ratio of power and current is noise. */
const LEAST = 1;
/** W of one A per phase where nothing is known of a charger: three phases of 230 V. */
const THREE_PHASES = 690;

/** W of one A per phase, by the configuration of the charger. */
const ratedWatts = (rating: Rating | undefined): number =>
  rating === undefined ? THREE_PHASES : rating.phases * rating.voltage;

/** W of one A per phase, as measured: a vehicle may use fewer phases than its charger has. */
export function wattsPerAmpere(
  current: readonly Point[],
  power: readonly Point[],
  rating: Rating | undefined,
): number {
  const amperes = new Map(current);
  const ratios = power
    .flatMap(([at, watts]) => {
      const drawn = amperes.get(at) ?? 0;
      return drawn >= LEAST && watts > 0 ? [watts / drawn] : [];
    })
    .toSorted((a, b) => a - b);
  return ratios[Math.floor(ratios.length / 2)] ?? ratedWatts(rating);
}

/** W of one A per phase at a charger now. */
function wattsNow({ measured }: Charger, rating: Rating | undefined): number {
  const amperes = loadedPhase(measured?.currentsA) ?? 0;
  const watts = measured?.powerW ?? 0;
  return amperes >= LEAST && watts > 0 ? watts / amperes : ratedWatts(rating);
}

/** A level as amperes per phase. `perAmpere`: W of one A. Null: no limit. */
export const amperesOf = ({ currentA, powerW, pause }: Level, perAmpere: number): number | null =>
  pause === true ? 0 : (currentA ?? (powerW === undefined ? null : powerW / perAmpere));

/** Amperes measured, or computed from the power where a charger reports no current. */
export const measuredAmperes = (
  current: readonly Point[],
  power: readonly Point[],
  perAmpere: number,
): readonly Point[] =>
  current.length > 0 ? current : power.map(([at, watts]) => [at, watts / perAmpere] as const);

/** Power at the main fuse, in W: three phases of the voltage of the chargers. */
export const fusePower = (fuseA: number, ratings: Readonly<Record<string, Rating>>): number =>
  fuseA * 3 * (Object.values(ratings)[0]?.voltage ?? THREE_PHASES / 3);

/** The most that a charger can draw, in W. */
const mostOf = (rating: Rating | undefined): number =>
  rating === undefined ? 0 : (rating.maxPowerW ?? (rating.maxCurrentA ?? 0) * ratedWatts(rating));

/** Power of the chargers under one event, in W. Null as event: under a hold alone. */
interface LimitedPower {
  readonly event: string | null;
  readonly drawn: number;
  readonly allowed: number;
}

/**
 * Power of the site, in W. `allowed`: of the limited chargers. `reserved`: the most that silent chargers, and those behind a
 * lost broker, can draw, as their limits may have lapsed.
 */
export function sitePower(
  chargers: readonly Charger[],
  ratings: Readonly<Record<string, Rating>>,
  away: BrokersAway,
) {
  let measured = 0;
  let limited = 0;
  let allowed = 0;
  let silent = 0;
  let reserved = 0;
  const phases = [0, 0, 0];
  const byEvent = new Map<string | null, LimitedPower>();
  for (const charger of chargers) {
    const { powerW, currentsA } = charger.measured ?? {};
    const rating = ratings[charger.charger];
    if (isUnheard(charger, away)) {
      silent += 1;
      reserved += mostOf(rating);
      continue;
    }
    measured += powerW ?? 0;
    for (const [phase, current] of (currentsA ?? []).entries())
      phases[phase] = (phases[phase] ?? 0) + current;
    const level = charger.allowed;
    // A level of a site that only observes was not sent.
    if (level === null || level.kind === "release" || charger.verdict === "observed") continue;
    const most = level.kind === "power" ? (level.value ?? 0) : (level.value ?? 0) * wattsNow(charger, rating);
    limited += powerW ?? 0;
    allowed += most;
    const event = charger.asked?.event ?? null;
    const before = byEvent.get(event) ?? { event, drawn: 0, allowed: 0 };
    byEvent.set(event, { event, drawn: before.drawn + (powerW ?? 0), allowed: before.allowed + most });
  }
  const limits = [...byEvent.values()].toSorted((a, b) => b.allowed - a.allowed);
  return { measured, limited, free: measured - limited, allowed, limits, phases, silent, reserved };
}

/** The most that each vehicle can draw, and its planned setpoints. */
export interface Planned {
  readonly planned: Vehicle["planned"];
  readonly rating: Rating | undefined;
}

/**
 * The most that the site can draw by the plan, in W, as steps in time: each vehicle as much as its charger can, and
 * within a planned setpoint at most that. `most`: without any event.
 */
export function plannedPower(vehicles: readonly Planned[]) {
  const changes = new Map<number, number>();
  let most = 0;
  for (const { planned, rating } of vehicles) {
    const own = mostOf(rating);
    most += own;
    const windows = planned.map(({ from, until, asked }) => ({
      from: Date.parse(from),
      until: Date.parse(until),
      watts: asked.kind === "power" ? asked.watts : asked.amperes * ratedWatts(rating),
    }));
    const edges = [...new Set(windows.flatMap(({ from, until }) => [from, until]))].toSorted((a, b) => a - b);
    let before = own;
    for (const at of edges) {
      // The lowest of overlapping windows counts.
      const open = windows.filter(({ from, until }) => from <= at && at < until);
      const watts = Math.min(own, ...open.map(({ watts: asked }) => asked));
      changes.set(at, (changes.get(at) ?? 0) + watts - before);
      before = watts;
    }
  }
  let watts = most;
  const steps = [...changes]
    .toSorted(([a], [b]) => a - b)
    .map(([at, by]) => {
      watts += by;
      return { at, watts };
    });
  return { most, steps };
}

/** Spans of time that overlap get lanes of their own. `least`: time that the drawing of a short one takes. */
export function lanesOf<T extends { readonly from: number; readonly until: number }>(
  bars: readonly T[],
  least: number,
): readonly (readonly T[])[] {
  const lanes: T[][] = [];
  for (const bar of bars) {
    const free = lanes.find((lane) =>
      lane.every(({ from, until }) => Math.max(until, from + least) <= bar.from),
    );
    if (free === undefined) lanes.push([bar]);
    else free.push(bar);
  }
  return lanes;
}

export type Group<T> = readonly [T, ...T[]];

/** Moments in the order of time, in groups. Less than `least` lies between the first and the others of a group. */
export function groupsOf<T extends { readonly at: number }>(
  moments: readonly T[],
  least: number,
): readonly Group<T>[] {
  const groups: [T, ...T[]][] = [];
  for (const moment of moments) {
    const last = groups.at(-1);
    if (last !== undefined && moment.at < last[0].at + least) last.push(moment);
    else groups.push([moment]);
  }
  return groups;
}

/** Number of vehicles that have a setpoint of an event, as steps in time. */
export function limitedSteps(
  list: readonly Pick<Vehicle, "planned">[],
): readonly { readonly at: number; readonly count: number }[] {
  const changes = new Map<number, number>();
  const add = (at: number, by: number): void => void changes.set(at, (changes.get(at) ?? 0) + by);
  for (const { planned } of list)
    for (const { from, until } of merged(planned)) {
      add(from, 1);
      add(until, -1);
    }
  let count = 0;
  return [...changes]
    .toSorted(([a], [b]) => a - b)
    .map(([at, by]) => {
      count += by;
      return { at, count };
    });
}

/** Windows of one vehicle that overlap count once. */
function merged(planned: Vehicle["planned"]): readonly { from: number; until: number }[] {
  const windows = planned
    .map(({ from, until }) => ({ from: Date.parse(from), until: Date.parse(until) }))
    .toSorted((a, b) => a.from - b.from);
  const result: { from: number; until: number }[] = [];
  for (const window of windows) {
    const last = result.at(-1);
    if (last !== undefined && window.from <= last.until) last.until = Math.max(last.until, window.until);
    else result.push({ ...window });
  }
  return result;
}
