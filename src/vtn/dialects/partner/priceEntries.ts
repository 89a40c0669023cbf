import type { PriceUnits, Vat, SentPrice } from "../../../domain/prices.ts";
import { after, type Instant, type Millis, millis } from "../../../domain/units.ts";
import {
  fieldsOf,
  type Fields,
  spelling,
  isProblem,
  misfit,
  type Problem,
  shown,
  readMoment,
  readTimespan,
  readTimestamp,
} from "./fields.ts";

const UNIT_FIELDS = ["currency", "energyUnit", "perUnit", "vat", "units", "unit", "priceUnits"] as const;
type UnitField = (typeof UNIT_FIELDS)[number];

/** Fields of a price record that name its units. */
export const unitFields: readonly UnitField[] = UNIT_FIELDS;

const unitNames = spelling(UNIT_FIELDS);
const vatNames = spelling(["rate", "hasVAT"]);

/** No units are known yet. */
export const noUnits: PriceUnits = { currency: null, perUnit: null, vat: null };

/**
 * Units that an object states, completed by those of `outer`. They stand beside the prices, in `priceUnits`,
 * or as `NOK/kWh` or `kWh`.
 */
export function unitsWithin(outer: PriceUnits, fields: Fields<UnitField>): PriceUnits {
  const within = fieldsOf(unitNames, fields.priceUnits) ?? {};
  const texts = [fields.priceUnits, fields.unit, fields.units].filter((each) => typeof each === "string");
  const [currency, perUnit] = fraction(texts[0]?.trim() ?? "");
  return {
    currency: displayText(fields.currency ?? within.currency) ?? currency ?? outer.currency,
    perUnit:
      energyUnit(fields.energyUnit ?? fields.perUnit ?? within.energyUnit ?? within.perUnit) ??
      perUnit ??
      outer.perUnit,
    vat: vatOf(fields.vat ?? within.vat) ?? outer.vat,
  };
}

const ENERGY_UNIT = /^([kmg]?)wh$/i;

/** OpenADR writes `KWH`. */
function energyUnit(found: unknown): string | null {
  const unit = displayText(found);
  return unit === null
    ? null
    : unit.replace(ENERGY_UNIT, (_, prefix: string) => `${PREFIXES.get(prefix.toLowerCase()) ?? ""}Wh`);
}

const PREFIXES = new Map([
  ["k", "k"],
  ["m", "M"],
  ["g", "G"],
]);

/** Text that is safe to display: short, on one line. */
export const displayText = (found: unknown): string | null =>
  typeof found === "string" && /^[\p{L}\p{N} /%._-]{1,32}$/u.test(found) ? found : null;

/** Currency and unit of energy of `NOK/kWh` or `kWh`. */
function fraction(text: string): readonly [string | null, string | null] {
  if (ENERGY_UNIT.test(text)) return [null, energyUnit(text)];
  const [currency, perUnit, ...more] = text.split("/");
  return perUnit === undefined || more.length > 0
    ? [null, null]
    : [displayText(currency?.trim()), energyUnit(perUnit.trim())];
}

function vatOf(found: unknown): Vat | null {
  if (typeof found === "number") return { rate: finite(found), hasVAT: null };
  if (typeof found === "boolean") return { rate: null, hasVAT: found };
  const fields = fieldsOf(vatNames, found);
  if (fields === undefined) return null;
  const { rate, hasVAT } = fields;
  return { rate: finite(rate), hasVAT: typeof hasVAT === "boolean" ? hasVAT : null };
}

const finite = (found: unknown): number | null =>
  typeof found === "number" && Number.isFinite(found) ? withoutNoise(found) : null;

/** Far more than a price needs. A sum or a quotient of binary fractions is wrong in the 15th digit at the earliest. */
const SIGNIFICANT_DIGITS = 12;

/** Removes floating-point noise: 0.30000000000000004 becomes 0.3, and -0 becomes 0. */
const withoutNoise = (value: number): number => Number(value.toPrecision(SIGNIFICANT_DIGITS)) + 0;

/** A price with the region that it names, or a part of the answer that is no price. */
export type PriceEntry =
  | { readonly kind: "price"; readonly price: SentPrice; readonly area: string | null }
  | { readonly kind: "doubt"; readonly message: string };

/** Values that apply to all prices below an object. */
export interface PriceScope {
  readonly units: PriceUnits;
  /** The region that the prices name. */
  readonly area: string | null;
  /** Time of the answer. OpenADR's "now" means this time. */
  readonly at: Instant;
}

/** A price as written. `inclusive`: length of the last step if `to` is its start. Null: `to` is the end. */
export interface WrittenPrice {
  readonly from: unknown;
  readonly to: unknown;
  readonly amount: unknown;
  readonly inclusive: Millis | null;
}

/** Reads one written price. If only its amount is unreadable, its period still counts. */
export function* priceEntry(
  { from, to, amount, inclusive }: WrittenPrice,
  { units, area }: PriceScope,
): Generator<PriceEntry> {
  const start = readMoment(from);
  const last = to === undefined ? null : readMoment(to);
  if (isProblem(start)) return yield doubt(start.problem);
  if (isProblem(last)) return yield doubt(last.problem);
  const end = last === null || inclusive === null ? last : after(last, inclusive);
  if (end !== null && end <= start) return yield doubt(`a price at ${shown(from)} that ends at ${shown(to)}`);
  const value = readAmount(amount);
  if (isProblem(value)) yield doubt(value.problem);
  yield { kind: "price", price: { start, end, value: isProblem(value) ? null : value, ...units }, area };
}

/** A part of an answer that is no price, with a message. */
export const doubt = (message: string): PriceEntry => ({ kind: "doubt", message });

const DECIMAL = /^-?\d{1,15}(?:\.\d{1,30})?$/;

/** Reads a number or its plain decimal text. A comma may divide thousands or decimals, so such a text is rejected. */
function readAmount(found: unknown): number | Problem {
  const value = typeof found === "string" && DECIMAL.test(found) ? Number(found) : found;
  return typeof value === "number" && Number.isFinite(value)
    ? withoutNoise(value)
    : misfit(found, "a price", "a number such as 0.4512");
}

/** The members of an OpenADR event that prices are read from, still unparsed. */
export interface PriceEvent {
  readonly intervals?: unknown;
  readonly intervalPeriod?: unknown;
  readonly payloadDescriptors?: unknown;
}

interface Period {
  readonly start: Instant | null;
  readonly duration: Millis | null;
}

const periodNames = spelling(["start", "duration"]);
const intervalNames = spelling(["intervalPeriod", "payloads"]);
const payloadNames = spelling(["type", "values"]);
const descriptorNames = spelling(["payloadType", "currency", "units"]);

/**
 * Reads the PRICE payloads of an OpenADR event. Intervals follow one another with the length of the event's
 * intervalPeriod, unless one has its own. Several values divide their interval evenly.
 */
export function* priceIntervals(event: PriceEvent, scope: PriceScope): Generator<PriceEntry> {
  const units = unitsOf(event.payloadDescriptors, scope.units);
  const usual = readPeriod(event.intervalPeriod, scope.at);
  let next = usual.start;
  for (const interval of asList(event.intervals)) {
    const fields = fieldsOf(intervalNames, interval);
    const own = readPeriod(fields?.intervalPeriod, scope.at);
    const start = own.start ?? next;
    const duration = own.duration ?? usual.duration;
    next = start === null || duration === null ? null : after(start, duration);
    const values = priceValues(fields?.payloads);
    if (start === null || duration === null) yield doubt("an interval without a start and a duration");
    else if (values.length === 0) yield doubt("an interval without a PRICE payload");
    else yield* evenly(values, start, duration, { ...scope, units });
  }
}

function* evenly(
  values: readonly unknown[],
  start: Instant,
  duration: Millis,
  { units, area }: PriceScope,
): Generator<PriceEntry> {
  const part = (index: number): Instant =>
    after(start, millis(Math.round((duration * index) / values.length)));
  for (const [index, found] of values.entries()) {
    const value = readAmount(found);
    if (isProblem(value)) yield doubt(value.problem);
    const price = {
      start: part(index),
      end: part(index + 1),
      value: isProblem(value) ? null : value,
      ...units,
    };
    if (price.end > price.start) yield { kind: "price", price, area };
  }
}

function priceValues(payloads: unknown): readonly unknown[] {
  const payload = asList(payloads)
    .map((each) => fieldsOf(payloadNames, each))
    .find((fields) => isPrice(fields?.type));
  return asList(payload?.values);
}

function unitsOf(descriptors: unknown, outer: PriceUnits): PriceUnits {
  const descriptor = asList(descriptors)
    .map((each) => fieldsOf(descriptorNames, each))
    .find((fields) => isPrice(fields?.payloadType));
  return {
    ...outer,
    currency: displayText(descriptor?.currency) ?? outer.currency,
    perUnit: energyUnit(descriptor?.units) ?? outer.perUnit,
  };
}

/** EXPORT_PRICE and others are not the price of energy consumed. */
const isPrice = (type: unknown): boolean => typeof type === "string" && type.toUpperCase() === "PRICE";

const asList = (found: unknown): readonly unknown[] => (Array.isArray(found) ? found : []);

function readPeriod(found: unknown, now: Instant): Period {
  const fields = fieldsOf(periodNames, found);
  const start = fields?.start === undefined ? null : readTimestamp(fields.start);
  const duration = fields?.duration === undefined ? null : readTimespan(fields.duration);
  return {
    start: start === "now" ? now : isProblem(start) ? null : start,
    duration: isProblem(duration) ? null : duration,
  };
}
