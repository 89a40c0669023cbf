import * as fc from "fast-check";
import { expect, test } from "vitest";

import { intake } from "../../../src/control/ingest/intake.ts";
import { type Dispatch, expand, fractionOf, startOffset } from "../../../src/control/schedule/expand.ts";
import type { KnownEvent } from "../../../src/domain/event.ts";
import {
  isOpenAt,
  type Instant,
  instant,
  millis,
  minutes,
  seconds,
  type VehicleId,
} from "../../../src/domain/units.ts";
import { aContext, SITE_KEY } from "../../support/aCharger.ts";
import { anEvent, at, live, targetsOf, withdrawn } from "../../support/anEvent.ts";

const FLEET = Array.from({ length: 200 }, (_, n) => `veh-${n}`);
const fleetEvent = (changes: Parameters<typeof anEvent>[0] = {}) =>
  anEvent({ targets: targetsOf(...FLEET), ...changes });
const fleet = aContext(FLEET);
const byVehicle = (dispatches: readonly Dispatch[]): ReadonlyMap<VehicleId, Dispatch> =>
  new Map(dispatches.map((dispatch) => [dispatch.vehicle, dispatch]));
/** Where the spread of an unplanned end at `when` puts a vehicle's release. */
const releaseAt = (event: Dispatch["event"], vehicle: VehicleId, when: Instant): number =>
  when + Math.floor(fractionOf(SITE_KEY, event, vehicle) * Math.min(event.randomizeStart, minutes(10)));

test("F58: every vehicle acts for the full duration, shifted by its own offset, so that releases are spread too", () => {
  const dispatches = expand(live(fleetEvent()), fleet);
  expect(dispatches).toHaveLength(FLEET.length);
  for (const { event, vehicle, offset, from, until } of dispatches) {
    expect(offset).toBe(startOffset(fractionOf(SITE_KEY, event, vehicle), minutes(10)));
    expect([from - at("05:00"), until - from]).toEqual([offset, minutes(60)]);
  }
  expect(new Set(dispatches.map(({ until }) => until)).size).toBeGreaterThan(190);
});

test("with clip every vehicle ends at start plus duration, and none starts later than that", () => {
  const event = fleetEvent({ duration: minutes(5) });
  const dispatches = expand(live(event), aContext(FLEET, { randomizedEnd: "clip" }));
  expect(dispatches).toHaveLength(FLEET.length);
  for (const { event, vehicle, offset, from, until } of dispatches) {
    expect(offset).toBe(startOffset(fractionOf(SITE_KEY, event, vehicle), minutes(5)));
    expect([from, until]).toEqual([at("05:00") + offset, at("05:05")]);
  }
});

test("with clip a vehicle whose start is the very end does not act", () => {
  const event = fleetEvent({ duration: millis(1) });
  const dispatches = expand(live(event), aContext(FLEET, { randomizedEnd: "clip" }));
  expect(dispatches.every(({ offset }) => offset === 0)).toBe(true);
  expect(dispatches.length).toBeLessThan(FLEET.length);
});

test("F28: without a spread all start at once, with one longer than the event they still act in full", () => {
  const at0 = expand(live(fleetEvent({ randomizeStart: millis(0) })), fleet);
  expect(at0.every(({ from, until }) => from === at("05:00") && until === at("06:00"))).toBe(true);
  const long = expand(live(fleetEvent({ randomizeStart: millis(86_399_000), duration: minutes(1) })), fleet);
  expect(long.every(({ from, until }) => until - from === minutes(1))).toBe(true);
});

test("F28: an event that arrives after its start keeps its offsets", () => {
  const early = expand(live(fleetEvent()), fleet);
  expect(expand(live(fleetEvent(), { receivedAt: at("05:30") }), fleet)).toEqual(early);
});

const setpointFor = (ask: Dispatch["event"]["ask"], powerUnit: "kW" | "W" = "kW") =>
  expand(live(anEvent({ ask })), aContext(["veh-214"], { powerUnit }))[0]?.setpoint;

test("currents are amperes, powers are kW or W as the site configures", () => {
  expect(setpointFor({ kind: "current", level: 16 })).toEqual({ kind: "current", amperes: 16 });
  expect(setpointFor({ kind: "power", level: 11 })).toEqual({ kind: "power", watts: 11_000 });
  expect(setpointFor({ kind: "power", level: 16.08 })).toEqual({ kind: "power", watts: 16_080 });
  expect(setpointFor({ kind: "power", level: -1.001 })).toEqual({ kind: "power", watts: -1_001 });
  expect(setpointFor({ kind: "power", level: 1e306 })).toEqual({ kind: "power", watts: Number.MAX_VALUE });
  expect(setpointFor({ kind: "power", level: -1e306 })).toEqual({ kind: "power", watts: -Number.MAX_VALUE });
  expect(setpointFor({ kind: "power", level: 11 }, "W")).toEqual({ kind: "power", watts: 11 });
});

test("F55 F57: unknown payload types and zero durations are never acted on", () => {
  expect(expand(live(anEvent({ ask: { kind: "unknown", payloadType: "Unknown" } })), aContext())).toEqual([]);
  expect(expand(live(anEvent({ duration: millis(0) })), aContext())).toEqual([]);
});

test("F57: an event at the end of all dates does not throw", () => {
  expect(expand(live(anEvent({ start: instant(8.64e15) })), aContext())).toEqual([]);
});

test("F53: a withdrawal releases each vehicle at its own moment of the next ten minutes, never later than its own end", () => {
  const event = fleetEvent({ randomizeStart: minutes(30) });
  for (const when of ["05:20", "06:20"]) {
    const before = byVehicle(expand(live(event), fleet));
    const ending = { revision: live(event).revision, at: at(when) };
    const after = byVehicle(expand(withdrawn(event, at(when), [ending]), fleet));
    for (const [vehicle, dispatch] of before) {
      const tail = after.get(vehicle);
      if (!isOpenAt(dispatch, at(when))) expect(tail).toBeUndefined();
      else if (tail === undefined) expect(releaseAt(event, vehicle, at(when))).toBe(dispatch.from);
      else {
        const until = Math.min(dispatch.until, releaseAt(event, vehicle, at(when)));
        const { offset, setpoint, from } = dispatch;
        const same = { event, vehicle, offset, setpoint, from, marks: 0 };
        expect(tail).toEqual({ ...same, until, cutAt: at(when) });
      }
    }
    expect(new Set([...after.values()].map(({ until }) => until)).size).toBeGreaterThan(30);
  }
});

/** What is left at `when` after an event that ran since 05:00 was changed then. */
function changedAt(when: string, changes: Parameters<typeof anEvent>[0], first = fleetEvent()) {
  const edited = fleetEvent({ revision: at(when), ...changes });
  const { known } = intake(
    live(first),
    { kind: "event", event: edited },
    { source: "webhook", at: at(when), askedAt: at(when) },
  );
  if (known === undefined) throw new Error("nothing known");
  return expand(known, fleet).filter((dispatch) => isOpenAt(dispatch, at(when)));
}

test.each([
  ["its targets are removed", { targets: targetsOf("foreign") }],
  ["its duration becomes zero", { duration: millis(0) }],
  ["its type becomes unknown", { ask: { kind: "unknown", payloadType: "X" } }],
  ["it is cut short to what has passed", { duration: minutes(10) }],
  ["it moves to tomorrow", { start: instant(at("05:00") + minutes(24 * 60)) }],
] as const)("F53: when %s in the middle, releases are spread", (_, changes) => {
  const left = changedAt("05:30", changes);
  for (const { event, vehicle, until, cutAt } of left) {
    expect([cutAt, until]).toEqual([at("05:30"), releaseAt(event, vehicle, at("05:30"))]);
  }
  expect(left.length).toBeGreaterThan(190);
  expect(new Set(left.map(({ until }) => until)).size).toBeGreaterThan(190);
});

test("F52: an edit of the level in the middle keeps every window and every other level", () => {
  const before = expand(live(fleetEvent()), fleet);
  const after = changedAt("05:30", { ask: { kind: "current", level: 10 } });
  expect(after.map(({ vehicle, from, until, cutAt }) => [vehicle, from, until, cutAt])).toEqual(
    before.map(({ vehicle, from, until }) => [vehicle, from, until, null]),
  );
});

test("a vehicle that is released because of an edit joins again at its start in the new revision", () => {
  const soon = { start: instant(at("05:30") + seconds(1)), randomizeStart: millis(0) };
  const left = changedAt("05:30", soon);
  expect(left.every(({ until }) => until <= soon.start)).toBe(true);
});

const VEHICLES = ["veh-1", "veh-2", "veh-3"];
const edit = fc.record({
  after: fc.integer({ min: 1, max: 500 }),
  start: fc.integer({ min: -600, max: 900 }),
  duration: fc.integer({ min: 0, max: 900 }),
  spread: fc.constantFrom(0, 60, 300, 1200),
  vehicles: fc.subarray(VEHICLES),
  ask: fc.constantFrom(
    { kind: "current", level: 16 } as const,
    { kind: "unknown", payloadType: "X" } as const,
  ),
});
type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never;
const randomizedEnd = fc.constantFrom("shift" as const, "clip" as const);

function revisionOf({ start, duration, spread, vehicles, ask }: Edit, when: Instant) {
  const from = instant(at("05:00") + seconds(start));
  return anEvent({
    revision: when,
    start: from,
    duration: seconds(duration),
    randomizeStart: seconds(spread),
    targets: targetsOf(...vehicles),
    ask,
  });
}

function history(
  edits: readonly (Edit | "withdrawn")[],
  seen: (known: KnownEvent, when: Instant) => void,
): void {
  let known: KnownEvent | undefined;
  let when = at("05:00");
  for (const step of edits) {
    when = instant(when + (step === "withdrawn" ? 20_000 : seconds(step.after)));
    const event = step === "withdrawn" ? null : revisionOf(step, when);
    const notice =
      event === null
        ? ({ kind: "deleted", id: anEvent().id, revision: null } as const)
        : ({ kind: "event", event } as const);
    known = intake(known, notice, { source: "webhook", at: when, askedAt: when }).known;
    if (known !== undefined) seen(known, when);
  }
}

test("after any edits of an event, each vehicle has at most one dispatch of it at a time", () => {
  const steps = fc.array(fc.oneof({ weight: 5, arbitrary: edit }, fc.constant("withdrawn" as const)), {
    maxLength: 6,
  });
  fc.assert(
    fc.property(steps, randomizedEnd, (edits, randomizedEnd) => {
      history(edits, (known) => {
        const sorted = expand(known, aContext(VEHICLES, { randomizedEnd })).toSorted(
          (a, b) => a.from - b.from,
        );
        for (const vehicle of VEHICLES) {
          const own = sorted.filter((dispatch) => dispatch.vehicle === vehicle);
          own.forEach(({ from, until }, index) => {
            expect(from).toBeLessThan(until);
            expect(from).toBeGreaterThanOrEqual(own[index - 1]?.until ?? -Infinity);
          });
        }
      });
    }),
    { numRuns: 500 },
  );
});

test("F53: after any edit, a vehicle that acts goes on, or is released at min(own end, T + u x min(R, 10 min))", () => {
  fc.assert(
    fc.property(
      fc.array(edit, { maxLength: 6 }),
      fc.boolean(),
      randomizedEnd,
      (edits, last, randomizedEnd) => {
        const context = aContext(VEHICLES, { randomizedEnd });
        /** What the vehicle is to be released from, as a person with a stopwatch would note it down. */
        const releases = new Map<string, { readonly until: number }>();
        let before: { readonly own: ReadonlyMap<string, Dispatch>; readonly since: Instant } | null = null;
        history(last ? [...edits, "withdrawn"] : edits, (known, when) => {
          const now =
            known.kind === "live"
              ? new Map(expand(live(known.revision.event), context).map((d) => [d.vehicle, d]))
              : null;
          for (const vehicle of VEHICLES) {
            const was = before?.own.get(vehicle);
            if (was !== undefined && before !== null && was.from <= when && before.since < was.until) {
              releases.delete(vehicle);
              if (when < was.until) {
                const release = releaseAt(was.event, was.vehicle, when);
                releases.set(vehicle, { until: Math.min(was.until, release) });
              }
            }
            const next = [...(now ?? [])].find(([id]) => id === vehicle)?.[1];
            const release = releases.get(vehicle)?.until ?? -Infinity;
            const found = expand(known, context).filter((dispatch) => dispatch.vehicle === vehicle);
            for (const moment of [
              when,
              ...found.flatMap(({ from, until }) => [from, until - 1, until]),
              release,
            ]) {
              if (moment < when) continue;
              const acts = next !== undefined && next.from <= moment && moment < next.until;
              const replaced = next !== undefined && when < next.until && next.from <= moment;
              const expected = acts || (moment < release && !replaced);
              expect(found.some((dispatch) => isOpenAt(dispatch, instant(moment)))).toBe(expected);
            }
          }
          before = { own: new Map(now ?? []), since: when };
        });
      },
    ),
    { numRuns: 500 },
  );
});
