import * as fc from "fast-check";
import { expect, test } from "vitest";

import { latestNotices } from "../../../src/control/ingest/intake.ts";
import { isLong, partsOf } from "../../../src/control/ingest/pipeline.ts";
import type { Delivery, Notice } from "../../../src/domain/delivery.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { anEvent } from "../../support/anEvent.ts";

const list = (notices: readonly Notice[]): Delivery => ({
  source: "list",
  at: instant(2),
  askedAt: instant(1),
  notices,
  complete: true,
});

const event = (id: number, revision = 1): Notice => ({
  kind: "event",
  event: anEvent({ id: eventId(`EV-${id}`), revision: instant(revision) }),
});
const unreadable = (path: string): Notice => ({ kind: "rejected", id: null, path, reason: "odd", raw: "1" });

test("only a list of more than 250 entries is ingested in parts", () => {
  const many = Array.from({ length: 251 }, (_, id) => event(id));
  expect(isLong(list(many))).toBe(true);
  expect(isLong(list(many.slice(1)))).toBe(false);
  expect(isLong({ ...list(many), source: "webhook" })).toBe(false);
});

test("a part holds 250 events, none of the parts shows absence, and what is unreadable comes last and together", () => {
  const notices = Array.from({ length: 600 }, (_, id) =>
    id % 100 === 99 ? unreadable(`[${id}]`) : event(id),
  );
  const { parts, last } = partsOf(list(notices));
  expect(parts.map((part) => part.notices.length)).toEqual([250, 250, 94]);
  expect(last.notices).toHaveLength(6);
  expect([...parts, last].map(({ complete }) => complete)).toEqual([false, false, false, false]);
});

test("with any repeats in a list, the parts give the same result per event as the whole, and no event is in two", () => {
  const entry = fc.record({ id: fc.nat({ max: 400 }), revision: fc.integer({ min: 1, max: 3 }) });
  const made = Array.from({ length: 401 * 4 }, (_, index) => event(index >> 2, index & 3));
  fc.assert(
    fc.property(fc.array(entry, { minLength: 300, maxLength: 700 }), (entries) => {
      const notices = entries.flatMap(({ id, revision }) => made[id * 4 + revision] ?? []);
      const { parts } = partsOf(list(notices));
      const ids = parts.map(
        (part) => new Set(part.notices.map((notice) => (notice.kind === "event" ? notice.event.id : ""))),
      );
      expect(ids.reduce((sum, { size }) => sum + size, 0)).toBe(new Set(entries.map(({ id }) => id)).size);
      const inParts = new Set(parts.flatMap((part) => latestNotices(part.notices)));
      const whole = latestNotices(notices);
      expect(whole.length).toBe(inParts.size);
      expect(whole.every((notice) => inParts.has(notice))).toBe(true);
    }),
    { numRuns: 30 },
  );
});
