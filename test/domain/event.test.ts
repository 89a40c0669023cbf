import { expect, test } from "vitest";

import { clampToNow } from "../../src/domain/event.ts";
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
