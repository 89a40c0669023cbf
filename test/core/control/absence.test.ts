import { expect, test } from "vitest";
import { absences, hasEnded, LISTS_BEFORE_ASKING } from "../../../src/core/control/absence.ts";
import type { EventId } from "../../../src/core/units.ts";
import { eventId } from "../../../src/core/units.ts";
import { anEvent, at, live, withdrawn } from "../../support/anEvent.ts";

const known = live(anEvent());
const id = eventId("EV-7731");
const NONE: ReadonlyMap<EventId, number> = new Map();
const EMPTY = new Set<EventId>();

test("F40: one empty list is not a reason to ask, two in a row are", () => {
  const once = absences([known], EMPTY, NONE, at("05:10"));
  const twice = absences([known], EMPTY, once, at("05:11"));
  expect([once.get(id), twice.get(id)]).toEqual([1, LISTS_BEFORE_ASKING]);
});

test("F41: an event that is listed in between is counted from the beginning again", () => {
  const once = absences([known], EMPTY, NONE, at("05:10"));
  const listed = absences([known], new Set([id]), once, at("05:11"));
  expect([listed.size, absences([known], EMPTY, listed, at("05:12")).get(id)]).toEqual([0, 1]);
});

test("ended and withdrawn events are not asked for", () => {
  expect(absences([known], EMPTY, NONE, at("06:10")).size).toBe(0);
  expect(absences([withdrawn(anEvent(), at("05:00"))], EMPTY, NONE, at("05:10")).size).toBe(0);
});

test("an event has ended when not even the latest start can still be acting", () => {
  expect([hasEnded(known, at("06:09:59.999")), hasEnded(known, at("06:10"))]).toEqual([false, true]);
});
