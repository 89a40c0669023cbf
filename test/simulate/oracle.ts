import { createHmac } from "node:crypto";

import type { Hold } from "../../src/domain/hold.ts";
import type { Desired } from "../../src/domain/setpoint.ts";

import type { Calendar, Knobs, PlannedAsk, PlannedCharger, PlannedEvent, PlannedVehicle } from "./plan.ts";

/**
 * What each charger should be doing, worked out from DESIGN 5.3 to 5.5 once more: every event, every vehicle, every
 * time. Slow and simple on purpose, and without a line of the program's own arithmetic.
 */

/** One revision of an event as the partner has it. */
export interface TrueEvent {
  readonly plan: PlannedEvent;
  /** Modification and creation, ms since the epoch. */
  readonly revised: number;
  readonly created: number;
}

/** What a charger does. "free": nothing was said, a release was, or the time of what was said has passed. */
export type Standing =
  | { readonly kind: "free" }
  | { readonly kind: "pause" }
  | { readonly kind: "current"; readonly value: number }
  | { readonly kind: "power"; readonly value: number };

/** What a charger does that obeys this. */
export function standingUnder(desired: Desired): Standing {
  switch (desired.kind) {
    case "current":
      return { kind: "current", value: desired.amperes };
    case "power":
      return { kind: "power", value: desired.watts };
    case "pause":
      return { kind: "pause" };
    case "release":
      return { kind: "free" };
  }
}

export const isSame = (a: Standing, b: Standing): boolean =>
  a.kind === b.kind && ("value" in a ? a.value : null) === ("value" in b ? b.value : null);

/** "16 A", "11000 W", "pause", "free". */
export function standingInWords(standing: Standing): string {
  switch (standing.kind) {
    case "current":
      return `${standing.value} A`;
    case "power":
      return `${standing.value} W`;
    case "pause":
    case "free":
      return standing.kind;
  }
}

export interface Site extends Calendar {
  readonly chargers: readonly PlannedCharger[];
  readonly vehicles: readonly PlannedVehicle[];
  readonly knobs: Knobs;
  readonly siteKey: Buffer;
}

const VOLTAGE = 230;
const LEAST_CURRENT = 6;

/** Half-open, ms since the epoch; null: it never acts on this vehicle. */
export interface Share {
  readonly from: number;
  readonly until: number;
}

/** When one vehicle acts on one revision (DESIGN 5.3). */
export function shareOf({ plan }: TrueEvent, vehicle: string, site: Site): Share | null {
  if (plan.ask.kind === "unknown" || plan.duration === 0 || !plan.vehicles.includes(vehicle)) return null;
  const start = site.midnight + plan.start;
  const fraction = fractionOf(plan, vehicle, site);
  if (site.knobs.randomizedEnd === "shift") {
    const from = start + Math.floor(fraction * (plan.spread + 1));
    return { from, until: from + plan.duration };
  }
  const from = start + Math.floor(fraction * (Math.min(plan.spread, plan.duration) + 1));
  const until = start + plan.duration;
  return from < until ? { from, until } : null;
}

/** Where in the spread of an event a vehicle stands, in [0, 1) (DESIGN 5.3). */
export function fractionOf(plan: PlannedEvent, vehicle: string, site: Site): number {
  const start = new Date(site.midnight + plan.start).toISOString();
  const message = JSON.stringify([plan.id, vehicle, start, plan.spread]);
  const digest = createHmac("sha256", site.siteKey).update(message).digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/** The vehicle that counts as being on a charger, by what the chargers said last (DESIGN 5.5). */
export function vehicleOn(
  charger: PlannedCharger,
  told: ReadonlyMap<string, string | null>,
  site: Site,
): PlannedVehicle | null {
  const said = told.get(charger.id) ?? null;
  if (said !== null) return site.vehicles.find(({ id }) => id === said) ?? null;
  const bound = site.vehicles.find((vehicle) => vehicle.charger === charger.id) ?? null;
  const isElsewhere = bound !== null && [...told.values()].includes(bound.id);
  return isElsewhere ? null : bound;
}

/**
 * The vehicle whose limit a charger may keep: its own one, which another charger claims, as long as it has not said
 * itself that it is gone (DESIGN 5.5). Null: none.
 */
export function mayKeep(
  charger: PlannedCharger,
  told: ReadonlyMap<string, string | null>,
  site: Site,
): PlannedVehicle | null {
  const isUnnamed = (told.get(charger.id) ?? null) === null;
  const bound = site.vehicles.find((vehicle) => vehicle.charger === charger.id) ?? null;
  return isUnnamed && vehicleOn(charger, told, site) === null ? bound : null;
}

/** Whether a hold covers a charger with this vehicle on it. */
export const covers = ({ scope }: Hold, charger: string, vehicle: string | null): boolean =>
  scope.kind === "site" || (scope.kind === "charger" ? scope.charger === charger : scope.vehicle === vehicle);

/** What the level of a hold means for a charger with this vehicle: never more than both allow. */
export function heldAt(hold: Hold, charger: PlannedCharger, vehicle: PlannedVehicle | null): Standing {
  const who = vehicle ?? { id: "", charger: null, maxCurrent: null };
  const { level } = hold;
  if (level === null || level.kind === "pause") return { kind: level === null ? "free" : "pause" };
  return level.kind === "current"
    ? allowed({ kind: "current", amperes: level.amperes }, charger, who)
    : allowed({ kind: "power", kilowatts: level.watts / 1000 }, charger, who);
}

/**
 * What a charger should be doing under these open holds, the newest first (DESIGN 5.8). A narrower one comes before that
 * of the site; an exemption from events counts where one of them would act.
 */
export function shouldHoldUnder(
  holds: readonly Hold[],
  charger: PlannedCharger,
  vehicle: PlannedVehicle | null,
  events: readonly TrueEvent[],
  site: Site,
  at: number,
  shares: (event: TrueEvent, vehicle: string) => Share | null,
): Standing {
  const over = holds.filter((hold) => covers(hold, charger.id, vehicle?.id ?? null));
  const inOrder = [
    ...over.filter(({ scope }) => scope.kind !== "site"),
    ...over.filter(({ scope }) => scope.kind === "site"),
  ];
  const isActing = (event: TrueEvent): boolean => {
    const share = vehicle === null ? null : shares(event, vehicle.id);
    return share !== null && share.from <= at && at < share.until;
  };
  for (const hold of inOrder) {
    const { end, level } = hold;
    if (level !== null || end.kind !== "events") return heldAt(hold, charger, vehicle);
    const exempt = new Set<string>(end.events);
    const others = events.filter(({ plan }) => !exempt.has(plan.id));
    if (events.some((event) => exempt.has(event.plan.id) && isActing(event)))
      return shouldHold(charger, vehicle, others, site, at, shares);
  }
  return shouldHold(charger, vehicle, events, site, at, shares);
}

/** What a charger should be doing at a moment. `shares` answers like `shareOf`. */
export function shouldHold(
  charger: PlannedCharger,
  vehicle: PlannedVehicle | null,
  events: Iterable<TrueEvent>,
  site: Site,
  at: number,
  shares: (event: TrueEvent, vehicle: string) => Share | null,
): Standing {
  if (vehicle === null) return { kind: "free" };
  let best: TrueEvent | null = null;
  for (const event of events) {
    const share = shares(event, vehicle.id);
    if (share === null || at < share.from || at >= share.until) continue;
    if (best === null || beats(event, best, charger, site.knobs)) best = event;
  }
  return best === null ? { kind: "free" } : allowed(best.plan.ask, charger, vehicle);
}

function beats(one: TrueEvent, other: TrueEvent, charger: PlannedCharger, knobs: Knobs): boolean {
  const [a, b] = [rank(one.plan.priority, knobs), rank(other.plan.priority, knobs)];
  if (a !== b) return a < b;
  if (knobs.ties === "mostRestrictive") {
    const [x, y] = [inWatts(one.plan.ask, charger), inWatts(other.plan.ask, charger)];
    if (x !== y) return x < y;
  }
  if (one.revised !== other.revised) return one.revised > other.revised;
  if (one.created !== other.created) return one.created > other.created;
  return one.plan.id > other.plan.id;
}

/** Smaller wins. */
function rank(priority: number | null, { priority: order, priorityZero }: Knobs): number {
  if (priority === null || (priority === 0 && priorityZero === "unset")) return 1e9;
  if (priority === 0) return -1e9;
  return order === "lower" ? priority : -priority;
}

function inWatts(ask: PlannedAsk, { phases }: PlannedCharger): number {
  switch (ask.kind) {
    case "current":
      return ask.amperes * phases * VOLTAGE;
    case "power":
      return ask.kilowatts * 1000;
    case "unknown":
      return Number.NaN;
  }
}

/** What of an ask this charger and this vehicle allow (DESIGN 5.4). */
export function allowed(ask: PlannedAsk, charger: PlannedCharger, vehicle: PlannedVehicle): Standing {
  const mostAmperes = Math.min(charger.maxCurrent, vehicle.maxCurrent ?? Infinity);
  switch (ask.kind) {
    case "current": {
      const value = wholeSteps(Math.min(ask.amperes, mostAmperes), charger);
      if (ask.amperes > 0 && value >= LEAST_CURRENT) return { kind: "current", value };
      return tooLittle(ask.amperes, charger, { kind: "current", value: LEAST_CURRENT });
    }
    case "power": {
      const ratio = charger.phases * VOLTAGE;
      if (charger.make?.takesWatts === false)
        return allowed({ kind: "current", amperes: (ask.kilowatts * 1000) / ratio }, charger, vehicle);
      const value = Math.floor(Math.min(ask.kilowatts * 1000, mostAmperes * ratio) + 1e-6);
      if (ask.kilowatts > 0 && value >= LEAST_CURRENT * ratio) return { kind: "power", value };
      return tooLittle(ask.kilowatts, charger, { kind: "power", value: LEAST_CURRENT * ratio });
    }
    case "unknown":
      return { kind: "free" };
  }
}

/** Tenths of an ampere, or whole ones where the make knows no others. */
const wholeSteps = (amperes: number, { make }: PlannedCharger): number =>
  make?.step === 1 ? Math.floor(amperes + 1e-6) : Math.floor(amperes * 10 + 1e-6) / 10;

const tooLittle = (asked: number, { belowMinimum }: PlannedCharger, least: Standing): Standing =>
  asked > 0 && belowMinimum === "hold" ? least : { kind: "pause" };
