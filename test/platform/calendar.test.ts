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
