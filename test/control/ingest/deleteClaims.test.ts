import { expect, test } from "vitest";
import { DeleteClaims } from "../../../src/control/ingest/absence.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { at } from "../../support/anEvent.ts";

const id = eventId("EV-7731");
const none = () => false;
const all = () => true;

test("a delete causes a fetch by id at once, and a repeat after a minute at the earliest", () => {
  const claims = new DeleteClaims();
  expect(["04:10", "04:10:59.999", "04:11", "04:11:30"].map((when) => claims.add(id, at(when)))).toEqual([
    true,
    false,
    true,
    false,
  ]);
  // The clock was set back since.
  expect(claims.add(id, at("03:00"))).toBe(true);
});

test("only a 404 requested after the delete confirms it", () => {
  const claims = new DeleteClaims();
  expect(claims.isConfirmedBy(id, at("04:10"))).toBe(false);
  claims.add(id, at("04:10"));
  expect(["04:09", "04:10"].map((asked) => claims.isConfirmedBy(id, at(asked)))).toEqual([false, true]);
});

test("a fetch that finds the event refutes the deletes before its request, not later ones", () => {
  const claims = new DeleteClaims();
  claims.settle(id, at("04:00"));
  claims.add(id, at("04:10"));
  claims.settle(id, at("04:09"));
  expect(claims.isConfirmedBy(id, at("04:11"))).toBe(true);
  claims.settle(id, at("04:10"));
  expect(claims.isConfirmedBy(id, at("04:11"))).toBe(false);
  expect(claims.lackedBy(none, at("04:11"))).toEqual([]);
});

test("an event with an unsettled delete is fetched after each list that lacks it, for an hour", () => {
  const claims = new DeleteClaims();
  claims.add(id, at("04:10"));
  expect(claims.lackedBy(all, at("04:10:30"))).toEqual([]);
  expect(["04:10:30", "04:11", "05:10"].map((when) => claims.lackedBy(none, at(when)))).toEqual([
    [id],
    [id],
    [id],
  ]);
  expect(claims.lackedBy(none, at("05:10:01"))).toEqual([]);
  expect(claims.isConfirmedBy(id, at("05:11"))).toBe(false);
});

test("a list that holds the event a minute after the delete refutes it; a clock that was set back drops it", () => {
  for (const [isListed, when] of [
    [all, "04:11:01"],
    [none, "04:09"],
  ] as const) {
    const claims = new DeleteClaims();
    claims.add(id, at("04:10"));
    claims.lackedBy(isListed, at(when));
    expect(claims.isConfirmedBy(id, at("04:12"))).toBe(false);
  }
});

test("F62 deletes of a thousand unknown events evict each other, so memory stays bounded", () => {
  const claims = new DeleteClaims();
  for (let count = 0; count < 1_500; count += 1) claims.add(eventId(`EV-${count}`), instant(count));
  expect(claims.lackedBy(none, instant(2_000))).toHaveLength(1_000);
});
