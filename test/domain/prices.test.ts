import * as fc from "fast-check";
import { expect, test } from "vitest";
import { inOrder, type SentPrice, seriesName, serializePrices } from "../../src/domain/prices.ts";
import { instant, minutes } from "../../src/domain/units.ts";

const at = (text: string) => instant(Date.parse(text));

const sent = (start: string, value: number | null, end: string | null = null): SentPrice => ({
  start: at(start),
  end: end === null ? null : at(end),
  value,
  currency: "NOK",
  perUnit: "kWh",
  vat: null,
});

/** `12:00-13:00 0.4` of each price. */
const told = (prices: readonly SentPrice[]): readonly string[] =>
  serializePrices(inOrder(prices, "NO1").prices).map(
    ({ start, end, value }) => `${start.slice(11, 16)}-${end.slice(11, 16)} ${value}`,
  );

test("a price lasts to the next one, the last one as long as the one before it", () => {
  const quarters = ["12:30", "12:00", "12:15"].map((time, index) => sent(`2026-11-21T${time}:00Z`, index));
  expect(told(quarters)).toEqual(["12:00-12:15 1", "12:15-12:30 2", "12:30-12:45 0"]);
});

test("a single price is an hour's", () => {
  expect(told([sent("2026-11-21T12:00:00Z", 0.4)])).toEqual(["12:00-13:00 0.4"]);
});

test("an end that was sent is kept, also where that leaves a gap", () => {
  expect(
    told([sent("2026-11-21T12:00:00Z", 1, "2026-11-21T12:30:00Z"), sent("2026-11-21T13:00:00Z", 2)]),
  ).toEqual(["12:00-12:30 1", "13:00-14:00 2"]);
});

test("a price that reaches into the next one ends there, and that is odd", () => {
  const reaching = [sent("2026-11-21T12:00:00Z", 1, "2026-11-21T15:00:00Z"), sent("2026-11-21T13:00:00Z", 2)];
  expect(told(reaching)).toEqual(["12:00-13:00 1", "13:00-14:00 2"]);
  expect(inOrder(reaching, "NO1").doubts).toEqual([
    "the price at 2026-11-21T12:00:00.000Z reaches into the next one: it ends there",
  ]);
});

test("the same price twice is one; of two for one moment the later counts, and that is odd", () => {
  const hour = "2026-11-21T12:00:00Z";
  expect(inOrder([sent(hour, 1), sent(hour, 1)], "NO1")).toMatchObject({
    prices: [{ value: 1 }],
    doubts: [],
  });
  expect(inOrder([sent(hour, 1), sent(hour, 2)], "NO1")).toMatchObject({
    prices: [{ value: 2 }],
    doubts: ["two prices at 2026-11-21T12:00:00.000Z: the later one counts"],
  });
  expect(inOrder([sent(hour, 1), sent(hour, null)], "NO1").prices).toMatchObject([{ value: 1 }]);
  expect(inOrder([sent(hour, null), sent(hour, 1)], "NO1").prices).toMatchObject([{ value: 1 }]);
});

test("an unreadable price leaves a gap: its neighbour does not stand in for it", () => {
  const hours = [1, null, 3].map((value, hour) => sent(`2026-11-21T1${hour}:00:00Z`, value));
  expect(told(hours)).toEqual(["10:00-11:00 1", "12:00-13:00 3"]);
});

test.each([
  ["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", 23],
  ["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", 25],
])("the day in Oslo that begins at %s has %3$i hours, each of 60 minutes", (midnight, next, hours) => {
  const day = Array.from({ length: hours }, (_, hour) => ({
    ...sent(midnight, hour),
    start: instant(at(midnight) + hour * minutes(60)),
  }));
  const { prices } = inOrder(day, "NO1");
  expect(prices).toHaveLength(hours);
  expect(prices.every(({ start, end }) => end - start === minutes(60))).toBe(true);
  expect(prices.at(-1)?.end).toBe(at(next));
});

test("prices never overlap, never run backwards, and are never invented, whatever was sent in whatever order", () => {
  const anySent = fc.record({
    start: fc.integer({ min: 0, max: 50 }).map(instant),
    length: fc.option(fc.integer({ min: 1, max: 20 })),
    value: fc.option(fc.integer()),
  });
  fc.assert(
    fc.property(fc.array(anySent), (all) => {
      const prices = all.map(({ start, length, value }) => ({
        ...sent("2026-11-21T12:00:00Z", value),
        start,
        end: length === null ? null : instant(start + length),
      }));
      const ordered = inOrder(prices, "NO1").prices;
      for (const [index, price] of ordered.entries()) {
        expect(price.end).toBeGreaterThan(price.start);
        expect(ordered[index + 1]?.start ?? Infinity).toBeGreaterThanOrEqual(price.end);
        expect(all.some(({ start, value }) => start === price.start && value === price.value)).toBe(true);
      }
    }),
  );
});

test("VAT is kept as it was sent, and a series by its name", () => {
  const vat = { rate: 0.25, hasVAT: false };
  const { prices } = inOrder([{ ...sent("2026-11-21T12:00:00Z", 0.4), vat }], "NO1");
  expect(serializePrices(prices)).toEqual([
    {
      start: "2026-11-21T12:00:00.000Z",
      end: "2026-11-21T13:00:00.000Z",
      value: 0.4,
      currency: "NOK",
      perUnit: "kWh",
      region: "NO1",
      vat,
    },
  ]);
  expect(seriesName({ region: "NO1", kind: "actual" })).toBe("spot prices of NO1");
  expect(seriesName({ region: "NO1", kind: "forecast" })).toBe("price forecast of NO1");
});
