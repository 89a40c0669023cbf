import { array, assert, integer, property, tuple } from "fast-check";
import { describe, expect, test } from "vitest";

import type { AllowedStretch } from "../../src/control/decide/ahead.ts";
import { deliver, forecast, NOT_PLUGGED_IN, type Situation } from "../../src/departures/forecast.ts";
import { after, eventId, instant, iso, minutes } from "../../src/domain/units.ts";
import { aLevelHold } from "../support/aHold.ts";

const NOW = instant(Date.parse("2026-11-23T01:00:00Z"));
const later = (mins: number) => after(NOW, minutes(mins));
const clock = (at: number) => iso(instant(at)).slice(11, 16);
const LEAVES = { at: later(240), need: { kind: "energy", wh: 40_000 } } as const;

const plugged: Situation = {
  remainingWh: 20_000,
  missing: [],
  isFinished: false,
  obstacle: null,
  drawsW: null,
  mostW: 11_000,
  bands: [],
};
const stretch = (from: number, until: number, allowedW: number, more: Partial<AllowedStretch> = {}) => ({
  from: later(from),
  until: later(until),
  allowedW,
  withoutEventsW: 11_000,
  event: null,
  hold: null,
  ...more,
});
const byEvent = (from: number, until: number, allowedW: number, event = "EV-1") =>
  stretch(from, until, allowedW, { event: eventId(event) });
const DAY = 1_680;
const found = (situation: Partial<Situation>, ...stretches: AllowedStretch[]) => {
  const { state, readyAt, shortWh, cause, because } = forecast(
    LEAVES,
    { ...plugged, ...situation },
    stretches,
    clock,
  );
  return {
    state,
    readyAt: readyAt === null ? null : clock(readyAt),
    short: shortWh === null ? null : Math.round(shortWh),
    cause,
    because,
  };
};

describe("a departure", () => {
  test("is on time when less is missing than a meter's error, although nothing is delivered any more", () => {
    expect(found({ remainingWh: 40 }, stretch(0, DAY, 0))).toMatchObject({
      state: "onTime",
      readyAt: null,
      because: "ready 05:00, it leaves 05:00",
    });
  });

  test("is on time when the plan delivers what is missing before it", () => {
    expect(found({}, stretch(0, DAY, 10_000))).toEqual({
      state: "onTime",
      readyAt: "03:00",
      short: null,
      cause: null,
      because: "ready 03:00, it leaves 05:00",
    });
  });

  test("is ready when nothing is missing, or when the vehicle has ended charging by itself", () => {
    expect(found({ remainingWh: 0 })).toMatchObject({ state: "ready", because: "it has what it needs" });
    expect(found({ isFinished: true })).toMatchObject({ state: "ready", cause: null });
  });

  test("with a state of charge is short when the vehicle ended charging below it", () => {
    const need = { kind: "soc", percent: 80 } as const;
    const stretches = [stretch(0, DAY, 10_000)];
    expect(forecast({ ...LEAVES, need }, { ...plugged, isFinished: true }, stretches, clock)).toMatchObject({
      state: "short",
      shortWh: 20_000,
      readyAt: null,
      cause: "vehicle",
    });
  });

  test("names what is not known, and who is not there", () => {
    expect(found({ remainingWh: null, missing: ["the state of charge"] })).toEqual({
      state: "unknown",
      readyAt: null,
      short: null,
      cause: null,
      because: "not known: the state of charge",
    });
    expect(found({ remainingWh: null, missing: [NOT_PLUGGED_IN] })).toMatchObject({ cause: "notPluggedIn" });
  });

  test("is short because of the events without which it would be on time", () => {
    expect(found({}, byEvent(0, 300, 4_000), stretch(300, DAY, 11_000))).toEqual({
      state: "short",
      readyAt: "06:00",
      short: 4_000,
      cause: "event",
      because: "4 kWh short at 05:00, ready 06:00: event EV-1 allows 4 kW until 06:00",
    });
    const many = [0, 1, 2, 3, 4].map((n) => byEvent(n * 60, n * 60 + 60, 1_000, `EV-${n}`));
    expect(found({}, ...many, stretch(300, DAY, 11_000)).because).toContain(
      "EV-2 allows 1 kW until 04:00 and 1 more",
    );
    expect(found({}, stretch(0, DAY, 1_000)).because).toContain("the level after an event is too low");
  });

  test("is short because of a hold that would not let it be on time even without events", () => {
    const hold = aLevelHold({ id: "hold-7-1", by: "anna" });
    const held = { withoutEventsW: 4_000, hold };
    expect(found({}, stretch(0, DAY, 4_000, held))).toMatchObject({
      cause: "hold",
      because: "4 kWh short at 05:00, ready 06:00: an override of anna allows 4 kW",
    });
    const both = [
      stretch(0, 60, 11_000, { withoutEventsW: 4_000, hold: null }),
      stretch(60, DAY, 0, { withoutEventsW: 0 }),
    ];
    expect(found({}, ...both)).toMatchObject({
      cause: "hold",
      because: expect.stringContaining("too little"),
    });
  });

  test("is short because of the vehicle when it draws less than it may", () => {
    expect(found({ drawsW: 3_000 }, stretch(0, DAY, 11_000))).toMatchObject({
      short: 8_000,
      cause: "vehicle",
      because:
        "8 kWh short at 05:00, ready 07:40: the vehicle draws 3 kW of the 11 kW of charger and vehicle",
    });
    expect(found({ drawsW: 0 }, stretch(0, DAY, 11_000))).toMatchObject({
      readyAt: null,
      short: 20_000,
      because: expect.stringContaining("draws nothing of the 11 kW"),
    });
  });

  test("is short because of the charger when that reports an error, and because of the time otherwise", () => {
    expect(found({ obstacle: "bay-01 reports an error" }, stretch(0, DAY, 11_000))).toMatchObject({
      cause: "charger",
      readyAt: null,
    });
    expect(found({ remainingWh: 60_000 }, stretch(0, DAY, 11_000))).toMatchObject({
      cause: "time",
      because: "16 kWh short at 05:00, ready 06:27: it needs 60 kWh, more than 11 kW gives by then",
    });
  });
});

const anyStretches = array(tuple(integer({ min: 1, max: 200 }), integer({ min: 0, max: 22_000 })), {
  maxLength: 12,
}).map((parts) => {
  let at = 0;
  return parts.map(([span, watts]) => {
    at += span;
    return stretch(at - span, at, watts);
  });
});

test("the energy before a departure reaches what is wanted exactly when the moment of readiness is before it", () => {
  assert(
    property(anyStretches, integer({ min: 1, max: 50_000 }), (stretches, wanted) => {
      const { wh, readyAt } = deliver(stretches, ({ allowedW }) => allowedW, wanted, later(240));
      if (readyAt === null) expect(wh).toBeLessThan(wanted);
      else {
        const upTo = deliver(stretches, ({ allowedW }) => allowedW, wanted, readyAt).wh;
        expect(upTo).toBeGreaterThanOrEqual(wanted - 0.01);
        expect(readyAt <= later(240)).toBe(wh >= wanted - 0.01);
      }
    }),
  );
});

test("a vehicle that draws less is never ready earlier, nor less short", () => {
  assert(
    property(anyStretches, integer({ min: 0, max: 11_000 }), (stretches, drawsW) => {
      const free = forecast(LEAVES, plugged, stretches, clock);
      const capped = forecast(LEAVES, { ...plugged, drawsW }, stretches, clock);
      expect(capped.shortWh ?? 0).toBeGreaterThanOrEqual((free.shortWh ?? 0) - 0.01);
      expect(capped.readyAt ?? Infinity).toBeGreaterThanOrEqual(free.readyAt ?? Infinity);
    }),
  );
});
