import { DateTime } from "luxon";

import { type Instant, type Millis, minutes, iso, millis, hours } from "../domain/units.ts";
import { writeTimespan } from "../vtn/dialects/partner/fields.ts";

/** Time zone of the market day. */
const ZONE = "Europe/Oslo";
const REGIONS = ["NO1", "NO2", "NO3", "NO4", "NO5", "SE1", "SE2", "SE3", "SE4", "DK1", "DK2", "FI"];
/** Local hour at which tomorrow's prices are published. */
const OUT_AT = 13;
const FORECAST_DAYS = 7;
const HOUR = hours(1);

const bump = (hour: number, at: number, width: number): number => Math.exp(-(((hour - at) / width) ** 2));

/** Price with a morning and an evening peak, different for each region. Currency per kWh. */
function priceAt(region: string, at: DateTime): number {
  const hour = at.hour + at.minute / 60;
  const level = 0.4 + 0.05 * REGIONS.indexOf(region) + 0.06 * Math.cos(((hour - 15) / 12) * Math.PI);
  return Math.round((level + 0.35 * bump(hour, 8, 2) + 0.45 * bump(hour, 18, 2.5)) * 10_000) / 10_000;
}

const localMidnight = (now: Instant): DateTime => DateTime.fromMillis(now, { zone: ZONE }).startOf("day");

/** Starts of all steps in [from, until). Counted in elapsed time: a local day may have 23 or 25 hours. */
function stepsOf(from: DateTime, until: DateTime, step: Millis): readonly DateTime[] {
  const count = Math.ceil((until.toMillis() - from.toMillis()) / step);
  return Array.from({ length: count }, (_, index) => from.plus({ milliseconds: index * step }));
}

/** Moments on the wire are in UTC (partner-interface 2.1). */
const utc = (at: DateTime): string => at.toUTC().toISO({ suppressMilliseconds: true }) ?? "";

const unitsOf = (region: string) => ({
  priceArea: region,
  priceUnits: { currency: "NOK", vat: { rate: 0.25, hasVAT: false }, energyUnit: "kWh" },
});

/**
 * Spot prices of today, and of tomorrow once they are published: a map from moment to price (openadr3 0).
 * Null: unknown region.
 */
export function spotPrices(region: string, now: Instant, step: Millis = HOUR): object | null {
  if (!REGIONS.includes(region)) return null;
  const midnight = localMidnight(now);
  const days = DateTime.fromMillis(now, { zone: ZONE }).hour < OUT_AT ? 1 : 2;
  const steps = stepsOf(midnight, midnight.plus({ days }), step);
  return {
    ...unitsOf(region),
    prices: Object.fromEntries(steps.map((at) => [utc(at), priceAt(region, at)])),
  };
}

/** Expected prices of seven days from the day after tomorrow. `to` is the start of a segment's last hour. Null: unknown region. */
export function priceForecast(region: string, now: Instant, segmentHours: number): object | null {
  if (!REGIONS.includes(region)) return null;
  const first = localMidnight(now).plus({ days: 2 });
  const starts = stepsOf(first, first.plus({ days: FORECAST_DAYS }), minutes(60 * segmentHours));
  const forecastSegments = starts.map((from) => {
    const hours = stepsOf(from, from.plus({ hours: segmentHours }), HOUR);
    const sum = hours.reduce((total, at) => total + priceAt(region, at), 0);
    const averagePrice = Math.round((sum / hours.length) * 10_000) / 10_000;
    return { from: utc(from), to: utc(from.plus({ hours: segmentHours - 1 })), averagePrice };
  });
  return { ...unitsOf(region), forecastSegments };
}

/** partner-interface 2.2. */
interface WireTarget {
  readonly targetType: string;
  readonly values: readonly string[];
}

/** partner-interface 2.3, the partner's spelling. */
interface WireReportDescriptor {
  readonly payloadType: string;
  readonly readingType: string;
  readonly aggregate: boolean;
  readonly frequency: number;
  readonly historical: boolean;
  readonly numIntervals: number;
  readonly repeat: number;
  readonly startInterval: number;
}

/** partner-interface 2.5; amperes and kilowatts. */
type WirePayload =
  | { readonly payloadType: "CurrentLevel"; readonly targetCurrent: number }
  | { readonly payloadType: "PowerLevel"; readonly targetPower: number };

/** partner-interface 2.1, letter for letter. */
export interface WireEvent {
  readonly createdDateTime: string;
  readonly ID: string;
  readonly modificationDateTime: string;
  readonly name: string;
  readonly priority: number;
  readonly programID: string;
  readonly reportDescriptors?: readonly WireReportDescriptor[];
  readonly targets?: readonly WireTarget[];
  readonly intervalPeriod: {
    readonly start: string;
    readonly duration: string;
    readonly randomizeStart?: string;
  };
  readonly payload: WirePayload;
}

/** An event to be simulated. `wireEvent` writes it in the partner's format. */
export interface EventPlan {
  readonly id: string;
  readonly name?: string;
  readonly start: Instant;
  readonly durationMs: number;
  /** Absent: no random start. */
  readonly randomizeStartMs?: number;
  /** Absent: 5. Lower wins. */
  readonly priority?: number;
  readonly ask: { readonly amperes: number } | { readonly kilowatts: number };
  /** VTN resource ids. Absent: the event has no targets at all. */
  readonly vehicles?: readonly string[];
  readonly programId?: string;
  readonly reportDescriptors?: readonly Omit<WireReportDescriptor, "targets">[];
}

const payload = (ask: EventPlan["ask"]): WirePayload =>
  "amperes" in ask
    ? { payloadType: "CurrentLevel", targetCurrent: ask.amperes }
    : { payloadType: "PowerLevel", targetPower: ask.kilowatts };

/** Contract JSON of one event (partner-interface 2), created and modified at `now`. */
export function wireEvent(plan: EventPlan, now: Instant): WireEvent {
  const targets = plan.vehicles && [{ targetType: "vehicle", values: plan.vehicles }];
  return {
    createdDateTime: iso(now),
    ID: plan.id,
    modificationDateTime: iso(now),
    name: plan.name ?? plan.id,
    priority: plan.priority ?? 5,
    programID: plan.programId ?? "depot-flex",
    ...(targets && { targets }),
    // The targets of a descriptor are those of its event (partner-interface 2.2).
    ...(plan.reportDescriptors && {
      reportDescriptors: plan.reportDescriptors.map((asked) => ({ ...asked, ...(targets && { targets }) })),
    }),
    intervalPeriod: {
      start: iso(plan.start),
      duration: writeTimespan(millis(plan.durationMs)),
      ...(plan.randomizeStartMs !== undefined && {
        randomizeStart: writeTimespan(millis(plan.randomizeStartMs)),
      }),
    },
    payload: payload(plan.ask),
  };
}
