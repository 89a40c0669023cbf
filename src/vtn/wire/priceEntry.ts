import type { PriceUnits, SentPrice } from "../../core/prices.ts";
import { after, type Instant, type Millis } from "../../core/units.ts";
import { isProblem, misfit, type Problem, shown } from "./problem.ts";
import { withoutNoise } from "./priceUnits.ts";
import { readMoment } from "./timestamp.ts";

/** One price of an answer, with the region that it names, or something in it that is no price. */
export type PriceEntry =
  | { readonly kind: "price"; readonly price: SentPrice; readonly area: string | null }
  | { readonly kind: "doubt"; readonly words: string };

/** What holds for all prices below an object. */
export interface PriceScope {
  readonly units: PriceUnits;
  /** The region that the prices say they are of. */
  readonly area: string | null;
  /** Of the answer: what OpenADR's "now" means. */
  readonly at: Instant;
}

/** A price as it is written. `inclusive`: how long the last step is, where `to` is its start; null: `to` is the end. */
export interface WrittenPrice {
  readonly from: unknown;
  readonly to: unknown;
  readonly amount: unknown;
  readonly inclusive: Millis | null;
}

/** One written price, read; where only its amount is unreadable its stretch of time still counts. */
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

/** Something in an answer that is no price, in words. */
export const doubt = (words: string): PriceEntry => ({ kind: "doubt", words });

const DECIMAL = /^-?\d{1,15}(?:\.\d{1,15})?$/;

/** A number, or its plain decimal text; a comma may divide thousands or decimals, so it is not guessed at. */
export function readAmount(found: unknown): number | Problem {
  const value = typeof found === "string" && DECIMAL.test(found) ? Number(found) : found;
  return typeof value === "number" && Number.isFinite(value)
    ? withoutNoise(value)
    : misfit(found, "a price", "a number such as 0.4512");
}
