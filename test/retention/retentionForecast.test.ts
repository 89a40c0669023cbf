import { expect, test } from "vitest";

import { retentionForecast } from "../../src/retention/rules.ts";
import { minutes } from "../../src/domain/units.ts";
import { configured } from "../support/aConfiguration.ts";

const forecast = (count: number, section = {}): readonly string[] => {
  const chargers = Array.from({ length: count }, (_, index) => ({
    id: `bay-${index}`,
    current: { max: 32 },
  }));
  const { retention } = configured({ chargers, retention: section });
  return retentionForecast(retention, {
    chargers: count,
    keepReadings: minutes(50 * 24 * 60),
    reportsPerHour: 120,
  });
};

test("a small depot keeps everything for its configured age", () => {
  expect(forecast(12)).toEqual([
    "up to 4.1 GB are kept on disk (retention.bytes):",
    "- readings: 50 days at 12 chargers every 10 s",
    "- record: 400 days at 20 events a day for all of them",
    "- ended events: 90 days at 20 events a day for all of them",
    "- reports: at most 120 requests an hour; more reports than that wait",
  ]);
  expect(forecast(1)[1]).toBe("- readings: 50 days at 1 charger every 10 s");
});

test("data that cannot reach its configured age shows how long it lasts", () => {
  expect(forecast(600).slice(1, 4)).toEqual([
    "- readings: about 13 days instead of 50 days at 600 chargers every 10 s",
    "- record: about 31 days instead of 400 days at 20 events a day for all of them",
    "- ended events: 90 days at 20 events a day for all of them",
  ]);
  expect(forecast(600, { bytes: "500MB", maxEvents: 100 }).slice(1, 4)).toEqual([
    "- readings: about 11 hours instead of 50 days at 600 chargers every 10 s",
    "- record: about 38 hours instead of 400 days at 20 events a day for all of them",
    "- ended events: about 5 days instead of 90 days at 20 events a day for all of them",
  ]);
  expect(forecast(600, { bytes: "20GB" })[1]).toBe("- readings: 50 days at 600 chargers every 10 s");
});
