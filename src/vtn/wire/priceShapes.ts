import { minutes } from "../../core/units.ts";
import { fieldsOf, type Fields, spelling } from "./fields.ts";
import { doubt, priceEntry, type PriceEntry, type PriceScope } from "./priceEntry.ts";
import { priceIntervals } from "./priceIntervals.ts";
import { unitFields, unitsWithin, word } from "./priceUnits.ts";
import { isProblem, misfit, shown } from "./problem.ts";
import { readMoment } from "./timestamp.ts";

const AREAS = ["priceArea", "priceRegion", "region", "area"] as const;
const WRAPPERS = ["events", "event", "data", "object", "items", "results"] as const;
const STARTS = [
  "start",
  "from",
  "time",
  "timestamp",
  "startTime",
  "startsAt",
  "validFrom",
  "dateTime",
] as const;
const ENDS = ["end", "to", "endTime", "endsAt", "validTo"] as const;
const AMOUNTS = ["price", "value", "averagePrice", "spotPrice", "amount"] as const;
const SERIES = ["prices", "forecastSegments", "intervals", "intervalPeriod", "payloadDescriptors"] as const;

const ALL = [...unitFields, ...AREAS, ...WRAPPERS, ...STARTS, ...ENDS, ...AMOUNTS, ...SERIES] as const;
type Name = (typeof ALL)[number];
const names = spelling<Name>(ALL);

/** The `to` of a forecast segment is the start of its last hour (openadr3 0). */
const LAST_HOUR = minutes(60);

/**
 * All prices in whichever of the known shapes they came (openadr3 9): a map from moment to price, a list of records,
 * forecast segments, OpenADR events, and any of these in a list or a wrapper. What is none of them is a doubt.
 */
export function* priceEntries(found: unknown, outer: PriceScope): Generator<PriceEntry> {
  if (Array.isArray(found)) {
    for (const each of found) yield* priceEntries(each, outer);
    return;
  }
  const fields = fieldsOf(names, found);
  if (fields === undefined) return yield doubt(misfit(found, "a price", "a JSON object").problem);
  const area = word(first(fields, AREAS)) ?? outer.area;
  const scope = { ...outer, area, units: unitsWithin(outer.units, fields) };
  const { prices, forecastSegments } = fields;
  const wrapped = first(fields, WRAPPERS);
  if (fields.intervals !== undefined) yield* priceIntervals(fields, scope);
  else if (forecastSegments !== undefined) yield* segments(forecastSegments, scope);
  else if (Array.isArray(prices)) yield* priceEntries(prices, scope);
  else if (prices !== undefined) yield* hours(prices, scope);
  else if (wrapped !== undefined) yield* priceEntries(wrapped, scope);
  else if (first(fields, STARTS) !== undefined)
    yield* priceEntry({ ...written(fields), inclusive: null }, scope);
  else yield* hours(found, scope);
}

/** `{"<ISO moment>": price, ...}`; a price may also stand in an object. */
function* hours(found: unknown, scope: PriceScope): Generator<PriceEntry> {
  const entries = typeof found === "object" && found !== null ? Object.entries(found) : [];
  if (entries.length > 0 && entries.every(([key]) => isProblem(readMoment(key)))) {
    // Their names only: nobody knows what is in them.
    return yield doubt(`no known shape of prices: an object with ${shown(entries.map(([key]) => key))}`);
  }
  for (const [from, value] of entries) {
    const fields = fieldsOf(names, value);
    const amount = fields === undefined ? value : written(fields).amount;
    yield* priceEntry({ from, to: undefined, amount, inclusive: null }, scope);
  }
}

function* segments(found: unknown, scope: PriceScope): Generator<PriceEntry> {
  for (const segment of Array.isArray(found) ? found : [found]) {
    yield* priceEntry({ ...written(fieldsOf(names, segment) ?? {}), inclusive: LAST_HOUR }, scope);
  }
}

const written = (fields: Fields<Name>) => ({
  from: first(fields, STARTS),
  to: first(fields, ENDS),
  amount: first(fields, AMOUNTS),
});

const first = (fields: Fields<Name>, among: readonly Name[]): unknown =>
  among.map((name) => fields[name]).find((value) => value !== undefined);
