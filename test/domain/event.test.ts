import { expect, test } from "vitest";

import { clampToNow, knownAt } from "../../src/domain/event.ts";
import { instant } from "../../src/domain/units.ts";
import { anEvent, at, live, withdrawn } from "../support/anEvent.ts";

const revision = { event: anEvent(), start: at("05:00") };
const now = at("05:10");

test("F21: an event received by a clock that was ahead counts as received now at the latest", () => {
  const endings = [
    { revision, at: at("05:05") },
    { revision, at: at("05:50") },
  ];
  const clamped = [endings[0], { revision, at: now }];
  expect(clampToNow(live(anEvent(), { receivedAt: at("05:50"), endings }), now)).toMatchObject({
    receivedAt: now,
    endings: clamped,
    revision: { start: at("05:00") },
  });
  expect(clampToNow(withdrawn(anEvent(), at("05:50"), endings), now)).toMatchObject({
    receivedAt: now,
    endings: clamped,
  });
});

test("F21: a withdrawal by a clock that was ahead was before the receipt, which is now", () => {
  const known = live(anEvent(), { receivedAt: at("05:30"), goneUntil: at("05:50") });
  expect(clampToNow(known, now)).not.toHaveProperty("goneUntil");
});

test("F21: an event that was to start now, by a clock that was ahead, has started", () => {
  const known = live(anEvent({ start: "now" }), { receivedAt: at("05:50") });
  expect(clampToNow(known, now)).toMatchObject({ revision: { start: now } });
  const cut = withdrawn(anEvent({ start: "now" }), at("05:50"), [], at("05:45"));
  expect(clampToNow(cut, now)).toMatchObject({ anchor: now });
  const earlier = withdrawn(anEvent({ start: "now" }), at("05:50"), [], at("05:00"));
  expect(clampToNow(earlier, now)).toMatchObject({ anchor: at("05:00") });
});

test("F21: an earlier reception keeps its time, and a clock that lost the time changes nothing", () => {
  const known = live(anEvent(), { receivedAt: at("05:00"), endings: [{ revision, at: at("05:00") }] });
  expect(clampToNow(known, now)).toBe(known);
  expect(clampToNow(known, instant(100_000))).toBe(known);
});

test("the revision that was known at a moment is found while no withdrawal separates it from the newest", () => {
  const [first, second] = [revision, { event: anEvent({ priority: 7 }), start: at("05:00") }];
  const known = live(anEvent({ priority: 9 }), {
    receivedAt: at("05:10"),
    endings: [
      { revision: first, at: at("05:05"), receivedAt: at("04:00") },
      { revision: second, at: at("05:10"), receivedAt: at("05:05") },
    ],
  });
  const when = ["05:20", "05:10", "05:09", "05:05", "05:04", "04:00", "03:59"];
  expect(when.map((moment) => knownAt(known, at(moment))?.event.priority)).toEqual([
    9,
    9,
    7,
    7,
    1,
    1,
    undefined,
  ]);
  expect(knownAt({ ...known, receivedAt: at("05:11") }, at("05:09"))).toBeNull();
  expect(knownAt(withdrawn(anEvent(), at("05:10"), known.endings), at("05:20"))).toBeNull();
  // Earlier releases stored no receipts.
  const old = live(anEvent(), { receivedAt: at("05:10"), endings: [{ revision, at: at("05:10") }] });
  expect(knownAt(old, at("05:09"))).toBeNull();
});

test("F21: the receipt of a replaced revision is corrected with the other dates", () => {
  const endings = [
    { revision, at: at("05:40"), receivedAt: at("05:00") },
    { revision, at: at("05:50"), receivedAt: at("05:40") },
  ];
  const clamped = clampToNow(live(anEvent(), { receivedAt: at("05:50"), endings }), now);
  expect(clamped.endings.map(({ receivedAt }) => receivedAt)).toEqual([at("05:00"), now]);
});
