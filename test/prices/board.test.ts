import { expect, test } from "vitest";

import type { Change } from "../../src/domain/changes.ts";
import type { PricesAsked, PriceSeries } from "../../src/domain/prices.ts";
import { instant, iso, minutes } from "../../src/domain/units.ts";
import { priceBoard, applyPriceAnswer } from "../../src/prices/board.ts";

const NOON = instant(Date.parse("2026-11-21T12:00:00Z"));
const NO1 = { region: "NO1", kind: "actual" } as const;

const series = (value: number, over: Partial<PriceSeries> = {}): PriceSeries => ({
  ...NO1,
  fetchedAt: NOON,
  prices: [
    {
      start: NOON,
      end: instant(NOON + minutes(60)),
      value,
      currency: "NOK",
      perUnit: "kWh",
      region: "NO1",
      vat: null,
    },
  ],
  doubts: [],
  raw: "{}",
  ...over,
});
const good = (value = 0.5): PricesAsked => ({ kind: "read", series: series(value) });
const failed: PricesAsked = {
  kind: "failed",
  reason: "the partner answered 500",
  retry: true,
  retryAfter: null,
};
const unreadable: PricesAsked = { kind: "unreadable", reason: "not JSON", raw: "<html>" };

const around = { now: () => NOON, wallClock: iso };

/** A board that took these answers, each the last of its attempt, and what came of them. */
function after(stored: readonly PriceSeries[], ...answers: readonly PricesAsked[]) {
  const board = priceBoard([NO1], stored);
  const taken = answers.map((asked) => applyPriceAnswer(board, NO1, asked, true, around));
  const rows = taken.flatMap(({ changes }) => changes).flatMap(wordsOf);
  return {
    board,
    stand: board.stands.get("actual/NO1"),
    rows,
    alarms: taken.map(({ alarm }) => alarm !== null),
  };
}

const wordsOf = (change: Change): readonly string[] => (change.kind === "audit" ? [change.entry.words] : []);

test("stored prices are available before the first request, but only of configured series", () => {
  const stored = [series(0.4), series(0.6, { region: "NO2" })];
  const { stand, board } = after(stored);
  expect(stand).toMatchObject({ series: { prices: [{ value: 0.4 }] }, outcome: null });
  expect(board.stands.size).toBe(1);
});

test("prices are recorded at their first arrival, not every hour", () => {
  const { rows, stand } = after([], good(), good(0.7), good(0.8));
  expect(rows).toEqual(["spot prices of NO1: 1 prices, 0.5 to 0.5 NOK/kWh, until 2026-11-21T13:00:00.000Z"]);
  expect(stand).toMatchObject({ outcome: "good", reason: null, series: { prices: [{ value: 0.8 }] } });
});

test("only changed prices are published", () => {
  const { board } = after([series(0.5)], good(0.5));
  expect([...board.unpublished]).toEqual([]);
  applyPriceAnswer(board, NO1, good(0.6), true, around);
  expect([...board.unpublished]).toEqual(["actual/NO1"]);
});

test("a failure keeps the last prices, is recorded once, and raises one alarm until the next success", () => {
  const { rows, alarms, stand } = after([series(0.4)], failed, failed, good(), failed);
  expect(rows).toEqual([
    "spot prices of NO1 cannot be fetched: the partner answered 500; the last ones are kept",
    expect.stringMatching(/^spot prices of NO1: 1 prices/),
    "spot prices of NO1 cannot be fetched: the partner answered 500; the last ones are kept",
  ]);
  expect(alarms).toEqual([true, false, false, true]);
  expect(stand).toMatchObject({ outcome: "failed", series: { prices: [{ value: 0.5 }] } });
});

test("retries raise no alarm", () => {
  const board = priceBoard([NO1], []);
  expect(applyPriceAnswer(board, NO1, failed, false, around)).toMatchObject({
    outcome: "failed",
    alarm: null,
  });
  expect(applyPriceAnswer(board, NO1, failed, true, around).alarm).toBe(
    "spot prices of NO1 cannot be fetched: the partner answered 500; there are none yet; fetched again when they are due",
  );
});

test("an unreadable answer is quarantined once and keeps the last prices (F37)", () => {
  const board = priceBoard([NO1], [series(0.4)]);
  const { changes } = applyPriceAnswer(board, NO1, unreadable, true, around);
  expect(changes).toMatchObject([
    { kind: "quarantine", source: "prices", rejected: { reason: "not JSON", raw: "<html>" } },
    { kind: "audit", entry: { kind: "rejected", facts: { outcome: "unreadable", warning: "not JSON" } } },
  ]);
  expect(applyPriceAnswer(board, NO1, unreadable, true, around).changes).toEqual([]);
  expect(board.stands.get("actual/NO1")?.series?.prices).toMatchObject([{ value: 0.4 }]);
});

test("odd prices are accepted with a warning", () => {
  const odd: PricesAsked = {
    kind: "read",
    series: series(0.5, { doubts: ["asked for NO1, answered for NO2"] }),
  };
  const { rows, stand } = after([], odd);
  expect(rows[0]).toMatch(/; odd: asked for NO1, answered for NO2$/);
  expect(stand).toMatchObject({ outcome: "doubtful", reason: "asked for NO1, answered for NO2" });
});

test("a missing unit is shown as a question mark", () => {
  const [price] = series(0.5).prices;
  if (price === undefined) throw new Error("no price");
  const nameless = { ...series(0.5), prices: [{ ...price, currency: null, perUnit: null }] };
  expect(after([], { kind: "read", series: nameless }).rows[0]).toContain("0.5 to 0.5 ?/?, until");
});

test("a new series is on the board after its first request", () => {
  const board = priceBoard([], []);
  applyPriceAnswer(board, NO1, failed, true, around);
  applyPriceAnswer(board, NO1, good(), true, around);
  expect(board.stands.get("actual/NO1")).toMatchObject({ outcome: "good", alarmed: false });
  const other = priceBoard([], []);
  expect(applyPriceAnswer(other, NO1, good(), true, around).outcome).toBe("good");
});
