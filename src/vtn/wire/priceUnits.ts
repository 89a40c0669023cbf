import type { PriceUnits, Vat } from "../../core/prices.ts";
import { fieldsOf, type Fields, spelling } from "./fields.ts";

const UNIT_FIELDS = ["currency", "energyUnit", "perUnit", "vat", "units", "unit", "priceUnits"] as const;
type UnitField = (typeof UNIT_FIELDS)[number];

/** Where a price record says in what its prices are. */
export const unitFields: readonly UnitField[] = UNIT_FIELDS;

const names = spelling(UNIT_FIELDS);
const vatNames = spelling(["rate", "hasVAT"]);

/** Nothing is said yet. */
export const noUnits: PriceUnits = { currency: null, perUnit: null, vat: null };

/** What an object says of its units, where it says nothing those of `outer`: beside the prices, in `priceUnits`, or as `NOK/kWh`. */
export function unitsWithin(outer: PriceUnits, fields: Fields<UnitField>): PriceUnits {
  const within = fieldsOf(names, fields.priceUnits) ?? {};
  const [currency, perUnit] = fraction(fields.priceUnits ?? fields.unit ?? fields.units);
  return {
    currency: word(fields.currency ?? within.currency) ?? currency ?? outer.currency,
    perUnit:
      energyUnit(fields.energyUnit ?? fields.perUnit ?? within.energyUnit ?? within.perUnit) ??
      perUnit ??
      outer.perUnit,
    vat: vatOf(fields.vat ?? within.vat) ?? outer.vat,
  };
}

/** OpenADR writes `KWH`. */
export function energyUnit(found: unknown): string | null {
  const unit = word(found);
  return unit === null
    ? null
    : unit.replace(/^([kmg]?)wh$/i, (_, prefix: string) => `${PREFIXES.get(prefix.toLowerCase()) ?? ""}Wh`);
}

const PREFIXES = new Map([
  ["k", "k"],
  ["m", "M"],
  ["g", "G"],
]);

/** Text that may be shown to people: short, on one line. */
export const word = (found: unknown): string | null =>
  typeof found === "string" && /^[\p{L}\p{N} /%._-]{1,32}$/u.test(found) ? found : null;

function fraction(found: unknown): readonly [string | null, string | null] {
  const [currency, perUnit, ...more] = typeof found === "string" ? found.split("/") : [];
  return perUnit === undefined || more.length > 0
    ? [null, null]
    : [word(currency?.trim()), energyUnit(perUnit.trim())];
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

/** A number as it was meant: 0.30000000000000004 is 0.3, and -0, which some stores tell apart from 0, is 0. */
export const withoutNoise = (value: number): number => Number(value.toPrecision(SIGNIFICANT_DIGITS)) + 0;
