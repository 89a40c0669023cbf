import * as fc from "fast-check";
import { expect, test } from "vitest";

import { Silence } from "../../../src/control/observe/presence.ts";
import { chargerId, millis, minutes, seconds } from "../../../src/domain/units.ts";

const bay = chargerId("bay-01");
const LONGEST = minutes(5);
const always = () => true;
const after = (count: number) => millis(minutes(count));

test("a charger that never sent a message never falls silent", () => {
  const silence = new Silence();
  expect(silence.newlySilent(after(60), LONGEST, always)).toEqual([]);
  expect(silence.has(bay)).toBe(false);
});

test("a charger falls silent once, and its next message ends that with the length of the silence", () => {
  const silence = new Silence();
  expect(silence.noteMessage(bay, after(0))).toBeNull();
  expect(silence.newlySilent(after(4), LONGEST, always)).toEqual([]);
  expect(silence.newlySilent(after(5), LONGEST, always)).toEqual([bay]);
  expect(silence.newlySilent(after(9), LONGEST, always)).toEqual([]);
  expect(silence.has(bay)).toBe(true);
  expect(silence.noteMessage(bay, after(12))).toBe(minutes(12));
  expect(silence.noteMessage(bay, after(13))).toBeNull();
  expect(silence.has(bay)).toBe(false);
});

test("all chargers are scanned at most every ten seconds", () => {
  const silence = new Silence();
  silence.noteMessage(bay, after(0));
  expect(silence.newlySilent(millis(LONGEST - 1), LONGEST, always)).toEqual([]);
  expect(silence.newlySilent(LONGEST, LONGEST, always)).toEqual([]);
  expect(silence.newlySilent(millis(LONGEST - 1 + seconds(10)), LONGEST, always)).toEqual([bay]);
});

test("while its broker is away a silence is not the charger's, and counts anew afterwards", () => {
  const silence = new Silence();
  silence.noteMessage(bay, after(0));
  expect(silence.newlySilent(after(10), LONGEST, () => false)).toEqual([]);
  expect(silence.newlySilent(after(14), LONGEST, always)).toEqual([]);
  expect(silence.newlySilent(after(15), LONGEST, always)).toEqual([bay]);
  silence.restartTimer(bay, after(16));
  silence.restartTimer(chargerId("bay-99"), after(16));
  expect([silence.has(bay), silence.newlySilent(after(20), LONGEST, always)]).toEqual([false, []]);
});

test("a charger is silent if and only if its last message is too old", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 30 }), (pauses) => {
      const silence = new Silence();
      let now = 0;
      silence.noteMessage(bay, after(now));
      for (const pause of pauses) {
        silence.newlySilent(after(now + pause), LONGEST, always);
        expect(silence.has(bay)).toBe(pause >= 5);
        now += pause;
        expect(silence.noteMessage(bay, after(now))).toBe(pause >= 5 ? minutes(pause) : null);
      }
    }),
  );
});
