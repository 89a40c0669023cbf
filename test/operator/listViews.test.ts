import { expect, test } from "vitest";

import { priceBoard } from "../../src/prices/board.ts";
import { instant } from "../../src/domain/units.ts";
import { priceHorizons, pricesView } from "../../src/operator/listViews.ts";

const NOON = instant(Date.parse("2026-11-21T12:00:00Z"));
const price = { currency: "NOK", perUnit: "kWh", region: "NO1", vat: null };
const stored = {
  region: "NO1",
  kind: "actual",
  fetchedAt: NOON,
  prices: [{ start: NOON, end: instant(NOON + 3_600_000), value: 0.4, ...price }],
  doubts: ["odd"],
  raw: "{}",
} as const;

const board = priceBoard(
  [
    { region: "NO1", kind: "actual" },
    { region: "NO1", kind: "forecast" },
  ],
  [stored],
);

test("every configured series is shown, with or without prices", () => {
  const state = { outcome: null, reason: null };
  expect(pricesView(board)).toEqual([
    {
      id: "NO1",
      region: "NO1",
      kind: "actual",
      fetchedAt: "2026-11-21T12:00:00.000Z",
      ...state,
      doubts: ["odd"],
      prices: [{ start: "2026-11-21T12:00:00.000Z", end: "2026-11-21T13:00:00.000Z", value: 0.4, ...price }],
      raw: "{}",
    },
    {
      id: "NO1/forecast",
      region: "NO1",
      kind: "forecast",
      fetchedAt: null,
      ...state,
      doubts: [],
      prices: [],
      raw: null,
    },
  ]);
});

test("the price horizon counts from now, and is negative once the last price has passed", () => {
  expect(priceHorizons(board, NOON)).toEqual({ NO1: 3600 });
  expect(priceHorizons(board, instant(NOON + 7_200_000))).toEqual({ NO1: -3600 });
});
