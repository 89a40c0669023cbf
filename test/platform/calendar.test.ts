import * as fc from "fast-check";
import { DateTime } from "luxon";
import { expect, test } from "vitest";

import { siteCalendar } from "../../src/platform/clock.ts";
import { instant, iso } from "../../src/domain/units.ts";

test("the same time of day is the site's, also across a clock change", () => {
  const calendar = siteCalendar("Europe/Oslo");
  const monday = instant(Date.parse("2026-10-26T07:00:00Z"));
  expect(iso(calendar(monday, 0).at)).toBe("2026-10-26T07:00:00.000Z");
  expect(calendar(monday, 0).weekday).toBe(1);
  const saturday = calendar(monday, 2);
  expect([iso(saturday.at), saturday.weekday]).toEqual(["2026-10-24T06:00:00.000Z", 6]);
});

test("a day of any zone is the one that a calendar shows, whatever its clocks did in between", () => {
  const zones = ["Europe/Oslo", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "UTC"];
  const moments = fc.integer({ min: Date.parse("1965-01-01"), max: Date.parse("2030-01-01") });
  fc.assert(
    fc.property(fc.constantFrom(...zones), moments, fc.integer({ min: 0, max: 400 }), (zone, at, days) => {
      const day = DateTime.fromMillis(at, { zone }).minus({ days });
      const expected = { at: day.toMillis(), weekday: day.weekday };
      expect(siteCalendar(zone)(instant(at), days)).toEqual(expected);
    }),
  );
});
