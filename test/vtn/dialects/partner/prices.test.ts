import * as fc from "fast-check";
import { DateTime } from "luxon";
import { describe, expect, test } from "vitest";
import { serializePrices } from "../../../../src/domain/prices.ts";
import { instant } from "../../../../src/domain/units.ts";
import { readPrices } from "../../../../src/vtn/dialects/partner/prices.ts";

const NOON = instant(Date.parse("2026-11-21T12:00:00Z"));
const read = (body: unknown) =>
  readPrices(Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), "NO1", NOON);

/** The prices and doubts of a body that must be readable. */
function good(body: unknown) {
  const found = read(body);
  if (found.kind !== "read") throw new Error(found.reason);
  return { prices: serializePrices(found.prices), doubts: found.doubts };
}

/** `12:00-13:00 0.4`, in UTC. */
const told = (body: unknown): readonly string[] =>
  good(body).prices.map(({ start, end, value }) => `${start.slice(11, 16)}-${end.slice(11, 16)} ${value}`);

const units = { priceUnits: { currency: "NOK", vat: { rate: 0.25, hasVAT: false }, energyUnit: "kWh" } };
const map = {
  priceArea: "NO1",
  ...units,
  prices: { "2026-11-21T12:00:00Z": 0.4512, "2026-11-21T13:00:00Z": -0.01 },
};

describe("a map from moment to price", () => {
  test("becomes prices with their currency, unit and VAT", () => {
    expect(good(map)).toEqual({
      doubts: [],
      prices: [
        {
          start: "2026-11-21T12:00:00.000Z",
          end: "2026-11-21T13:00:00.000Z",
          value: 0.4512,
          currency: "NOK",
          perUnit: "kWh",
          region: "NO1",
          vat: { rate: 0.25, hasVAT: false },
        },
        {
          start: "2026-11-21T13:00:00.000Z",
          end: "2026-11-21T14:00:00.000Z",
          value: -0.01,
          currency: "NOK",
          perUnit: "kWh",
          region: "NO1",
          vat: { rate: 0.25, hasVAT: false },
        },
      ],
    });
  });

  test("may be bare, in a list, in a wrapper, in any order, or with objects for numbers", () => {
    const expected = ["12:00-12:15 1", "12:15-12:30 2"];
    const bare = { "2026-11-21T12:15:00Z": 2, "2026-11-21T12:00:00Z": 1 };
    for (const body of [bare, [{ prices: bare }], { data: { prices: bare } }, { PRICES: bare }])
      expect(told(body)).toEqual(expected);
    expect(
      told({ prices: { "2026-11-21T12:00Z": { price: 1 }, "2026-11-21T12:15Z": { value: 2 } } }),
    ).toEqual(expected);
  });

  test.each([
    ["2026-03-29", 23],
    ["2026-10-25", 25],
  ])("of local hours with their offset has all hours of %s in Oslo: %i", (day, hours) => {
    const midnight = DateTime.fromISO(day, { zone: "Europe/Oslo" });
    const starts = Array.from({ length: hours }, (_, hour) => midnight.plus({ hours: hour }).toISO() ?? "");
    const { prices, doubts } = good({
      prices: Object.fromEntries(starts.map((start, hour) => [start, hour])),
    });
    expect(doubts).toEqual([]);
    expect(prices.map(({ value }) => value)).toEqual(starts.map((_, hour) => hour));
    expect(prices[0]?.start).toBe(midnight.toUTC().toISO());
    expect(prices.at(-1)?.end).toBe(midnight.plus({ days: 1 }).toUTC().toISO());
  });
});

const record = (region: string, price: number) => ({ region, time: "2026-11-21T12:00:00Z", price });

describe("a list of records", () => {
  test.each([
    [["start", "end", "price"]],
    [["from", "to", "value"]],
    [["time", "endTime", "amount"]],
    [["timestamp", "validTo", "spotPrice"]],
    [["StartTime", "EndsAt", "Price"]],
  ])("may call its members %j", ([start = "", end = "", price = ""]) => {
    const record = {
      [start]: "2026-11-21T13:00:00+01:00",
      [end]: "2026-11-21T13:30:00+01:00",
      [price]: "0.45",
    };
    expect(told([record])).toEqual(["12:00-12:30 0.45"]);
  });

  test("ends where the next one starts, and may stand under prices or items with its units", () => {
    const records = [0, 15, 30].map((minute) => ({
      time: `2026-11-21T12:${minute || "00"}:00Z`,
      price: minute,
    }));
    const expected = ["12:00-12:15 0", "12:15-12:30 15", "12:30-12:45 30"];
    expect(told(records)).toEqual(expected);
    expect(told({ items: records })).toEqual(expected);
    expect(good({ currency: "EUR", unit: "MWH", prices: records }).prices[0]).toMatchObject({
      currency: "EUR",
    });
    const own = [{ time: "2026-11-21T12:00Z", price: 45, unit: "EUR/MWh", vat: 0.25 }];
    expect(good(own).prices[0]).toMatchObject({
      currency: "EUR",
      perUnit: "MWh",
      vat: { rate: 0.25, hasVAT: null },
    });
  });

  test("of several regions gives ours; one that names another throughout is accepted, with a note", () => {
    expect(good([record("NO2", 2), record("no1", 1)])).toMatchObject({
      prices: [{ value: 1, region: "NO1" }],
      doubts: ["asked for NO1, answered for NO2"],
    });
    expect(good([record("Oslo", 3)])).toMatchObject({
      prices: [{ value: 3, region: "NO1" }],
      doubts: ["asked for NO1, answered for Oslo"],
    });
  });

  test.each([
    [{ unit: "MWh" }, "MWh"],
    [{ units: "KWH" }, "kWh"],
    [{ unit: "wh" }, "Wh"],
    [{ priceUnits: "GWh" }, "GWh"],
    [{ priceUnits: { currency: "EUR" }, unit: " MWh " }, "MWh"],
    [{ unit: "NOK/kWh", energyUnit: "MWh" }, "MWh"],
    [{ unit: "hour" }, null],
    [{ unit: "EUR" }, null],
    [{ unit: 7 }, null],
  ])("names its unit of energy in any field for units: %j", (fields, perUnit) => {
    const own = { start: "2026-11-21T12:00:00Z", price: 52.1, currency: "EUR", ...fields };
    expect(good([own]).prices[0]).toMatchObject({ value: 52.1, currency: "EUR", perUnit });
  });

  test("of several other regions is not readable: nobody knows which one is ours", () => {
    expect(read([record("Oslo", 3), record("Bergen", 4)])).toMatchObject({
      kind: "unreadable",
      reason: "asked for NO1, answered for several others: Oslo, Bergen",
    });
    expect(good([record("Oslo", 3), { ...record("OSLO", 4), time: "2026-11-21T13:00:00Z" }])).toMatchObject({
      prices: [{ value: 3 }, { value: 4 }],
      doubts: ["asked for NO1, answered for Oslo"],
    });
    expect(good([record("Oslo", 3), record("Bergen", 4), record("NO1", 5)]).prices).toMatchObject([
      { value: 5 },
    ]);
    const many = Array.from({ length: 9 }, (_, n) => record(`area ${n}`, n));
    expect(read(many)).toMatchObject({
      reason: "asked for NO1, answered for several others: area 0, area 1, area 2 and 6 more",
    });
  });
});

const segment = (from: string, to: string, averagePrice: number) => ({
  from: `2026-11-21T${from}:00:00Z`,
  to: `2026-11-21T${to}:00:00Z`,
  averagePrice,
});

test("a forecast segment lasts to the end of the hour that its `to` names", () => {
  const body = { ...units, forecastSegments: [segment("00", "05", 0.3), segment("06", "11", 0.5)] };
  expect(told(body)).toEqual(["00:00-06:00 0.3", "06:00-12:00 0.5"]);
  expect(good(body).prices[0]).toMatchObject({ currency: "NOK", perUnit: "kWh" });
  expect(told({ forecastSegments: [segment("03", "03", 1)] })).toEqual(["03:00-04:00 1"]);
});

const price = (...values: readonly unknown[]) => ({
  payloads: [
    { type: "GHG", values: [9] },
    { type: "PRICE", values },
  ],
});

describe("an OpenADR event", () => {
  const event = {
    programID: "p",
    payloadDescriptors: [{ payloadType: "PRICE", units: "KWH", currency: "NOK" }],
    intervalPeriod: { start: "2026-11-21T12:00:00Z", duration: "PT1H" },
    intervals: [price(0.1), price(0.2)],
  };

  test("gives one price for each interval, one after the other", () => {
    expect(told(event)).toEqual(["12:00-13:00 0.1", "13:00-14:00 0.2"]);
    expect(told([event])).toEqual(told(event));
    expect(told({ objectType: "EVENT", object: event })).toEqual(told(event));
    expect(good(event).prices[0]).toMatchObject({ currency: "NOK", perUnit: "kWh", vat: null });
  });

  test("may give an interval its own period, several values, and begin now", () => {
    const own = { intervalPeriod: { start: "2026-11-21T18:00:00Z", duration: "PT30M" }, ...price(0.3) };
    expect(told({ ...event, intervals: [price(0.1, 0.2, 0.3, 0.4), own, price(0.5)] })).toEqual([
      "12:00-12:15 0.1",
      "12:15-12:30 0.2",
      "12:30-12:45 0.3",
      "12:45-13:00 0.4",
      "18:00-18:30 0.3",
      "18:30-19:30 0.5",
    ]);
    const now = { intervalPeriod: { start: "0001-01-01T00:00:00", duration: "PT2H" }, intervals: [price(1)] };
    expect(told(now)).toEqual(["12:00-14:00 1"]);
  });

  test("without a price, a start or a length is odd", () => {
    const doubts = [
      { ...event, intervals: [{ payloads: [{ type: "EXPORT_PRICE", values: [1] }] }, price(1)] },
      { ...event, intervals: [price("a lot"), price(1)] },
      { ...event, intervalPeriod: null, intervals: [price(1), { ...price(1), ...event }] },
    ].map((body) => good(body).doubts);
    expect(doubts).toEqual([
      ["an interval without a PRICE payload"],
      ['"a lot" is not a price; expected a number such as 0.4512'],
      ["an interval without a start and a duration"],
    ]);
    expect(
      read({ intervals: [price(1)], intervalPeriod: { start: "2026-11-21T12:00Z", duration: "soon" } }).kind,
    ).toBe("unreadable");
  });
});

test.each([["1e999"], ["-1e999"], ['"0,45"'], ['"1,234"'], ['"NaN"'], ['""'], ["null"], ["true"], ["[1]"]])(
  "a price that is %s leaves a gap and is reported; its neighbours stay (F39)",
  (amount) => {
    const body = `{"prices":{"2026-11-21T10:00Z":1,"2026-11-21T11:00Z":${amount},"2026-11-21T12:00Z":3}}`;
    expect(told(body)).toEqual(["10:00-11:00 1", "12:00-13:00 3"]);
    expect(good(body).doubts).toHaveLength(1);
  },
);

test("a price that its sender divided and wrote as a text is no gap", () => {
  const sent = [0.1 + 0.2, 1.1 / 3, -0.07 * 100].map(String);
  const records = sent.map((value, hour) => ({ start: `2026-11-21T1${hour}:00Z`, value }));
  expect(sent.map(({ length }) => length > 17)).toEqual([true, true, true]);
  expect(good(records).prices.map(({ value }) => value)).toEqual([0.3, 0.366666666667, -7]);
  expect(good(records).doubts).toEqual([]);
});

test("a price that its sender divided or averaged is read without the noise of binary fractions", () => {
  const sent = [
    0.1 + 0.2,
    (45.12 + 45.13 + 45.15) / 3 / 100,
    562.7 / 1000,
    1.1 * 3,
    -0.07 * 100,
    123_456.7891,
  ];
  const records = sent.map((value, hour) => ({ start: `2026-11-21T1${hour}:00Z`, value }));
  expect(good(records).prices.map(({ value }) => value)).toEqual([
    0.3, 0.451333333333, 0.5627, 3.3, -7, 123_456.7891,
  ]);
  fc.assert(
    fc.property(
      fc.integer({ min: -10_000_000, max: 10_000_000 }),
      fc.constantFrom(10, 100, 1000),
      (n, by) => {
        const [meant] = good([
          { start: "2026-11-21T10:00Z", value: Number(`${n}e-${Math.log10(by)}`) },
        ]).prices;
        const [noisy] = good([{ start: "2026-11-21T10:00Z", value: n * (1 / by) }]).prices;
        expect(noisy?.value).toBe(meant?.value);
      },
    ),
  );
});

test("a moment that is none, or an end before its start, costs that price only", () => {
  const hour = { start: "2026-11-21T12:00Z", price: 1 };
  const backwards = { start: "2026-11-21T14:00Z", end: "2026-11-21T13:00Z", price: 2 };
  expect(good([hour, { start: "noon", price: 2 }, backwards, { ...hour, end: 7 }, 5, null])).toMatchObject({
    prices: [{ value: 1 }],
    doubts: { length: 5 },
  });
});

test.each([
  ["nothing", "", "empty"],
  ["an empty list", "[]", "no prices in it"],
  ["an empty map", '{"prices":{}}', "no prices in it"],
  ["a page", "<html><body>Sign in</body></html>", "HTML or XML, not JSON"],
  ["a text", '"later"', '"later" is not a price; expected a JSON object'],
  ["hours of the day", '{"prices":{"00":1,"01":2}}', 'no known shape of prices: an object with ["00","01"]'],
  ["something else", '{"status":"ok"}', 'no known shape of prices: an object with ["status"]'],
  ["prices that are a number", '{"prices":5}', "no prices in it"],
  [
    "only unreadable prices",
    '{"2026-11-21T12:00Z":"x"}',
    '"x" is not a price; expected a number such as 0.4512',
  ],
])("%s is not readable, and how it began is kept (F37)", (_what, body, reason) => {
  expect(read(body)).toEqual({ kind: "unreadable", reason, raw: body });
});

test("more prices than a month has quarters are not believed, and of the raw text a page is kept", () => {
  const many = Array.from({ length: 3001 }, (_, minute) => ({
    start: new Date(NOON + minute * 60_000),
    price: 1,
  }));
  const found = read(many);
  expect(found).toMatchObject({ kind: "unreadable", reason: "over 3000 prices" });
  expect(found.raw).toHaveLength(4000);
  expect(read(many.slice(1)).kind).toBe("read");
});

test("any JSON is read or refused without an exception; read prices are finite and in order", () => {
  const stamp = fc.constantFrom(
    "2026-11-21T12:00Z",
    "2026-11-21T12:15:00+01:00",
    "0001-01-01",
    "2026-13-01",
    "x",
  );
  const names = [
    "prices",
    "start",
    "end",
    "to",
    "price",
    "intervals",
    "payloads",
    "type",
    "values",
    "vat",
    "data",
  ];
  const key = fc.oneof(
    fc.constantFrom(...names, "forecastSegments", "intervalPeriod", "duration", "unit"),
    stamp,
  );
  const leaf = fc.oneof(stamp, fc.double(), fc.constantFrom("PRICE", "PT1H", null, -0), fc.jsonValue());
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(tie("tree"), { maxLength: 4 }),
      fc.dictionary(key, tie("tree"), { maxKeys: 5 }),
    ),
  }));
  fc.assert(
    fc.property(tree, (body) => {
      const found = read(JSON.stringify(body) ?? "");
      if (found.kind === "unreadable") return;
      for (const { value, start, end } of found.prices) {
        expect(Number.isFinite(value) && end > start).toBe(true);
        expect(Object.is(value, -0)).toBe(false);
      }
    }),
    { numRuns: 500 },
  );
});
