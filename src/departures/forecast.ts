import type { AllowedStretch } from "../control/decide/ahead.ts";
import { type Departure, formatEnergy } from "../domain/departure.ts";
import { type EventId, type Instant, instant, hours } from "../domain/units.ts";
import type { WallClock } from "../platform/clock.ts";
import { listed } from "../platform/text.ts";

/** A part of the charge within which the vehicle draws at most so much. */
interface Band {
  /** Energy from now to the end of this part, in Wh. */
  readonly untilWh: number;
  readonly mostW: number;
}

/** State of charge from which a battery charges slower, in percent. */
export const KNEE = 80;
/** Part of the full power that is left at 100 %. */
export const AT_THE_END = 0.2;
/** Percent of a band. */
const STEP = 2;

/** The battery of a vehicle, and what it draws. */
interface Battery {
  /** Percent. Null: not known. */
  readonly soc: number | null;
  /** Null: not known. */
  readonly capacityWh: number | null;
  /** Measured power in W. Null: not known. */
  readonly powerW: number | null;
  /** Largest power that charger and vehicle allow, in W. */
  readonly mostW: number;
}

/** Part of the full power that is taken to be left at a state of charge. */
const leftAt = (soc: number): number =>
  soc <= KNEE ? 1 : 1 - (1 - AT_THE_END) * ((Math.min(soc, 100) - KNEE) / (100 - KNEE));

/**
 * The slower end of a charge. A vehicle that draws more than that now keeps its lead. Empty: the state of charge or the
 * capacity is not known, or nothing limits the power.
 *
 *   W |-----------.
 *     |            `-.         80 %: all of it
 *     |               `-.     100 %: a fifth
 *     +------------------- %
 */
export function taper({ soc, capacityWh, powerW, mostW }: Battery): readonly Band[] {
  if (soc === null || capacityWh === null || !Number.isFinite(mostW)) return [];
  const lead = Math.max(1, (powerW ?? 0) / (leftAt(soc) * mostW));
  const bands: Band[] = [];
  for (let from = Math.max(soc, KNEE); from < 100; from += STEP) {
    const until = Math.min(from + STEP, 100);
    if (from === KNEE && soc < KNEE) bands.push({ untilWh: ((KNEE - soc) / 100) * capacityWh, mostW });
    bands.push({
      untilWh: ((until - soc) / 100) * capacityWh,
      mostW: Math.min(mostW, lead * mostW * leftAt((from + until) / 2)),
    });
  }
  return bands;
}

/** Time that the slower end costs a vehicle that gets all of `fullW`, in hours, for this energy from now. */
export function slowerBy(bands: readonly Band[], wh: number, fullW: number): number {
  let [hours, done] = [0, 0];
  for (const { untilWh, mostW } of bands) {
    const part = Math.max(0, Math.min(untilWh, wh) - done);
    if (mostW < fullW) hours += part / mostW - part / fullW;
    done = Math.max(done, untilWh);
  }
  return hours;
}

/**
 * State of a departure. `ready`: the vehicle has what it needs. `onTime`: it will have it. `short`: it will not.
 * `unknown`: a fact is missing.
 */
type DepartureState = "ready" | "onTime" | "short" | "unknown";

/** Kind of fact that makes a vehicle late. `time`: it was plugged in too late for what it needs. */
export type Cause = "event" | "hold" | "charger" | "vehicle" | "time" | "notPluggedIn";

/** Known facts of a vehicle and its charger. */
export interface Situation {
  /** Energy that is missing, in Wh. Null: not known. */
  readonly remainingWh: number | null;
  /** Facts that are not known, for people. */
  readonly missing: readonly string[];
  /** True: the vehicle has ended charging by itself. */
  readonly isFinished: boolean;
  /** The charger's own obstacle: it reports an error. Null: none. */
  readonly obstacle: string | null;
  /** Power that the vehicle draws although more is allowed, in W. Null: it draws what is allowed. */
  readonly drawsW: number | null;
  /** Largest power that charger and vehicle allow, in W. */
  readonly mostW: number;
  /** The slower end of the charge. Empty: not known, or none. */
  readonly bands: readonly Band[];
}

/** The expected end of charging, against the departure. */
export interface Forecast {
  readonly state: DepartureState;
  /** Null: never by the plan, or not known. */
  readonly readyAt: Instant | null;
  /** Energy that is missing at the departure, in Wh. Null: none, or not known. */
  readonly shortWh: number | null;
  readonly cause: Cause | null;
  readonly because: string;
  readonly missing: readonly string[];
  /** Assumptions that the forecast rests on, for people. */
  readonly assumed: readonly string[];
}

/** Missing fact of a vehicle that no charger reports. */
export const NOT_PLUGGED_IN = "the vehicle is not plugged in";

/** The plan is followed so far beyond a departure. */
export const BEYOND = hours(24);
/** A smaller shortfall is within the error of a meter, in Wh. */
const SMALLEST_WH = 50;
const HOUR_MS = 3_600_000;
/** Most events named in a sentence. */
const MOST_NAMED = 3;

/** Energy in Wh that these stretches deliver before `until`, and the moment at which `wanted` is reached. */
export function deliver(
  stretches: Iterable<AllowedStretch>,
  powerOf: (stretch: AllowedStretch) => number,
  wanted: number,
  until: Instant,
  bands: readonly Band[] = [],
): { readonly wh: number; readonly readyAt: Instant | null } {
  let [wh, total, band] = [0, 0, 0];
  let readyAt: Instant | null = null;
  for (const stretch of stretches) {
    const allowed = powerOf(stretch);
    for (let from: number = stretch.from; from < stretch.until;) {
      while ((bands[band]?.untilWh ?? Infinity) <= total) band += 1;
      const { untilWh, mostW } = bands[band] ?? { untilWh: Infinity, mostW: bands.at(-1)?.mostW ?? Infinity };
      const watts = Math.min(allowed, mostW);
      // At least a millisecond: a band that ends in between is left.
      const fills = watts > 0 ? Math.max(1, Math.ceil(((untilWh - total) / watts) * HOUR_MS)) : Infinity;
      const end = Math.min(stretch.until, from + fills);
      const span = (end - from) / HOUR_MS;
      if (readyAt === null && total + watts * span >= wanted)
        readyAt = instant(from + Math.ceil(((wanted - total) / watts) * HOUR_MS));
      wh += (watts * Math.max(0, Math.min(end, until) - from)) / HOUR_MS;
      total += watts * span;
      from = end;
    }
  }
  return { wh, readyAt };
}

/** Forecasts one departure from the plan ahead. Power is never better than measured. */
export function forecast(
  { at, need }: Pick<Departure, "at" | "need">,
  situation: Situation,
  stretches: readonly AllowedStretch[],
  wallClock: WallClock,
  assumed: readonly string[] = [],
): Forecast {
  const { remainingWh, missing, isFinished, obstacle, drawsW, mostW, bands } = situation;
  const leaves = wallClock(at);
  const none = { readyAt: null, shortWh: null, cause: null, missing, assumed: [] } as const;
  if (missing.length > 0 || remainingWh === null)
    return {
      ...none,
      state: "unknown",
      cause: missing.includes(NOT_PLUGGED_IN) ? "notPluggedIn" : null,
      because: `not known: ${missing.join(", ")}`,
    };
  if (remainingWh <= 0) return { ...none, state: "ready", because: "it has what it needs" };
  if (isFinished && need.kind === "energy")
    return { ...none, state: "ready", because: "the vehicle has ended charging by itself" };
  const cap = obstacle !== null || isFinished ? 0 : (drawsW ?? Infinity);
  const draws = ({ allowedW }: AllowedStretch): number => Math.min(allowedW, cap);
  const planned = deliver(stretches, draws, remainingWh, at, bands);
  const { readyAt } = planned;
  const shortWh = remainingWh - planned.wh;
  if (shortWh < SMALLEST_WH) {
    const because = `ready ${readyAt === null ? leaves : wallClock(readyAt)}, it leaves ${leaves}`;
    return { ...none, state: "onTime", readyAt, because, assumed };
  }
  const suffices = (powerOf: (stretch: AllowedStretch) => number): boolean =>
    remainingWh - deliver(stretches, powerOf, remainingWh, at, bands).wh < SMALLEST_WH;
  const late = { state: "short", readyAt, shortWh, missing, assumed } as const;
  const ready = readyAt === null ? "" : `, ready ${wallClock(readyAt)}`;
  const short = `${formatEnergy(shortWh)} short at ${leaves}${ready}`;
  const of = (cause: Cause, why: string): Forecast => ({ ...late, cause, because: `${short}: ${why}` });
  if (obstacle !== null) return of("charger", obstacle);
  if (isFinished) return of("vehicle", "the vehicle has ended charging by itself");
  if (suffices((stretch) => Math.min(stretch.withoutEventsW, cap)))
    return of("event", eventsIn(stretches, draws, cap, at, wallClock));
  if (suffices(() => Math.min(mostW, cap))) return of("hold", holdsIn(stretches, at, cap));
  const most = `${formatPower(mostW)} of charger and vehicle`;
  if (cap < mostW && suffices(() => mostW))
    return of(
      "vehicle",
      cap === 0
        ? `the vehicle draws nothing of the ${most}`
        : `the vehicle draws ${formatPower(cap)} of the ${most}`,
    );
  const isSlower =
    bands.length > 0 && remainingWh - deliver(stretches, () => mostW, remainingWh, at).wh < SMALLEST_WH;
  if (isSlower) return of("time", `charging slows down above ${KNEE} %`);
  return of(
    "time",
    `it needs ${formatEnergy(remainingWh)}, more than ${formatPower(Math.min(mostW, cap))} gives by then`,
  );
}

export const formatPower = (watts: number): string => `${Math.round(watts / 100) / 10} kW`;

/** The events that cost energy before a departure, with the least power that they allow. */
function eventsIn(
  stretches: readonly AllowedStretch[],
  draws: (stretch: AllowedStretch) => number,
  cap: number,
  at: Instant,
  wallClock: WallClock,
): string {
  const costly = new Map<EventId, { least: number; until: Instant }>();
  for (const stretch of stretches) {
    const { event, from, until, withoutEventsW } = stretch;
    if (event === null || from >= at || draws(stretch) >= Math.min(withoutEventsW, cap)) continue;
    const least = Math.min(stretch.allowedW, costly.get(event)?.least ?? Infinity);
    costly.set(event, { least, until });
  }
  const texts = [...costly].map(
    ([event, { least, until }]) => `event ${event} allows ${formatPower(least)} until ${wallClock(until)}`,
  );
  return listed(texts, MOST_NAMED) || "the level after an event is too low";
}

function holdsIn(stretches: readonly AllowedStretch[], at: Instant, cap: number): string {
  const found = stretches.find(
    ({ hold, from, allowedW }) => hold?.level != null && from < at && allowedW < cap,
  );
  return found?.hold == null
    ? "events and overrides leave too little"
    : `an override of ${found.hold.by} allows ${formatPower(found.allowedW)}`;
}
