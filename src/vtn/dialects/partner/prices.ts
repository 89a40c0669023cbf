import { inOrder } from "../../../domain/prices.ts";
import { minutes, type Instant } from "../../../domain/units.ts";
import { listed } from "../../../platform/text.ts";
import type { PricesRead } from "../dialect.ts";
import {
  fieldsOf,
  type Fields,
  spelling,
  isProblem,
  misfit,
  type Problem,
  shown,
  readMoment,
} from "./fields.ts";
import { decodeJson } from "./json.ts";
import {
  doubt,
  priceEntry,
  type PriceEntry,
  type PriceScope,
  priceIntervals,
  unitFields,
  unitsWithin,
  displayText,
  noUnits,
} from "./priceEntries.ts";

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
const shapeNames = spelling<Name>(ALL);

/** The `to` of a forecast segment is the start of its last hour. */
const LAST_HOUR = minutes(60);

/**
 * Reads all prices in any known shape: a map from time to price, a list of records, forecast segments,
 * OpenADR events, and any of these in a list or a wrapper. Anything else is a doubt.
 */
function* priceEntries(found: unknown, outer: PriceScope): Generator<PriceEntry> {
  if (Array.isArray(found)) {
    for (const each of found) yield* priceEntries(each, outer);
    return;
  }
  const fields = fieldsOf(shapeNames, found);
  if (fields === undefined) return yield doubt(misfit(found, "a price", "a JSON object").problem);
  const area = displayText(first(fields, AREAS)) ?? outer.area;
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
    // Only the member names are logged: the content is unknown.
    return yield doubt(`no known shape of prices: an object with ${shown(entries.map(([key]) => key))}`);
  }
  for (const [from, value] of entries) {
    const fields = fieldsOf(shapeNames, value);
    const amount = fields === undefined ? value : written(fields).amount;
    yield* priceEntry({ from, to: undefined, amount, inclusive: null }, scope);
  }
}

function* segments(found: unknown, scope: PriceScope): Generator<PriceEntry> {
  for (const segment of Array.isArray(found) ? found : [found]) {
    yield* priceEntry({ ...written(fieldsOf(shapeNames, segment) ?? {}), inclusive: LAST_HOUR }, scope);
  }
}

const written = (fields: Fields<Name>) => ({
  from: first(fields, STARTS),
  to: first(fields, ENDS),
  amount: first(fields, AMOUNTS),
});

const first = (fields: Fields<Name>, among: readonly Name[]): unknown =>
  among.map((name) => fields[name]).find((value) => value !== undefined);

/** A month in steps of 15 minutes. */
const MOST_PRICES = 3000;
const MOST_DOUBTS = 10;
const LONGEST_RAW = 4000;

/** Reads the body of a price answer for `region`, received at `at`. */
export function readPrices(body: Buffer, region: string, at: Instant): PricesRead {
  const raw = body.toString("utf8", 0, LONGEST_RAW);
  const unreadable = (reason: string): PricesRead => ({ kind: "unreadable", reason, raw });
  const decoded = decodeJson(body);
  if (decoded.kind !== "json") return unreadable(decoded.kind === "empty" ? "empty" : decoded.reason);
  const { found, doubts } = collected(priceEntries(decoded.value, { units: noUnits, area: null, at }));
  if (found.length > MOST_PRICES) return unreadable(`over ${MOST_PRICES} prices`);
  const selected = ofRegion(found, region);
  if (isProblem(selected)) return unreadable(selected.problem);
  const { ours, otherRegions } = selected;
  const ordered = inOrder(
    ours.map(({ price }) => price),
    region,
  );
  const all = [...otherRegions, ...doubts, ...ordered.doubts];
  if (ordered.prices.length === 0) return unreadable(all[0] ?? "no prices in it");
  return { kind: "read", prices: ordered.prices, doubts: all.slice(0, MOST_DOUBTS), raw };
}

type Found = Extract<PriceEntry, { readonly kind: "price" }>;

/** Stops soon after the limit of prices. */
function collected(entries: Iterable<PriceEntry>): {
  readonly found: readonly Found[];
  readonly doubts: readonly string[];
} {
  const found: Found[] = [];
  const doubts: string[] = [];
  for (const entry of entries) {
    if (entry.kind === "price") found.push(entry);
    else if (doubts.length < MOST_DOUBTS) doubts.push(entry.message);
    if (found.length > MOST_PRICES) break;
  }
  return { found, doubts };
}

/**
 * Leaves out prices of another region beside ours. If no price names our region, but all name one other, the partner's
 * names differ from our codes, and all are kept. Several others make a problem.
 */
function ofRegion(
  found: readonly Found[],
  region: string,
): { readonly ours: readonly Found[]; readonly otherRegions: readonly string[] } | Problem {
  const isOurs = ({ area }: Found): boolean => area === null || area.toLowerCase() === region.toLowerCase();
  const ours = found.filter(isOurs);
  const others = new Map<string, string>();
  for (const { area } of found.filter((entry) => !isOurs(entry)))
    if (area !== null && !others.has(area.toLowerCase())) others.set(area.toLowerCase(), area);
  const [first, ...more] = others.values();
  if (first === undefined) return { ours, otherRegions: [] };
  if (ours.length === 0 && more.length > 0)
    return {
      problem: `asked for ${region}, answered for several others: ${listed([first, ...more], MOST_NAMES)}`,
    };
  const message = `asked for ${region}, answered for ${first}`;
  return { ours: ours.length === 0 ? found : ours, otherRegions: [message] };
}

/** Regions named in a sentence. */
const MOST_NAMES = 3;
