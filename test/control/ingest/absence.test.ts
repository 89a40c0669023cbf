import { expect, test } from "vitest";
import { Absences, hasEnded } from "../../../src/control/ingest/absence.ts";
import { eventId, type Instant, instant, millis } from "../../../src/domain/units.ts";
import { anEvent, at, live, withdrawn } from "../../support/anEvent.ts";

const known = live(anEvent());
const id = eventId("EV-7731");
const NOTHING = new Set<typeof id>();

/** 05:00 to 06:00 of another day, spread over nothing. */
const far = (name: string, day: number, start = "05:00") =>
  live(anEvent({ id: name, start: instant(at(start) + day * 86_400_000), randomizeStart: millis(0) }));

test("F40 F41: an event is fetched by id when two complete lists in a row lack it, the same list twice included", () => {
  const absences = new Absences();
  expect(absences.listed(new Set([id]), [known], at("04:10"))).toEqual([]);
  expect([absences.listed(NOTHING, [known], at("04:11")), absences.isMissing(id)]).toEqual([[], false]);
  expect([absences.listed(null, [known], at("04:12")), absences.isMissing(id)]).toEqual([[id], true]);
  const gone = withdrawn(anEvent(), at("04:13"));
  expect([absences.listed(null, [gone], at("04:13")), absences.isMissing(id)]).toEqual([[], false]);
});

test("F40: an event whose fetch failed is fetched again with every list", () => {
  const absences = new Absences();
  absences.listed(NOTHING, [known], at("04:10"));
  const asked = ["04:11", "04:12", "04:13"].map((time) => absences.listed(null, [known], at(time)));
  expect(asked).toEqual([[id], [id], [id]]);
});

test("F41: an event that is listed in between is counted from zero again", () => {
  const absences = new Absences();
  absences.listed(NOTHING, [known], at("04:10"));
  absences.listed(new Set([id]), [known], at("04:11"));
  expect(absences.listed(NOTHING, [known], at("04:12"))).toEqual([]);
  expect(absences.listed(NOTHING, [known], at("04:13"))).toEqual([id]);
});

test("ended and withdrawn events are not fetched", () => {
  const absences = new Absences();
  const others = [known, withdrawn(anEvent({ id: "EV-2" }), at("05:00"))];
  absences.listed(NOTHING, others, at("06:10"));
  expect(absences.listed(NOTHING, others, at("06:11"))).toEqual([]);
});

/** The numbers of the lists after which it was asked for, of so many. It is there each time. */
function askings(absences: Absences, lists: number, apart: number, from: Instant): readonly number[] {
  const event = far("EV-7731", 30);
  return Array.from({ length: lists }, (_, index) => index + 1).filter((list) => {
    const asked = absences.listed(NOTHING, [event], instant(from + list * apart));
    if (asked.length > 0) absences.found(id);
    return asked.length > 0;
  });
}

test("L4 F41: an existing event that the lists lack is fetched ever less often, but at least once an hour", () => {
  expect(askings(new Absences(), 3600, 1000, at("00:00"))).toEqual([
    2, 6, 14, 30, 62, 126, 254, 510, 1022, 2046,
  ]);
  const inMinutes = askings(new Absences(), 600, 60_000, at("00:00"));
  expect(inMinutes).toEqual([2, 6, 14, 30, 62, 123, 184, 245, 306, 367, 428, 489, 550]);
  expect(askings(new Absences(), 8, 3_600_000, at("00:00"))).toEqual([2, 4, 6, 8]);
});

test("F21: a clock that is set back by days does not delay the next fetch by days", () => {
  const absences = new Absences();
  askings(absences, 600, 60_000, at("12:00"));
  expect(askings(absences, 62, 60_000, instant(at("12:00") - 3 * 86_400_000)).length).toBe(1);
});

test("a found event is missing again only when two more lists lack it, and fetches with another cause do not lengthen the wait", () => {
  const absences = new Absences();
  absences.found(id);
  absences.listed(NOTHING, [known], at("04:10"));
  absences.found(id);
  expect(absences.listed(null, [known], at("04:11"))).toEqual([]);
  expect(absences.listed(null, [known], at("04:12"))).toEqual([id]);
  absences.found(id);
  expect([absences.listed(null, [known], at("04:13")), absences.isMissing(id)]).toEqual([[], false]);
  expect([absences.listed(null, [known], at("04:14")), absences.isMissing(id)]).toEqual([[], true]);
});

test("among missing events, those never found by id come first, then the earliest start", () => {
  const absences = new Absences();
  const there = [far("EV-there", 0, "04:30")];
  for (let list = 0; list < 4; list += 1) absences.listed(NOTHING, there, at(`04:0${list}`));
  absences.found(eventId("EV-there"));
  const all = [...there, far("EV-late", 0, "09:00"), far("EV-soon", 0, "06:00"), far("EV-next", 0, "07:00")];
  const asked = [4, 5, 6, 7].map((minute) => absences.listed(NOTHING, all, at(`04:0${minute}`)));
  expect(asked[1]).toEqual(["EV-soon", "EV-next", "EV-late"]);
  expect(asked[3]).toEqual(["EV-soon", "EV-next", "EV-late", "EV-there"]);
});

test("before the first complete list every event may be listed, and none is missing", () => {
  const absences = new Absences();
  expect([absences.mayBeListed(id), absences.listed(null, [known], at("04:00"))]).toEqual([true, []]);
  absences.listed(NOTHING, [known], at("04:01"));
  expect(absences.mayBeListed(id)).toBe(false);
  absences.listed(new Set([id]), [known], at("04:02"));
  expect(absences.mayBeListed(id)).toBe(true);
});

test("an event has ended when even its latest random start has ended", () => {
  expect([hasEnded(known, at("06:09:59.999")), hasEnded(known, at("06:10"))]).toEqual([false, true]);
});
