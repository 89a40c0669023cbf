import { runToEnd } from "../../../src/platform/cooperative.ts";
import * as fc from "fast-check";
import { expect, test } from "vitest";

import { type EventNotice, intake } from "../../../src/control/ingest/intake.ts";
import { type Dispatch, expand } from "../../../src/control/schedule/expand.ts";
import { Expansions } from "../../../src/control/schedule/agenda.ts";
import { clampToNow, type KnownEvent } from "../../../src/domain/event.ts";
import { type Instant, instant, millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import { aVehicle, settingsWith, SITE_KEY } from "../../support/aCharger.ts";
import { anEvent, at, live, targetsOf } from "../../support/anEvent.ts";

const fleet = ["v1", "v2", "v3", "v4"];
const context = {
  siteKey: SITE_KEY,
  vehicles: new Map(fleet.map((id) => [vehicleId(id), aVehicle({ id })])),
  settings: settingsWith(),
};

const inOrder = (dispatches: readonly Dispatch[]): readonly Dispatch[] =>
  dispatches.toSorted((a, b) => a.vehicle.localeCompare(b.vehicle) || a.from - b.from);

/** So long after the one before: an edit, a withdrawal, the same event read from disk, or a clock that was set back. */
const step = fc.record({
  after: fc.oneof(fc.nat(90), fc.nat(1500)),
  kind: fc.constantFrom("edit", "edit", "edit", "edit", "withdrawn", "read again", "set back"),
  vehicles: fc.subarray(fleet),
  start: fc.integer({ min: -20, max: 20 }),
  duration: fc.integer({ min: 0, max: 60 }),
  spread: fc.constantFrom(0, 5, 15),
  level: fc.integer({ min: 6, max: 32 }),
});

test("an event that is edited again and again expands as from its stored revisions", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 45 }), (steps) => {
      const expansions = new Expansions();
      let known: KnownEvent | undefined;
      let now = at("05:00");
      for (const [index, wish] of steps.entries()) {
        now = instant(now + wish.after * 1000);
        known = next(known, wish, now, index);
        expect(inOrder(runToEnd(expansions.expanding(known, context)))).toEqual(
          inOrder(expand(known, context)),
        );
      }
    }),
  );
});

type Wish = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

function next(known: KnownEvent | undefined, wish: Wish, now: Instant, index: number): KnownEvent {
  if (known !== undefined && wish.kind === "read again") return structuredClone(known);
  if (known !== undefined && wish.kind === "set back") return clampToNow(known, instant(now - 100_000));
  const revision = instant(at("04:00") + index);
  const event = anEvent({
    revision,
    start: instant(at("05:10") + minutes(wish.start)),
    duration: minutes(wish.duration),
    randomizeStart: minutes(wish.spread),
    ask: { kind: "current", level: wish.level },
    targets: targetsOf(...wish.vehicles, "elsewhere"),
  });
  const notice: EventNotice =
    wish.kind === "withdrawn" ? { kind: "deleted", id: event.id, revision } : { kind: "event", event };
  return intake(known, notice, { source: "webhook", at: now, askedAt: now }).known ?? live(event);
}

test("the 33rd edit expands its own revision only", () => {
  const expansions = new Expansions();
  let known: KnownEvent = live(anEvent({ randomizeStart: millis(0), targets: targetsOf(...fleet) }));
  expansions.expanding(known, context);
  let readings = 0;
  for (let edit = 1; edit <= 33; edit += 1) {
    const when = instant(at("05:10") + edit * 1000);
    const targets = { type: "vehicle", values: fleet };
    Object.defineProperty(targets, "values", {
      enumerable: true,
      get: () => {
        readings += 1;
        return [...fleet, `elsewhere-${edit}`];
      },
    });
    const event = { ...anEvent({ revision: when, randomizeStart: millis(0) }), targets: [targets] };
    known = intake(known, { kind: "event", event }, { source: "webhook", at: when, askedAt: when })
      .known as KnownEvent;
    readings = 0;
    runToEnd(expansions.expanding(known, context));
    expect(readings).toBe(1);
  }
});

test("few expansions are kept in memory", () => {
  const expansions = new Expansions();
  const events = ["EV-1", "EV-2", "EV-3", "EV-4", "EV-5"].map((id) => live(anEvent({ id })));
  for (const event of [...events, ...events])
    expect(runToEnd(expansions.expanding(event, context))).toEqual(expand(event, context));
});
