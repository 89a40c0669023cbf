import { expect, test } from "vitest";

import { condense } from "../../../src/control/ingest/summary.ts";
import type { ControlState } from "../../../src/control/state.ts";
import { type KnownEvent, summaryOf } from "../../../src/domain/event.ts";
import { chargerId, millis } from "../../../src/domain/units.ts";
import { commandRecord } from "../../store/sqlite/words.ts";
import { aPicture } from "../../support/aPicture.ts";
import { anEvent, at, live } from "../../support/anEvent.ts";

const bay = chargerId("bay-01");
const known = live(anEvent({ randomizeStart: millis(0) }));

/** A picture of one event, from 05:00 to 06:00, and of what is stored of it. */
function aDepotOf(stored: KnownEvent | null): ControlState {
  const depot = aPicture({
    archive: {
      event: () => stored,
      summary: () => (stored === null ? null : summaryOf(stored, 700)),
    },
  });
  depot.schedule.put(known, at("05:10"));
  return depot;
}

const kind = (depot: ControlState) => depot.known.get(known.id)?.kind;

test("an event becomes a summary once it is over", () => {
  const depot = aDepotOf(known);
  condense(depot, at("05:59"));
  expect(kind(depot)).toBe("live");
  condense(depot, at("06:00"));
  expect(kind(depot)).toBe("over");
  expect(depot.known.whole(known.id)).toBe(known);
});

test("an event stays whole until its latest state is stored", () => {
  const unstored = aDepotOf(null);
  const older = aDepotOf(live(anEvent({ randomizeStart: millis(0), revision: at("03:00") })));
  for (const depot of [unstored, older]) {
    condense(depot, at("06:00"));
    expect([kind(depot), ...depot.schedule.dueForSummary(at("06:00:59"))]).toEqual(["live"]);
    condense(depot, at("06:01"));
    expect([kind(depot), ...depot.schedule.dueForSummary(at("06:01:59"))]).toEqual(["live"]);
    expect([...depot.schedule.dueForSummary(at("06:02"))]).toEqual([known.id]);
  }
});

test("an event stays whole while a charger follows it, or is held because of it", () => {
  const depot = aDepotOf(known);
  depot.commands.record(commandRecord("bay-01", 1));
  condense(depot, at("06:00"));
  expect(kind(depot)).toBe("live");
  const { command, ...rest } = commandRecord("bay-01", 2);
  depot.commands.record({ ...rest, command: { ...command, desired: { kind: "release" } } });
  depot.hold({ charger: bay, events: [known.id], since: at("05:20"), until: at("06:00") });
  condense(depot, at("06:01"));
  expect(kind(depot)).toBe("live");
  depot.endHold(bay);
  condense(depot, at("06:02"));
  expect(kind(depot)).toBe("over");
});

test("a forgotten event, or a summary, is not condensed again", () => {
  const depot = aDepotOf(known);
  depot.schedule.condenseLater(known.id, at("06:00"));
  condense(depot, at("06:00"));
  depot.schedule.condenseLater(known.id, at("06:00"));
  condense(depot, at("06:00"));
  depot.schedule.forget(known.id, at("06:00"));
  depot.schedule.condenseLater(known.id, at("06:00"));
  condense(depot, at("06:00"));
  expect([depot.known.size, depot.schedule.dueForSummary(at("23:59")).size]).toEqual([0, 0]);
});

test("F21: an event that was over only by a clock that was ahead is planned again from the disk", () => {
  const depot = aDepotOf(known);
  condense(depot, at("06:00"));
  expect(depot.schedule.replan(at("04:30"))).toEqual([]);
  expect([kind(depot), depot.agenda.size]).toEqual(["live", 1]);
  condense(depot, at("06:00"));
  expect(depot.schedule.replan(at("06:00"))).toEqual([]);
  expect(kind(depot)).toBe("over");
});

test("a stored event that cannot be read stays a summary when the clock is set back", () => {
  const depot = aPicture({ archive: { event: () => null, summary: () => summaryOf(known, 700) } });
  depot.schedule.condense(summaryOf(known, 700));
  depot.schedule.replan(at("04:30"));
  expect([kind(depot), depot.known.whole(known.id)]).toEqual(["over", null]);
});
