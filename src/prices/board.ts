import { auditRow } from "../domain/audit.ts";
import type { Change } from "../domain/changes.ts";
import {
  type PricesAsked,
  type PriceOutcome,
  type PriceStand,
  priceKey,
  type PriceQuery,
  type PriceSeries,
  seriesName,
  serializePrices,
} from "../domain/prices.ts";
import { type Instant, instant } from "../domain/units.ts";
import type { WallClock } from "../platform/clock.ts";

/** Configured price series, by `priceKey`. */
export interface PriceBoard {
  readonly stands: Map<string, PriceStand>;
  /** Series whose retained message is missing or out of date. */
  readonly unpublished: Set<string>;
}

/** Board of the configured series, with the stored prices. */
export function priceBoard(queries: readonly PriceQuery[], stored: readonly PriceSeries[]): PriceBoard {
  const known = new Map(stored.map((series) => [priceKey(series), series]));
  const fresh = { outcome: null, reason: null, alarmed: false };
  const stands = queries.map(({ region, kind }): [string, PriceStand] => {
    const key = priceKey({ region, kind });
    return [key, { region, kind, series: known.get(key) ?? null, ...fresh }];
  });
  return { stands: new Map(stands), unpublished: new Set() };
}

/** Result of one request for prices. */
export interface PriceUpdate {
  readonly outcome: PriceOutcome;
  readonly changes: readonly Change[];
  /** Text of an alarm to raise. Null: none, or raised before. */
  readonly alarm: string | null;
}

/**
 * Applies an answer. A bad one changes no price. A change of outcome is recorded once. One alarm is raised after the
 * last attempt (`isLast`), until an answer is good again.
 */
export function applyPriceAnswer(
  board: PriceBoard,
  query: PriceQuery,
  answer: PricesAsked,
  isLast: boolean,
  { now, wallClock }: { readonly now: () => Instant; readonly wallClock: WallClock },
): PriceUpdate {
  const key = priceKey(query);
  const before = board.stands.get(key);
  const kept = before?.series ?? null;
  const wasAlarmed = before?.alarmed === true;
  const { region, kind } = query;
  if (answer.kind === "read") {
    const { series } = answer;
    const reason = series.doubts[0] ?? null;
    const outcome = reason === null ? "good" : "doubtful";
    board.stands.set(key, { region, kind, series, outcome, reason, alarmed: false });
    if (!isSame(kept, series)) board.unpublished.add(key);
    const odd = reason === null ? "" : `; odd: ${reason}`;
    const message = `${seriesName(query)}: ${summarize(series, wallClock)}${odd}`;
    const rows = before?.outcome === outcome ? [] : [row(query, outcome, reason, message, now())];
    return { outcome, changes: [{ kind: "prices", series }, ...rows], alarm: null };
  }
  const { kind: outcome, reason } = answer;
  const rest = kept === null ? "there are none yet" : "the last ones are kept";
  board.stands.set(key, { region, kind, series: kept, outcome, reason, alarmed: wasAlarmed || isLast });
  const message = `${seriesName(query)} cannot be ${outcome === "failed" ? "fetched" : "read"}: ${reason}; ${rest}`;
  const changes =
    before?.outcome === outcome
      ? []
      : [...quarantined(answer, now()), row(query, outcome, reason, message, now())];
  return {
    outcome,
    changes,
    alarm: isLast && !wasAlarmed ? `${message}; fetched again when they are due` : null,
  };
}

const isSame = (before: PriceSeries | null, series: PriceSeries): boolean =>
  before !== null &&
  JSON.stringify(serializePrices(before.prices)) === JSON.stringify(serializePrices(series.prices));

function quarantined(answer: PricesAsked, at: Instant): readonly Change[] {
  if (answer.kind !== "unreadable") return [];
  const { reason, raw } = answer;
  const rejected = { kind: "rejected", id: null, path: "", reason, raw } as const;
  return [{ kind: "quarantine", rejected, at, source: "prices" }];
}

/** Audit row about prices. A `warning` raises its log line to a warning. */
const row = (
  { region, kind }: PriceQuery,
  outcome: PriceOutcome,
  warning: string | null,
  message: string,
  at: Instant,
): Change =>
  auditRow(outcome === "unreadable" ? "rejected" : "prices", at, message, {
    facts: { region, series: kind, outcome, warning },
  });

/** Summary, for example `24 prices, 0.62 to 1.13 NOK/kWh, until 2026-11-22 00:00:00`. */
function summarize({ prices }: PriceSeries, wallClock: WallClock): string {
  const values = prices.map(({ value }) => value);
  const units = new Set(prices.map(({ currency, perUnit }) => `${currency ?? "?"}/${perUnit ?? "?"}`));
  const until = instant(Math.max(...prices.map(({ end }) => end)));
  return `${prices.length} prices, ${Math.min(...values)} to ${Math.max(...values)} ${[...units].join(" or ")}, until ${wallClock(until)}`;
}
