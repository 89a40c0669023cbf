import type { PriceUnits } from "../../core/prices.ts";
import { after, type Instant, type Millis, millis } from "../../core/units.ts";
import { fieldsOf, spelling } from "./fields.ts";
import { doubt, type PriceEntry, type PriceScope, readAmount } from "./priceEntry.ts";
import { energyUnit, word } from "./priceUnits.ts";
import { isProblem } from "./problem.ts";
import { readTimespan } from "./timespan.ts";
import { readTimestamp } from "./timestamp.ts";

/** The members of an OpenADR event that its prices are read from, unread. */
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
 * The PRICE payloads of an OpenADR event. Intervals follow one another, each as long as the event's intervalPeriod
 * says, unless one has a period of its own; several values divide their interval evenly (openadr3 9).
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
    currency: word(descriptor?.currency) ?? outer.currency,
    perUnit: energyUnit(descriptor?.units) ?? outer.perUnit,
  };
}

/** EXPORT_PRICE and others are not what energy costs. */
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
