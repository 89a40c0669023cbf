import { expect, test } from "vitest";

import { isForgotten, nextDeparture } from "../../src/departures/timetable.ts";
import type { SetDeparture, WeeklyDeparture } from "../../src/domain/departure.ts";
import { type Instant, instant, iso, vehicleId } from "../../src/domain/units.ts";
import { timesOfDay } from "../../src/platform/clock.ts";

const bus = vehicleId("veh-214");
const OSLO = timesOfDay("Europe/Oslo");
const need = { kind: "energy", wh: 18_000 } as const;
const at = (moment: string): Instant => instant(Date.parse(moment));
const weekly = (days: readonly number[], hour: number, minute = 0): WeeklyDeparture => ({
  days,
  hour,
  minute,
  need,
});
const set = (moment: string): SetDeparture => ({
  vehicle: bus,
  at: at(moment),
  need,
  source: "csv",
  by: "kari",
  setAt: at("2026-11-23T00:00:00Z"),
});
const next = (entries: readonly WeeklyDeparture[], all: readonly SetDeparture[], now: string) => {
  const found = nextDeparture(bus, entries, all, OSLO, at(now));
  return found === null ? null : `${iso(found.at)} ${found.source} ${found.by}`;
};

const WORKDAYS = [1, 2, 3, 4, 5];

test.each([
  ["this morning", "2026-11-23T04:00:00Z", "2026-11-23T04:40:00.000Z"],
  ["tomorrow, once today's is over", "2026-11-23T04:40:00Z", "2026-11-24T04:40:00.000Z"],
  ["on Monday, after Friday's", "2026-11-27T05:00:00Z", "2026-11-30T04:40:00.000Z"],
])("the next weekly departure is %s", (_when, now, expected) => {
  expect(next([weekly(WORKDAYS, 5, 40)], [], now)).toBe(`${expected} weekly null`);
});

test.each([
  ["winter", "2026-10-25T10:00:00Z", "2026-10-26T04:40:00.000Z"],
  ["summer", "2026-10-23T10:00:00Z", "2026-10-24T03:40:00.000Z"],
  ["the day on which the clock goes back", "2026-10-24T10:00:00Z", "2026-10-25T04:40:00.000Z"],
])("05:40 in %s is 05:40 on the clock of the site", (_day, now, expected) => {
  expect(next([weekly([1, 2, 3, 4, 5, 6, 7], 5, 40)], [], now)).toBe(`${expected} weekly null`);
});

test("a time that the clock skips in spring is the same number of minutes after the skip", () => {
  expect(next([weekly([7], 2, 30)], [], "2027-03-28T00:00:00Z")).toBe("2027-03-28T01:30:00.000Z weekly null");
});

test.each([
  ["Europe/Berlin", "spring", 2, 30, "2027-03-27T12:00:00Z", ["2027-03-28T01:30", "2027-03-29T00:30"]],
  ["Europe/Berlin", "spring", 5, 45, "2027-03-27T12:00:00Z", ["2027-03-28T03:45", "2027-03-29T03:45"]],
  ["Europe/Berlin", "autumn", 2, 30, "2027-10-30T12:00:00Z", ["2027-10-31T00:30", "2027-11-01T01:30"]],
  ["Europe/Berlin", "autumn", 5, 45, "2027-10-30T12:00:00Z", ["2027-10-31T04:45", "2027-11-01T04:45"]],
  ["Australia/Lord_Howe", "spring", 2, 15, "2027-10-02T06:00:00Z", ["2027-10-02T15:45", "2027-10-03T15:15"]],
  ["Australia/Lord_Howe", "autumn", 1, 45, "2027-04-03T06:00:00Z", ["2027-04-03T14:45", "2027-04-04T15:15"]],
  ["Australia/Lord_Howe", "autumn", 5, 45, "2027-04-03T06:00:00Z", ["2027-04-03T19:15", "2027-04-04T19:15"]],
])(
  "in %s each day of a change in %s has one departure at %i:%i, whichever hour it is asked in",
  (zone, _season, hour, minute, from, expected) => {
    const every = weekly([1, 2, 3, 4, 5, 6, 7], hour, minute);
    const found = new Set<string>();
    for (let now = at(from); now < at(from) + 42 * 3_600_000; now = instant(now + 900_000)) {
      const departure = nextDeparture(bus, [every], [], timesOfDay(zone), now);
      if (departure !== null && departure.at <= at(`${expected[1]}:00Z`))
        found.add(iso(departure.at).slice(0, 16));
    }
    expect([...found]).toEqual(expected);
  },
);

test("the next of several on one day counts", () => {
  const both = [weekly([1], 14), weekly([1], 5, 40)];
  expect(next(both, [], "2026-11-23T00:00:00Z")).toBe("2026-11-23T04:40:00.000Z weekly null");
  expect(next(both, [], "2026-11-23T05:00:00Z")).toBe("2026-11-23T13:00:00.000Z weekly null");
});

test("a departure that was set replaces the weekly ones of its day, also after it has passed", () => {
  const entries = [weekly(WORKDAYS, 5, 40), weekly(WORKDAYS, 14)];
  const early = [set("2026-11-23T03:00:00Z")];
  expect(next(entries, early, "2026-11-23T00:00:00Z")).toBe("2026-11-23T03:00:00.000Z csv kari");
  expect(next(entries, early, "2026-11-23T03:00:00Z")).toBe("2026-11-24T04:40:00.000Z weekly null");
});

test("a weekly departure of another day comes before one that was set for later", () => {
  const later = [set("2026-11-25T03:00:00Z"), set("2026-11-25T13:00:00Z")];
  expect(next([weekly(WORKDAYS, 5, 40)], later, "2026-11-23T20:00:00Z")).toBe(
    "2026-11-24T04:40:00.000Z weekly null",
  );
  expect(next([], later, "2026-11-25T04:00:00Z")).toBe("2026-11-25T13:00:00.000Z csv kari");
  expect(next([], [], "2026-11-25T04:00:00Z")).toBeNull();
});

test("a weekly day that is replaced each week leaves the week after", () => {
  const replaced = [set("2026-11-23T03:00:00Z"), set("2026-11-30T03:00:00Z")];
  expect(next([weekly([1], 5, 40)], replaced, "2026-11-30T04:00:00Z")).toBe(
    "2026-12-07T04:40:00.000Z weekly null",
  );
});

test("departures that are set for each day of a year cost no more than those of the next days", () => {
  let asked = 0;
  const counted: typeof OSLO = (...of) => {
    asked += 1;
    return OSLO(...of);
  };
  const day = 86_400_000;
  const all = Array.from({ length: 365 }, (_, n) => ({
    ...set("2026-11-24T04:40:00Z"),
    at: instant(at("2026-11-24T04:40:00Z") + n * day),
  }));
  const now = at("2026-11-24T03:00:00Z");
  expect(nextDeparture(bus, [weekly(WORKDAYS, 5, 40)], all, counted, now)).toMatchObject({ source: "csv" });
  expect(asked).toBeLessThan(10);
  asked = 0;
  expect(nextDeparture(bus, [], all, counted, now)).toMatchObject({ source: "csv" });
  expect(asked).toBe(0);
});

test("a departure that was set is forgotten once its day is over", () => {
  expect(isForgotten(set("2026-11-23T03:00:00Z"), at("2026-11-24T04:59:59Z"))).toBe(false);
  expect(isForgotten(set("2026-11-23T03:00:00Z"), at("2026-11-24T05:00:00Z"))).toBe(true);
});
