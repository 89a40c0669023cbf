import { expect, test } from "vitest";

import type { Reading } from "../../src/domain/reading.ts";
import { evidenceOf, type Subject } from "../../src/reporting/evidence.ts";
import { operatingState } from "../../src/reporting/payload.ts";
import { A, aSubject, fillContext, from, measured, stated, told } from "../support/aReading.ts";
import { at } from "../support/anEvent.ts";

const state = (readings: readonly Reading[], changes: Partial<Subject> = {}): string | null =>
  operatingState(evidenceOf(aSubject(readings, changes), fillContext()), from("12:00", "13:00")).value;

const END = at("12:59");

test("power tells whether it runs, the charger's word only where there is no power", () => {
  expect(state([stated("charging", END), measured("power", 11_000, END)])).toBe("RUNNING_NORMAL");
  expect(state([stated("charging", END), measured("power", 20, END)])).toBe("IDLE_NORMAL");
  expect(state([measured("power", -7_000, END)])).toBe("RUNNING_NORMAL");
  expect(state([stated("charging", END)])).toBe("RUNNING_NORMAL");
  expect(state([stated("finished", END)])).toBe("IDLE_NORMAL");
});

test("held to a level or paused by us it is curtailed, and released it is normal", () => {
  const running = [stated("charging", END)];
  expect(state([...running, told(A(16), at("12:00"))])).toBe("RUNNING_CURTAILED");
  expect(state([stated("paused", END), told({ kind: "pause" }, at("12:00"))])).toBe("IDLE_CURTAILED");
  expect(state([...running, told(A(16), at("12:00")), told({ kind: "release" }, at("12:30"))])).toBe(
    "RUNNING_NORMAL",
  );
});

const out = (start: string, end: string) => ({
  outages: [{ ...from(start, end), cause: "opted out by the site" as const }],
});

test("held out of the event by the site it has opted out, while that lasts", () => {
  expect(state([stated("charging", END)], out("12:30", "14:00"))).toBe("RUNNING_OPTED_OUT");
  expect(state([stated("charging", END)], out("12:00", "12:30"))).toBe("RUNNING_NORMAL");
  expect(state([stated("charging", END)], out("13:00", "14:00"))).toBe("RUNNING_NORMAL");
  expect(
    state([stated("charging", END)], {
      outages: [{ ...from("12:00", "14:00"), cause: "setpoint not followed" }],
    }),
  ).toBe("RUNNING_NORMAL");
});

test("an error is an error", () => {
  expect(state([stated("error", END), measured("power", 0, END)])).toBe("ERROR");
});

test("without any reading there is nothing to say", () => {
  expect(state([told(A(16), at("12:00"))])).toBe(null);
});
