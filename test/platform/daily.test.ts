import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { daily } from "../../src/platform/scheduling.ts";
import { instant, iso } from "../../src/domain/units.ts";
import { advanceTo, startVirtualTime, virtualNow } from "../support/virtualTime.ts";

beforeEach(() => startVirtualTime("2026-11-21T10:00:00Z"));
afterEach(() => vi.useRealTimers());

test("a daily run comes at once, then once a day, and at the next nap where the clock was set over a day", async () => {
  const rings: string[] = [];
  const ringing = daily(virtualNow).subscribe((at) => rings.push(iso(at).slice(0, 16)));
  await advanceTo(instant(Date.parse("2026-11-23T10:30:00Z")));
  expect(rings).toEqual(["2026-11-21T10:00", "2026-11-22T10:00", "2026-11-23T10:00"]);
  vi.setSystemTime(Date.parse("2027-01-01T00:00:00Z"));
  await advanceTo(instant(Date.parse("2027-01-01T00:02:00Z")));
  expect(rings.slice(3).map((at) => at.slice(0, 10))).toEqual(["2027-01-01"]);
  ringing.unsubscribe();
});
