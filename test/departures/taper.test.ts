import { assert, double, integer, property } from "fast-check";
import { expect, test } from "vitest";

import { deliver, slowerBy, taper } from "../../src/departures/forecast.ts";
import { after, hours, instant } from "../../src/domain/units.ts";

const NOW = instant(Date.parse("2026-11-23T01:00:00Z"));
const FULL = 20_000;
const battery = { soc: 70, capacityWh: 100_000, powerW: FULL, mostW: FULL } as const;
const all = [
  {
    from: NOW,
    until: after(NOW, hours(100)),
    allowedW: FULL,
    withoutEventsW: FULL,
    event: null,
    hold: null,
  },
];
const hoursFor = (wh: number, bands = taper(battery)): number => {
  const { readyAt } = deliver(all, () => FULL, wh, after(NOW, hours(100)), bands);
  return ((readyAt ?? NaN) - NOW) / 3_600_000;
};

test("charging goes on at full power to 80 %, and slows down to a fifth at 100 %", () => {
  const bands = taper(battery);
  expect(bands[0]).toEqual({ untilWh: 10_000, mostW: FULL });
  expect(bands.at(-1)?.untilWh).toBeCloseTo(30_000);
  expect(bands.at(-1)?.mostW).toBeCloseTo(FULL * 0.24);
  expect(hoursFor(10_000)).toBeCloseTo(0.5, 3);
  expect(hoursFor(30_000)).toBeGreaterThan(2);
  expect(hoursFor(30_000)).toBeLessThan(2.6);
});

test("energy beyond 100 % comes as slowly as the last part", () => {
  expect(hoursFor(32_000) - hoursFor(30_000)).toBeCloseTo(2_000 / (FULL * 0.24), 2);
});

test("a vehicle that draws more than that at its state of charge keeps its lead", () => {
  const [first] = taper({ ...battery, soc: 90 });
  const [slower] = taper({ ...battery, soc: 90, powerW: 0 });
  expect(first?.mostW).toBeGreaterThan(FULL * 0.9);
  expect(slower?.mostW).toBeCloseTo(FULL * 0.56);
  expect(taper({ ...battery, soc: 90, powerW: null })).toEqual(taper({ ...battery, soc: 90, powerW: 0 }));
});

test.each([{ soc: null }, { capacityWh: null }, { mostW: Infinity }])(
  "nothing is known with %j",
  (missing) => {
    expect(taper({ ...battery, ...missing })).toEqual([]);
  },
);

test("a full battery has no part left", () => {
  expect(taper({ ...battery, soc: 100 })).toEqual([]);
});

test("the time that the slower end costs is that of the delivery, and never negative", () => {
  assert(
    property(
      double({ min: 0, max: 99, noNaN: true }),
      integer({ min: 1, max: 40_000 }),
      integer({ min: 0, max: FULL }),
      (soc, wh, powerW) => {
        const bands = taper({ ...battery, soc, powerW });
        const wanted = Math.min(wh, ((100 - soc) / 100) * battery.capacityWh);
        const slower = slowerBy(bands, wanted, FULL);
        expect(slower).toBeGreaterThanOrEqual(0);
        expect(hoursFor(wanted, bands)).toBeCloseTo(wanted / FULL + slower, 2);
      },
    ),
  );
});
