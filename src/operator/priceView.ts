import type { Json } from "../core/audit.ts";
import type { PriceBoard, PriceStand } from "../core/priceBoard.ts";
import { type PriceQuery, spelled, type SpelledPrice } from "../core/prices.ts";
import { type Instant, iso } from "../core/units.ts";

/** One series as `/api/v1/prices`, the control socket and `setpointd prices --json` show it. */
export interface PriceSeriesView extends PriceQuery {
  /** ISO; null: never. */
  readonly fetchedAt: string | null;
  /** Of the last request since the start; null: none yet. */
  readonly outcome: string | null;
  readonly reason: string | null;
  /** What was odd in the answer that the prices are from. */
  readonly doubts: readonly string[];
  readonly prices: readonly SpelledPrice[];
  /** How that answer began. */
  readonly raw: string | null;
  readonly [member: string]: Json;
}

/** All series that are asked for, with how the last request went. */
export const pricesView = (board: PriceBoard): readonly PriceSeriesView[] =>
  [...board.stands.values()].map(({ region, kind, series, outcome, reason }: PriceStand) => ({
    region,
    kind,
    fetchedAt: series === null ? null : iso(series.fetchedAt),
    outcome,
    reason,
    doubts: series?.doubts ?? [],
    prices: series === null ? [] : spelled(series.prices),
    raw: series?.raw ?? null,
  }));

/** For each region, how many seconds ahead its spot prices are known. */
export const priceHorizons = (board: PriceBoard, now: Instant): Readonly<Record<string, number>> =>
  Object.fromEntries(
    [...board.stands.values()].flatMap(({ region, kind, series }) => {
      const last = kind === "actual" ? series?.prices.at(-1) : undefined;
      return last === undefined ? [] : [[region, (last.end - now) / 1000]];
    }),
  );
