import { expect, test } from "vitest";
import { configured, mistakesIn, theMistake, warningsIn } from "../../support/aConfiguration.ts";

const withPrices = (prices: object) => ({ vtn: { prices } });

test("no prices are fetched unless a region is named; then each hour, without a forecast", () => {
  expect(configured({}).vtn.prices).toEqual({ regions: [], cron: "2 * * * *", forecastPath: null });
  expect(configured(withPrices({ regions: ["NO1", "SE-3"], cron: " @daily " })).vtn.prices).toMatchObject({
    regions: ["NO1", "SE-3"],
    cron: "@daily",
  });
});

test.each([
  [{ regions: ["NO 1"] }],
  [{ regions: ["../x"] }],
  [{ regions: [""] }],
  [{ regions: ["x".repeat(33)] }],
  [{ regions: ["NO1", "NO1"] }],
  [{ regions: Array.from({ length: 17 }, (_, number) => `R${number}`) }],
  [{ regions: [1] }],
  [{ forecastPath: "smart/{region}" }],
  [{ forecastPath: "/smart/forecast" }],
  [{ forecastPath: "/smart/{region} x" }],
  [{ forecastPath: "/smart/{region}#x" }],
])("%j is refused", (prices) => {
  expect(mistakesIn(withPrices(prices))).toHaveLength(1);
});

test.each(["61 * * * *", "2 * * *", "soon", "", "0 0 31 2 *"])(
  "%j is not a cron expression, and the message explains it",
  (cron) => {
    expect(theMistake(withPrices({ cron }))).toEqual({
      path: "vtn.prices.cron",
      found: `${JSON.stringify(cron)} (text)`,
      expected: expect.stringContaining('e.g. "2 * * * *"'),
    });
  },
);

test("a schedule with more requests than allowed is warned about", () => {
  const regions = ["NO1", "NO2"];
  expect(warningsIn(withPrices({ regions, cron: "*/2 * * * *" }))).toEqual([]);
  expect(warningsIn(withPrices({ regions, cron: "* * * * *" }))).toEqual([
    "vtn.prices.cron: * * * * *, which is 120 requests an hour",
  ]);
  expect(warningsIn(withPrices({ regions, cron: "*/2 * * * *", forecastPath: "/f/{region}" }))).toHaveLength(
    1,
  );
});
