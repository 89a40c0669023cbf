import * as fc from "fast-check";
import { expect, test } from "vitest";

import { type EventSummary, type KnownEvent, summaryOf, overSince } from "../../src/domain/event.ts";
import { after, type EventId, type Instant, instant, minutes } from "../../src/domain/units.ts";
import { eventsUsed, forgettable, leavesEarly } from "../../src/retention/rules.ts";
import { anEvent, at, live, withdrawn } from "../support/anEvent.ts";

const DAY = minutes(24 * 60);
const KEEP = { events: DAY, maxEvents: 100, withdrawn: DAY, maxBytes: 1_000_000 } as const;
const days = (count: number): Instant => instant(at("06:10") + count * DAY);

/** Ids of the events that go at that moment. */
function gone(
  known: readonly KnownEvent[],
  now: Instant,
  {
    agesCount = true,
    needed = [],
    most = 100,
    maxEvents = 100,
  }: {
    readonly agesCount?: boolean;
    readonly needed?: readonly EventId[];
    readonly most?: number;
    readonly maxEvents?: number;
  } = {},
): readonly string[] {
  const isNeeded = (id: EventId): boolean => needed.includes(id);
  return forgettable(known, { ...KEEP, maxEvents }, { now, agesCount, isNeeded, most }).map(({ id }) => id);
}

const event = live(anEvent());

test("an event is over at the end of the latest random start, or at its receipt if that is later", () => {
  expect(overSince(event)).toBe(at("06:10"));
  expect(overSince(live(anEvent(), { receivedAt: at("09:00") }))).toBe(at("09:00"));
});

test("a withdrawn event is over at its last spread release", () => {
  expect(overSince(withdrawn(anEvent(), at("05:30")))).toBe(at("05:30"));
  const ending = { revision: event.revision, at: at("05:30") };
  expect(overSince(withdrawn(anEvent(), at("05:30"), [ending]))).toBe(at("05:40"));
});

test("an ended event is pruned once it is older than configured, not before", () => {
  expect(gone([event], days(1))).toEqual([]);
  expect(gone([event], instant(days(1) + 1))).toEqual(["EV-7731"]);
});

test("a tombstone has its own age", () => {
  const tombstone = withdrawn(anEvent(), at("06:10"));
  expect([gone([tombstone], days(1)), gone([tombstone], days(2))]).toEqual([[], ["EV-7731"]]);
});

test("an event that the partner still lists, or with a pending report, stays", () => {
  expect(gone([event], days(9), { needed: [event.id] })).toEqual([]);
});

test("while the clock may be wrong ages do not count, but the number of events does", () => {
  const many = ["A", "B", "C"].map((id, n) =>
    live(anEvent({ id }), { receivedAt: after(at("07:00"), minutes(n)) }),
  );
  expect(gone(many, days(9), { agesCount: false })).toEqual([]);
  expect(gone(many, days(9), { agesCount: false, maxEvents: 1 })).toEqual(["A", "B"]);
});

test("beyond their cap ended events are pruned before their age, oldest first, and withdrawals stay", () => {
  const over = ["A", "B", "C"].map((id, n) =>
    summaryOf(live(anEvent({ id }), { receivedAt: after(at("07:00"), minutes(n)) }), 400),
  );
  const tombstone = summaryOf(withdrawn(anEvent(), at("06:00")), 400);
  const keep = { ...KEEP, maxBytes: 800 };
  const how = { now: at("09:00"), agesCount: false, isNeeded: () => false, most: 10 };
  const left = forgettable([tombstone, ...over], keep, how);
  expect(left.map(({ id }) => id)).toEqual(["A"]);
  expect(left.every((event) => leavesEarly(event, KEEP, how.now))).toBe(true);
  expect(eventsUsed([tombstone, ...over, event], keep)).toBe(1.5);
  expect(eventsUsed(over, { maxEvents: 1, maxBytes: 2000 })).toBe(3);
});

test("pruning at the configured age, or of a withdrawal, is not early", () => {
  expect(leavesEarly(event, KEEP, days(1))).toBe(true);
  expect(leavesEarly(event, KEEP, days(2))).toBe(false);
  expect(leavesEarly(withdrawn(anEvent(), at("06:10")), KEEP, at("06:11"))).toBe(false);
});

test("a step prunes a limited number, those that ended first", () => {
  const [young, old] = [live(anEvent({ id: "young" }), { receivedAt: at("08:00") }), event];
  expect(gone([young, old], days(9), { most: 1 })).toEqual(["EV-7731"]);
});

test("small steps prune the same events as one large step, the first to end first", () => {
  const ended = fc.record({
    was: fc.constantFrom("live" as const, "withdrawn" as const),
    hours: fc.integer({ min: 0, max: 99 }),
    size: fc.integer({ min: 1, max: 9 }),
  });
  const caps = fc.record({
    maxEvents: fc.integer({ min: 0, max: 12 }),
    maxBytes: fc.integer({ min: 0, max: 99 }),
    most: fc.integer({ min: 1, max: 5 }),
    agesCount: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(ended, { maxLength: 12 }),
      caps,
      (events, { maxEvents, maxBytes, most, agesCount }) => {
        const keep = { ...KEEP, maxEvents, maxBytes };
        const how = { now: days(4), agesCount, isNeeded: () => false };
        const known = events.map(({ was, hours, size }, n) => {
          const summary = summaryOf(live(anEvent({ id: `EV-${n}` })), size);
          // No two end at the same moment.
          return { ...summary, was, until: instant(at("06:10") + hours * 3_600_000 + n) };
        });
        const atOnce = forgettable(known, keep, { ...how, most: Infinity });
        const inSteps: string[] = [];
        for (let left: readonly EventSummary[] = known; ;) {
          const gone = forgettable(left, keep, { ...how, most });
          if (gone.length === 0) break;
          inSteps.push(...gone.map(({ id }) => id));
          left = left.filter(({ id }) => !inSteps.includes(id));
        }
        const ends = atOnce.map((event) => (event.kind === "over" ? event.until : 0));
        expect(ends).toEqual(ends.toSorted((a, b) => a - b));
        expect(inSteps.toSorted()).toEqual(atOnce.map(({ id }) => id).toSorted());
      },
    ),
  );
});

test("an event with anything open is never pruned", () => {
  const moment = fc.integer({ min: -3, max: 3 }).map((n) => days(n));
  fc.assert(
    fc.property(moment, moment, fc.boolean(), (start, now, agesCount) => {
      const planned = live(anEvent({ start }), { receivedAt: instant(0) });
      const isOpen = now < start + minutes(70);
      expect(gone([planned], now, { agesCount, maxEvents: 0 })).toEqual(isOpen ? [] : [planned.id]);
    }),
  );
});
