import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { fractionOf, startOffset } from "../../../src/control/schedule/expand.ts";
import { millis, minutes, seconds, vehicleId } from "../../../src/domain/units.ts";
import { SITE_KEY } from "../../support/aCharger.ts";
import { anEvent } from "../../support/anEvent.ts";

const vehicle = vehicleId("veh-214");

test("F28: the offset is a whole millisecond from zero to the spread, both ends reachable", () => {
  const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fraction, fc.nat(10 * 86_400_000), (u, spread) => {
      const offset = startOffset(u, millis(spread));
      expect(Number.isInteger(offset) && offset >= 0 && offset <= spread).toBe(true);
    }),
  );
  expect([
    startOffset(0, millis(9)),
    startOffset(1 - 2 ** -48, millis(9)),
    startOffset(0.99, millis(0)),
  ]).toEqual([0, 9, 0]);
});

test("the fraction is the first 48 bits of an HMAC-SHA256 of event, vehicle, start and spread", () => {
  const event = anEvent({ wireStart: "2026-11-21T05:00:00.000Z" });
  const seed = '["EV-7731","veh-214","2026-11-21T05:00:00.000Z",600000]';
  const bits = createHmac("sha256", SITE_KEY).update(seed).digest("hex").slice(0, 12);
  expect(fractionOf(SITE_KEY, event, vehicle)).toBe(Number.parseInt(bits, 16) / 2 ** 48);
});

test("F52: edits that leave start and spread alone keep every offset", () => {
  const before = fractionOf(SITE_KEY, anEvent(), vehicle);
  const edited = anEvent({ priority: 7, duration: minutes(5), ask: { kind: "power", level: 4 }, name: "x" });
  expect(fractionOf(SITE_KEY, edited, vehicle)).toBe(before);
});

test("another site, event, vehicle, start or spread gives another offset", () => {
  const fractions = [
    fractionOf(SITE_KEY, anEvent(), vehicle),
    fractionOf(new Uint8Array(32), anEvent(), vehicle),
    fractionOf(SITE_KEY, anEvent({ id: "EV-7732" }), vehicle),
    fractionOf(SITE_KEY, anEvent(), vehicleId("veh-215")),
    fractionOf(SITE_KEY, anEvent({ wireStart: "x" }), vehicle),
    fractionOf(SITE_KEY, anEvent({ randomizeStart: seconds(601) }), vehicle),
  ];
  expect(new Set(fractions).size).toBe(fractions.length);
});

test("an event without a random start computes no hash: all vehicles start with it", () => {
  const event = anEvent({ randomizeStart: millis(0) });
  const fractions = ["veh-1", "veh-2", "veh-3"].map((id) => fractionOf(SITE_KEY, event, vehicleId(id)));
  expect(fractions).toEqual([0, 0, 0]);
});

test("over 10,000 vehicles the offsets are uniform (Kolmogorov-Smirnov, 1 % level), in several events", () => {
  const count = 10_000;
  for (const id of ["EV-1", "EV-2", "EV-3"]) {
    const event = anEvent({ id });
    const sorted = Array.from(
      { length: count },
      (_, n) =>
        startOffset(fractionOf(SITE_KEY, event, vehicleId(`veh-${n}`)), event.randomizeStart) / 600_000,
    ).toSorted((a, b) => a - b);
    const distance = sorted.reduce(
      (most, u, index) => Math.max(most, u - index / count, (index + 1) / count - u),
      0,
    );
    expect(distance).toBeLessThan(1.6276 / Math.sqrt(count));
  }
});
