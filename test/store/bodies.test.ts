import * as fc from "fast-check";
import { expect, test } from "vitest";

import { intake } from "../../src/control/ingest/intake.ts";
import type { ReportDescriptor, KnownEvent } from "../../src/domain/event.ts";
import { instant } from "../../src/domain/units.ts";
import { eventBody, readEventBody } from "../../src/store/bodies.ts";
import { anEvent, at, live, targetsOf, withdrawn } from "../support/anEvent.ts";

const fleet = Array.from({ length: 20_000 }, (_, index) => `vehicle-${String(index).padStart(12, "0")}`);

/** An event for the fleet after so many edits, one a second. `targets`: those of an edit. */
function edited(edits: number, targets: (edit: number) => readonly string[] = () => fleet): KnownEvent {
  let known: KnownEvent = live(anEvent({ targets: targetsOf(...targets(0)) }));
  for (let edit = 1; edit <= edits; edit += 1) {
    const when = instant(at("05:10") + edit * 1000);
    const event = anEvent({
      revision: when,
      targets: targetsOf(...targets(edit)),
      ask: { kind: "current", level: 6 + edit },
    });
    known = intake(known, { kind: "event", event }, { source: "webhook", at: when, askedAt: when })
      .known as KnownEvent;
  }
  return known;
}

test("the 33rd edit of an event for 20,000 vehicles stores hardly more than its first revision", () => {
  const [first, last] = [edited(0), edited(33)];
  expect(last.endings).toHaveLength(32);
  expect(eventBody(last).length).toBeLessThan(1.1 * eventBody(first).length);
});

/** A hundred vehicles out, and one in. */
const changedFleet = (edit: number): readonly string[] => [
  ...fleet.filter((_, index) => index % 200 !== edit),
  `extra-${edit}`,
];

test("edits that each take a hundred vehicles out and put one in store little more", () => {
  const last = edited(33, changedFleet);
  expect(eventBody(last).length).toBeLessThan(1.5 * eventBody(edited(0)).length);
  expect(readEventBody(eventBody(last))).toEqual(last);
});

test("an event without revisions that still end is stored as it is", () => {
  const known = live(anEvent());
  expect(JSON.parse(eventBody(known))).toEqual(known);
});

test("an edited event that an earlier version stored whole is read", () => {
  const known = edited(3, () => ["veh-1", "veh-2"]);
  expect(readEventBody(JSON.stringify(known))).toEqual(known);
});

test("revisions with the same targets share one list when they are read", () => {
  const { endings } = readEventBody(eventBody(edited(2, () => ["veh-1"])));
  expect(endings[0]?.revision.event.targets).toBe(endings[1]?.revision.event.targets);
});

const values = fc.array(fc.constantFrom("veh-1", "veh-2", "veh-3", "veh-4", "veh-5"), { maxLength: 8 });
const targets = fc.array(fc.record({ type: fc.constantFrom("vehicle", "group"), values }), { maxLength: 3 });
const reports = fc.array(
  targets.map((of): ReportDescriptor => ({
    payloadType: "USAGE",
    readingType: "DIRECT_READ",
    targets: of,
    aggregate: false,
    historical: true,
    frequency: null,
    numIntervals: null,
    repeat: 1,
    startInterval: null,
  })),
  { maxLength: 2 },
);
const revision = fc
  .record({ targets, reports, name: fc.string() })
  .map((changes) => ({ event: anEvent(changes), start: at("05:00") }));

test("any event is read back as it was stored", () => {
  fc.assert(
    fc.property(fc.array(revision, { maxLength: 4 }), revision, fc.boolean(), (earlier, last, isLive) => {
      const endings = earlier.map((one, index) => ({
        revision: one,
        at: instant(at("05:10") + index),
      }));
      const known = isLive ? live(last.event, { endings }) : withdrawn(last.event, at("05:20"), endings);
      expect(readEventBody(eventBody(known))).toEqual(known);
    }),
  );
});
