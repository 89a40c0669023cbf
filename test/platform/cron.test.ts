import { afterEach, expect, onTestFinished, test, vi } from "vitest";

import { instant, iso } from "../../src/domain/units.ts";
import { cronTicks } from "../../src/platform/scheduling.ts";
import { advanceTo, startVirtualTime, virtualNow } from "../support/virtualTime.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** The moments of a schedule between two others, in UTC. */
async function ticks(
  expression: string,
  zone: string,
  from: string,
  until: string,
): Promise<readonly string[]> {
  startVirtualTime(from);
  const seen: string[] = [];
  const ticking = cronTicks(expression, zone).subscribe(() => seen.push(iso(virtualNow()).slice(0, 16)));
  onTestFinished(() => ticking.unsubscribe());
  await advanceTo(instant(Date.parse(until)));
  return seen;
}

test("a schedule is kept in the site's zone", async () => {
  expect(await ticks("5 13 * * *", "Europe/Oslo", "2026-11-20T00:00:00Z", "2026-11-22T00:00:00Z")).toEqual([
    "2026-11-20T12:05",
    "2026-11-21T12:05",
  ]);
});

test("a schedule by the hour misses no hour that the clock skips in spring, and takes the one it repeats in autumn once (F25)", async () => {
  const spring = await ticks("2 * * * *", "Europe/Oslo", "2026-03-29T00:00:00Z", "2026-03-29T04:00:00Z");
  expect(spring.map((at) => at.slice(11))).toEqual(["00:02", "01:02", "02:02", "03:02"]);
  vi.useRealTimers();
  const autumn = await ticks("2 * * * *", "Europe/Oslo", "2026-10-24T23:00:00Z", "2026-10-25T04:00:00Z");
  expect(autumn.map((at) => at.slice(11))).toEqual(["23:02", "01:02", "02:02", "03:02"]);
});

test("a run that was due while the machine slept is made up for when it wakes", async () => {
  startVirtualTime("2026-11-21T12:00:00Z");
  let seen = 0;
  const ticking = cronTicks("2 * * * *", "UTC").subscribe(() => (seen += 1));
  onTestFinished(() => ticking.unsubscribe());
  vi.setSystemTime(Date.parse("2026-11-21T12:30:00Z"));
  await advanceTo(instant(Date.parse("2026-11-21T12:50:00Z")));
  expect(seen).toBe(1);
});

test("nothing ticks after the end", async () => {
  startVirtualTime("2026-11-21T12:00:00Z");
  let seen = 0;
  cronTicks("* * * * *", "UTC")
    .subscribe(() => (seen += 1))
    .unsubscribe();
  await advanceTo(instant(Date.parse("2026-11-21T13:00:00Z")));
  expect(seen).toBe(0);
});
