import { expect, test } from "vitest";

import type { Reading } from "../../src/domain/reading.ts";
import { evidenceOf, type Subject } from "../../src/reporting/evidence.ts";
import { operatingState } from "../../src/reporting/payload.ts";
import { A, aSubject, fillContext, from, measured, stated, told } from "../support/aReading.ts";
import { at } from "../support/anEvent.ts";

const state = (readings: readonly Reading[], changes: Partial<Subject> = {}): string | null =>
  operatingState(evidenceOf(aSubject(readings, changes), fillContext()), from("12:00", "13:00")).value;

const END = at("12:59");

test("power decides between running and idle, the charger's state only without power", () => {
  expect(state([stated("charging", END), measured("power", 11_000, END)])).toBe("RUNNING_NORMAL");
  expect(state([stated("charging", END), measured("power", 20, END)])).toBe("IDLE_NORMAL");
  expect(state([measured("power", -7_000, END)])).toBe("RUNNING_NORMAL");
  expect(state([stated("charging", END)])).toBe("RUNNING_NORMAL");
  expect(state([stated("finished", END)])).toBe("IDLE_NORMAL");
});

test("a limited or paused vehicle is curtailed, a released one is normal", () => {
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

test("a vehicle exempted by the site has opted out, while that lasts", () => {
  expect(state([stated("charging", END)], out("12:30", "14:00"))).toBe("RUNNING_OPTED_OUT");
  expect(state([stated("charging", END)], out("12:00", "12:30"))).toBe("RUNNING_NORMAL");
  expect(state([stated("charging", END)], out("13:00", "14:00"))).toBe("RUNNING_NORMAL");
  expect(
    state([stated("charging", END)], {
      outages: [{ ...from("12:00", "14:00"), cause: "setpoint not followed" }],
    }),
  ).toBe("RUNNING_NORMAL");
});

test("an error is reported as an error", () => {
  expect(state([stated("error", END), measured("power", 0, END)])).toBe("ERROR");
});

test("a charger that fell silent before the end has no operating state, and keeps no earlier one", () => {
  const early = [stated("charging", at("12:05")), measured("power", 11_000, at("12:05"))];
  expect(state([...early, told(A(16), at("12:00"))])).toBe(null);
  expect(state([stated("charging", at("12:54:59"))])).toBe(null);
  expect(state([stated("charging", at("12:55"))])).toBe("RUNNING_NORMAL");
  expect(state([measured("power", 11_000, at("12:05")), stated("finished", END)])).toBe("IDLE_NORMAL");
  expect(state([stated("error", at("12:05")), measured("power", 0, END)])).toBe("IDLE_NORMAL");
});

test("a setpoint that ended before does not curtail, one that ends with the window does", () => {
  expect(state([stated("charging", END), told(A(16), at("12:00"), at("12:30"))])).toBe("RUNNING_NORMAL");
  expect(state([stated("charging", END), told(A(16), at("12:00"), at("13:00"))])).toBe("RUNNING_CURTAILED");
});

test("a vehicle that left before the end has no operating state", () => {
  const left = { ...stated("unplugged", at("12:58")), vehicle: null };
  expect(state([stated("charging", at("12:57")), left])).toBe(null);
});

test("without readings there is no operating state", () => {
  expect(state([told(A(16), at("12:00"))])).toBe(null);
});
