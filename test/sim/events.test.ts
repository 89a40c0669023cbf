import { expect, test } from "vitest";
import type { Price } from "../../src/domain/prices.ts";
import { instant, iso, minutes } from "../../src/domain/units.ts";
import { priceForecast, spotPrices } from "../../src/sim/events.ts";
import { readPrices } from "../../src/vtn/dialects/partner/prices.ts";

const at = (text: string) => instant(Date.parse(text));

/** Prices as the daemon reads them from an answer. */
function pricesIn(answer: object | null): readonly Price[] {
  const read = readPrices(Buffer.from(JSON.stringify(answer)), "NO1", instant(0));
  if (read.kind !== "read") throw new Error(read.reason);
  expect(read.doubts).toEqual([]);
  return read.prices;
}

test.each([
  ["2026-11-21", 24],
  ["2026-03-29", 23],
  ["2026-10-25", 25],
])("the local day %s has %i hourly prices", (day, hours) => {
  const prices = pricesIn(spotPrices("NO1", at(`${day}T08:00:00Z`)));
  expect(prices).toHaveLength(hours);
  expect(prices.every(({ start, end }) => end - start === minutes(60))).toBe(true);
});

test("tomorrow's prices are published from 13:00 on, in quarter hours on request", () => {
  expect(pricesIn(spotPrices("NO1", at("2026-11-21T11:59:00Z")))).toHaveLength(24);
  const two = pricesIn(spotPrices("NO1", at("2026-11-21T12:00:00Z"), minutes(15)));
  expect(two).toHaveLength(192);
  expect(iso(two.at(-1)?.end ?? instant(0))).toBe("2026-11-22T23:00:00.000Z");
});

test("evening prices are higher than night prices", () => {
  const prices = pricesIn(spotPrices("NO1", at("2026-11-21T08:00:00Z")));
  expect(prices[18]?.value).toBeGreaterThan((prices[3]?.value ?? 0) * 1.5);
});

test("the forecast starts where the prices end, in segments without gaps", () => {
  const now = at("2026-11-21T13:00:00Z");
  const segments = pricesIn(priceForecast("NO1", now, 6));
  expect(segments).toHaveLength(28);
  expect(segments[0]?.start).toBe(pricesIn(spotPrices("NO1", now)).at(-1)?.end);
  for (const [index, { end }] of segments.entries()) expect(segments[index + 1]?.start ?? end).toBe(end);
});

test("an unknown region has neither prices nor a forecast", () => {
  expect(spotPrices("XX9", at("2026-11-21T12:00:00Z"))).toBeNull();
  expect(priceForecast("XX9", at("2026-11-21T12:00:00Z"), 6)).toBeNull();
});
