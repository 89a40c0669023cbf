import * as fc from "fast-check";
import { expect, test } from "vitest";

import { Silence } from "../../../src/control/observe/presence.ts";
import { chargerId, millis, minutes, seconds } from "../../../src/domain/units.ts";

const bay = chargerId("bay-01");
const LONGEST = minutes(5);
const always = () => true;
const after = (count: number) => millis(minutes(count));

test("a charger that never spoke never falls silent", () => {
  const silence = new Silence();
  expect(silence.fallen(after(60), LONGEST, always)).toEqual([]);
  expect(silence.has(bay)).toBe(false);
});

test("one that spoke falls silent once, and is heard again with how long it was", () => {
  const silence = new Silence();
  expect(silence.heard(bay, after(0))).toBeNull();
  expect(silence.fallen(after(4), LONGEST, always)).toEqual([]);
  expect(silence.fallen(after(5), LONGEST, always)).toEqual([bay]);
  expect(silence.fallen(after(9), LONGEST, always)).toEqual([]);
  expect(silence.has(bay)).toBe(true);
  expect(silence.heard(bay, after(12))).toBe(minutes(12));
  expect(silence.heard(bay, after(13))).toBeNull();
  expect(silence.has(bay)).toBe(false);
});

test("everyone is looked through at most every ten seconds", () => {
  const silence = new Silence();
  silence.heard(bay, after(0));
  expect(silence.fallen(millis(LONGEST - 1), LONGEST, always)).toEqual([]);
  expect(silence.fallen(LONGEST, LONGEST, always)).toEqual([]);
  expect(silence.fallen(millis(LONGEST - 1 + seconds(10)), LONGEST, always)).toEqual([bay]);
});

test("while its broker is away a silence is not the charger's, and counts anew afterwards", () => {
  const silence = new Silence();
  silence.heard(bay, after(0));
  expect(silence.fallen(after(10), LONGEST, () => false)).toEqual([]);
  expect(silence.fallen(after(14), LONGEST, always)).toEqual([]);
  expect(silence.fallen(after(15), LONGEST, always)).toEqual([bay]);
  silence.pardon(bay, after(16));
  silence.pardon(chargerId("bay-99"), after(16));
  expect([silence.has(bay), silence.fallen(after(20), LONGEST, always)]).toEqual([false, []]);
});

test("a charger is silent always and only when its last message is too old, however it speaks", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 30 }), (pauses) => {
      const silence = new Silence();
      let now = 0;
      silence.heard(bay, after(now));
      for (const pause of pauses) {
        silence.fallen(after(now + pause), LONGEST, always);
        expect(silence.has(bay)).toBe(pause >= 5);
        now += pause;
        expect(silence.heard(bay, after(now))).toBe(pause >= 5 ? minutes(pause) : null);
      }
    }),
  );
});
