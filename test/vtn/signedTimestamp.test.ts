import { expect, test } from "vitest";
import { instant, minutes, seconds } from "../../src/domain/units.ts";
import { formatAge, isFresh, readSignedAt } from "../../src/vtn/signature.ts";

const now = instant(Date.UTC(2026, 10, 21, 12));

test("the moment of signing is read in every usual form, and never guessed", () => {
  for (const text of [String(now / 1000), String(now), "2026-11-21T12:00:00Z", "2026-11-21T12:00:00"])
    expect(readSignedAt(text), text).toBe(now);
  for (const text of ["", "soon", "-1", "1e9", "0x1", `${now}00`, "1795262400.5", "12:00", " 1795262400"])
    expect(readSignedAt(text), text).toBeNull();
});

test("the largest age of a signature is still accepted, and so is the largest lead", () => {
  const limits = { oldest: minutes(5), earliest: seconds(60) };
  for (const [ms, fresh] of [
    [300_000, true],
    [300_001, false],
    [-60_000, true],
    [-60_001, false],
  ] as const)
    expect(isFresh(now, instant(now + ms), limits), String(ms)).toBe(fresh);
});

test("an age is given in seconds, with its direction", () => {
  expect(formatAge(now, instant(now + 310_400))).toBe("310 s ago");
  expect(formatAge(now, instant(now - 70_000))).toBe("70 s ahead of our clock");
});
