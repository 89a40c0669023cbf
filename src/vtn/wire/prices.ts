import { inOrder, type Price } from "../../core/prices.ts";
import type { Instant } from "../../core/units.ts";
import { decodeJson } from "./json.ts";
import type { PriceEntry } from "./priceEntry.ts";
import { priceEntries } from "./priceShapes.ts";
import { noUnits } from "./priceUnits.ts";

/** What a body says about prices. `raw`: how it began, as text. */
export type PricesRead =
  | {
      readonly kind: "read";
      readonly prices: readonly Price[];
      readonly doubts: readonly string[];
      readonly raw: string;
    }
  | { readonly kind: "unreadable"; readonly reason: string; readonly raw: string };

/** A month in steps of 15 minutes. */
const MOST_PRICES = 3000;
const MOST_DOUBTS = 10;
const LONGEST_RAW = 4000;

/** The body of a price answer for `region`, received at `at` (partner-interface 4.2: the record is not shown). */
export function readPrices(body: Buffer, region: string, at: Instant): PricesRead {
  const raw = body.toString("utf8", 0, LONGEST_RAW);
  const unreadable = (reason: string): PricesRead => ({ kind: "unreadable", reason, raw });
  const decoded = decodeJson(body);
  if (decoded.kind !== "json") return unreadable(decoded.kind === "empty" ? "empty" : decoded.reason);
  const { found, doubts } = collected(priceEntries(decoded.value, { units: noUnits, area: null, at }));
  if (found.length > MOST_PRICES) return unreadable(`over ${MOST_PRICES} prices`);
  const { ours, strangers } = ofRegion(found, region);
  const ordered = inOrder(
    ours.map(({ price }) => price),
    region,
  );
  const all = [...strangers, ...doubts, ...ordered.doubts];
  if (ordered.prices.length === 0) return unreadable(all[0] ?? "no prices in it");
  return { kind: "read", prices: ordered.prices, doubts: all.slice(0, MOST_DOUBTS), raw };
}

type Found = Extract<PriceEntry, { readonly kind: "price" }>;

/** Stops soon after there are more than any answer has. */
function collected(entries: Iterable<PriceEntry>): {
  readonly found: readonly Found[];
  readonly doubts: readonly string[];
} {
  const found: Found[] = [];
  const doubts: string[] = [];
  for (const entry of entries) {
    if (entry.kind === "price") found.push(entry);
    else if (doubts.length < MOST_DOUBTS) doubts.push(entry.words);
    if (found.length > MOST_PRICES) break;
  }
  return { found, doubts };
}

/** Prices of another region beside ours are left out. Where none is ours by name, the names differ from our codes. */
function ofRegion(
  found: readonly Found[],
  region: string,
): { readonly ours: readonly Found[]; readonly strangers: readonly string[] } {
  const isOurs = ({ area }: Found): boolean => area === null || area.toLowerCase() === region.toLowerCase();
  const ours = found.filter(isOurs);
  const other = found.find((entry) => !isOurs(entry))?.area ?? null;
  if (other === null) return { ours, strangers: [] };
  const words = `asked for ${region}, answered for ${other}`;
  return { ours: ours.length === 0 ? found : ours, strangers: [words] };
}
