import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  after,
  between,
  earlier,
  fromIso,
  isOpenAt,
  instant,
  iso,
  later,
  millis,
  minutes,
} from "../../src/domain/units.ts";
import { at } from "../support/anEvent.ts";

test("a moment is spelled as a Date would spell it, in any year", () => {
  const moment = fc.oneof(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: -8.64e15, max: 8.64e15 }));
  fc.assert(
    fc.property(fc.array(moment, { maxLength: 5 }), (moments) => {
      expect(moments.map((ms) => iso(instant(ms)))).toEqual(moments.map((ms) => new Date(ms).toISOString()));
    }),
  );
});

test("a moment is read as it was written", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), (ms) => {
      expect(fromIso(iso(instant(ms)))).toBe(ms);
    }),
  );
  expect(fromIso("2026-11-21T06:00:00+01:00")).toBe(at("05:00"));
  expect(fromIso("soon")).toBeNaN();
});

test("a window holds from its first moment, and no more at its last", () => {
  const window = { from: at("05:00"), until: at("06:00") };
  const moments = ["04:59:59.999", "05:00", "05:59:59.999", "06:00"];
  expect(moments.map((moment) => isOpenAt(window, at(moment)))).toEqual([false, true, true, false]);
});

test("F57: a window that would end after the last date there is ends with it, and can still be written", () => {
  const far = after(instant(Date.UTC(9999, 11, 31, 23, 59)), minutes(60));
  expect(iso(far)).toBe("9999-12-31T23:59:59.999Z");
});

test("moments are written in UTC with milliseconds", () => {
  expect(iso(after(at("05:00"), millis(7)))).toBe("2026-11-21T05:00:00.007Z");
  expect(between(at("05:00"), at("05:01"))).toBe(60_000);
});

test("the earlier and the later of two moments are distinguished", () => {
  const [a, b] = [at("05:00"), at("06:00")];
  expect([earlier(a, b), earlier(b, a), later(a, b), later(b, a)]).toEqual([a, a, b, b]);
});
