import * as fc from "fast-check";
import { expect, test } from "vitest";

import { contradictions, latestNotices } from "../../../src/control/ingest/intake.ts";
import type { Notice } from "../../../src/domain/delivery.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { anEvent } from "../../support/anEvent.ts";

const saying = (id: string, revision: number, name = ""): Notice => ({
  kind: "event",
  event: anEvent({ id, revision: instant(revision), name }),
});

test("a body that names each event once is taken as it is", () => {
  const notices = [saying("A", 1), saying("B", 1)];
  expect(latestNotices(notices)).toBe(notices);
});

test("F51: within one list the highest revision counts, and of equals the later entry", () => {
  const [old, first, last, other] = [
    saying("A", 1),
    saying("A", 2, "x"),
    saying("A", 2, "y"),
    saying("B", 1),
  ];
  expect(latestNotices([first, old, other, last])).toEqual([other, last]);
  expect(latestNotices([last, old])).toEqual([last]);
});

test("F39: deletes and entries that could not be read stay in their places", () => {
  const gone: Notice = { kind: "deleted", id: eventId("B"), revision: null };
  const bad: Notice = { kind: "rejected", id: null, path: "[1]", reason: "odd", raw: "1" };
  const [old, now] = [saying("A", 1), saying("A", 2)];
  expect(latestNotices([old, bad, gone, now])).toEqual([bad, gone, now]);
});

test("F51: notices before and after a delete of their event in one body are read in order", () => {
  const gone: Notice = { kind: "deleted", id: eventId("A"), revision: null };
  const [first, old, now, newest] = [saying("A", 2), saying("A", 1), saying("A", 3), saying("A", 4)];
  expect(latestNotices([first, gone, now])).toEqual([first, gone, now]);
  expect(latestNotices([first, old, gone, now, newest, gone])).toEqual([first, gone, newest, gone]);
});

test("each event is named at most once, whatever a body holds", () => {
  const notice = fc.tuple(fc.constantFrom("A", "B", "C"), fc.nat(3)).map(([id, rev]) => saying(id, rev));
  fc.assert(
    fc.property(fc.array(notice), (notices) => {
      const ids = latestNotices(notices).map((left) => (left.kind === "event" ? left.event.id : null));
      expect(new Set(ids).size).toBe(ids.length);
    }),
  );
});

test("an event that stands twice with the same modification time and other content contradicts itself (F51)", () => {
  const [first, last, newer] = [saying("A", 1, "x"), saying("A", 1, "y"), saying("B", 2)];
  const bad: Notice = { kind: "rejected", id: null, path: "[1]", reason: "odd", raw: "1" };
  expect([...contradictions([first, bad, newer, last])]).toEqual(["A"]);
  expect([...contradictions([first, first, newer, saying("B", 1)])]).toEqual([]);
});
