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
import type { WallClock } from "../platform/localTime.ts";

/** All series that are asked for, by `priceKey`. */
export interface PriceBoard {
  readonly stands: Map<string, PriceStand>;
  /** Those whose retained message is not what it should be. */
  readonly unpublished: Set<string>;
}

/** The series that are asked for, with what is stored of them. */
export function priceBoard(queries: readonly PriceQuery[], stored: readonly PriceSeries[]): PriceBoard {
  const known = new Map(stored.map((series) => [priceKey(series), series]));
  const fresh = { outcome: null, reason: null, alarmed: false };
  const stands = queries.map(({ region, kind }): [string, PriceStand] => {
    const key = priceKey({ region, kind });
    return [key, { region, kind, series: known.get(key) ?? null, ...fresh }];
  });
  return { stands: new Map(stands), unpublished: new Set() };
}

export interface PriceUpdate {
  readonly outcome: PriceOutcome;
  readonly changes: readonly Change[];
  /** To be said aloud; null: nothing, or it was said before. */
  readonly alarm: string | null;
}

/**
 * Takes an answer in. A bad one changes no price; a change of outcome is on record once; one alarm is raised when
 * nothing more is tried (`isLast`), until it is good again.
 */
export function applyPriceAnswer(
  board: PriceBoard,
  query: PriceQuery,
  asked: PricesAsked,
  isLast: boolean,
  { now, wallClock }: { readonly now: () => Instant; readonly wallClock: WallClock },
): PriceUpdate {
  const key = priceKey(query);
  const before = board.stands.get(key);
  const kept = before?.series ?? null;
  const wasAlarmed = before?.alarmed === true;
  const { region, kind } = query;
  if (asked.kind === "read") {
    const { series } = asked;
    const reason = series.doubts[0] ?? null;
    const outcome = reason === null ? "good" : "doubtful";
    board.stands.set(key, { region, kind, series, outcome, reason, alarmed: false });
    if (!isSame(kept, series)) board.unpublished.add(key);
    const odd = reason === null ? "" : `; odd: ${reason}`;
    const words = `${seriesName(query)}: ${inShort(series, wallClock)}${odd}`;
    const told = before?.outcome === outcome ? [] : [row(query, outcome, reason, words, now())];
    return { outcome, changes: [{ kind: "prices", series }, ...told], alarm: null };
  }
  const { kind: outcome, reason } = asked;
  const rest = kept === null ? "there are none yet" : "the last ones stay";
  board.stands.set(key, { region, kind, series: kept, outcome, reason, alarmed: wasAlarmed || isLast });
  const words = `${seriesName(query)} cannot be ${outcome === "failed" ? "had" : "read"}: ${reason}; ${rest}`;
  const changes =
    before?.outcome === outcome
      ? []
      : [...quarantined(asked, now()), row(query, outcome, reason, words, now())];
  return {
    outcome,
    changes,
    alarm: isLast && !wasAlarmed ? `${words}; asked again when they are due` : null,
  };
}

const isSame = (before: PriceSeries | null, series: PriceSeries): boolean =>
  before !== null &&
  JSON.stringify(serializePrices(before.prices)) === JSON.stringify(serializePrices(series.prices));

function quarantined(asked: PricesAsked, at: Instant): readonly Change[] {
  if (asked.kind !== "unreadable") return [];
  const { reason, raw } = asked;
  const rejected = { kind: "rejected", id: null, path: "", reason, raw } as const;
  return [{ kind: "quarantine", rejected, at, source: "prices" }];
}

/** `warning` is what makes a line of the log a warning. */
const row = (
  { region, kind }: PriceQuery,
  outcome: PriceOutcome,
  warning: string | null,
  words: string,
  at: Instant,
): Change =>
  auditRow(outcome === "unreadable" ? "rejected" : "prices", at, words, {
    facts: { region, series: kind, outcome, warning },
  });

/** `24 prices, 0.62 to 1.13 NOK/kWh, until 2026-11-22 00:00:00`. */
function inShort({ prices }: PriceSeries, wallClock: WallClock): string {
  const values = prices.map(({ value }) => value);
  const units = new Set(prices.map(({ currency, perUnit }) => `${currency ?? "?"}/${perUnit ?? "?"}`));
  const until = instant(Math.max(...prices.map(({ end }) => end)));
  return `${prices.length} prices, ${Math.min(...values)} to ${Math.max(...values)} ${[...units].join(" or ")}, until ${wallClock(until)}`;
}
