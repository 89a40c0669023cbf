import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";

import { condense } from "../../../src/control/ingest/summary.ts";
import type { ControlState } from "../../../src/control/state.ts";
import { type EventArchive, type KnownEvent, summaryOf } from "../../../src/domain/event.ts";
import { chargerId, millis } from "../../../src/domain/units.ts";
import { commandRecord } from "../../store/sqlite/words.ts";
import { aPicture, NOTHING_STORED } from "../../support/aPicture.ts";
import { aRelease } from "../../support/aHold.ts";
import { anEvent, at, live } from "../../support/anEvent.ts";

const bay = chargerId("bay-01");
const known = live(anEvent({ randomizeStart: millis(0) }));

/** A picture of one event, from 05:00 to 06:00, and of what is stored of it. */
function aDepotOf(stored: KnownEvent | null, over: Partial<EventArchive> = {}): ControlState {
  const depot = aPicture({
    archive: {
      whole: async () => new Map(stored === null ? [] : [[known.id, stored]]),
      summaries: async () => new Map(stored === null ? [] : [[known.id, summaryOf(stored, 700)]]),
      ...over,
    },
  });
  depot.schedule.put(known, at("05:10"));
  return depot;
}

/** As after a step back of the clock. */
const replanned = (depot: ControlState, time: string) =>
  depot.known.withWhole(
    () => depot.known.openAgain(at(time)),
    (read) => depot.schedule.replan(at(time), read),
  );

const kind = (depot: ControlState) => depot.known.get(known.id)?.kind;

test("an event becomes a summary once it is over", async () => {
  const depot = aDepotOf(known);
  await condense(depot, at("05:59"));
  expect(kind(depot)).toBe("live");
  await condense(depot, at("06:00"));
  expect(kind(depot)).toBe("over");
  expect(await depot.known.readWhole(known.id)).toBe(known);
});

const away = async (): Promise<never> => {
  throw new Error("the database is away");
};

test("a person gets the reason why a stored event cannot be read now; control waits for it", async () => {
  const waiting = new Promise<never>(() => {});
  const depot = aDepotOf(known, { whole: () => waiting, wholeNow: away });
  await condense(depot, at("06:00"));
  await expect(depot.known.readNow(known.id)).rejects.toThrow("the database is away");
  expect(await Promise.race([depot.known.readWhole(known.id), nextTurn("it waits")])).toBe("it waits");
  const stored = aDepotOf(known);
  await condense(stored, at("06:00"));
  expect(await stored.known.readNow(known.id)).toBe(known);
});

test("an event stays whole until its latest state is stored", async () => {
  const unstored = aDepotOf(null);
  const older = aDepotOf(live(anEvent({ randomizeStart: millis(0), revision: at("03:00") })));
  for (const depot of [unstored, older]) {
    await condense(depot, at("06:00"));
    expect([kind(depot), ...depot.schedule.dueForSummary(at("06:00:59"))]).toEqual(["live"]);
    await condense(depot, at("06:01"));
    expect([kind(depot), ...depot.schedule.dueForSummary(at("06:01:59"))]).toEqual(["live"]);
    expect([...depot.schedule.dueForSummary(at("06:02"))]).toEqual([known.id]);
  }
});

test("an event stays whole while a charger follows it, or is held because of it", async () => {
  const depot = aDepotOf(known);
  depot.commands.record(commandRecord("bay-01", 1));
  await condense(depot, at("06:00"));
  expect(kind(depot)).toBe("live");
  const { command, ...rest } = commandRecord("bay-01", 2);
  depot.commands.record({ ...rest, command: { ...command, desired: { kind: "release" } } });
  const hold = aRelease(bay, [known.id]);
  depot.holds.put(hold);
  await condense(depot, at("06:01"));
  expect(kind(depot)).toBe("live");
  depot.holds.delete(hold.id);
  await condense(depot, at("06:02"));
  expect(kind(depot)).toBe("over");
});

test("a forgotten event, or a summary, is not condensed again", async () => {
  const depot = aDepotOf(known);
  depot.schedule.condenseLater(known.id, at("06:00"));
  await condense(depot, at("06:00"));
  depot.schedule.condenseLater(known.id, at("06:00"));
  await condense(depot, at("06:00"));
  depot.schedule.forget(known.id, at("06:00"));
  depot.schedule.condenseLater(known.id, at("06:00"));
  await condense(depot, at("06:00"));
  expect([depot.known.size, depot.schedule.dueForSummary(at("23:59")).size]).toEqual([0, 0]);
});

test("F21: an event that was over only by a clock that was ahead is planned again from the disk", async () => {
  const depot = aDepotOf(known);
  await condense(depot, at("06:00"));
  expect(await replanned(depot, "04:30")).toEqual([]);
  expect([kind(depot), depot.agenda.size]).toEqual(["live", 1]);
  await condense(depot, at("06:00"));
  expect(await replanned(depot, "06:00")).toEqual([]);
  expect(kind(depot)).toBe("over");
});

test("a stored event that cannot be read stays a summary when the clock is set back", async () => {
  const depot = aPicture({ archive: NOTHING_STORED });
  depot.schedule.condense(summaryOf(known, 700));
  await replanned(depot, "04:30");
  expect([kind(depot), await depot.known.readWhole(known.id)]).toEqual(["over", null]);
});

test("an event that changes, or is followed again, while the store is asked stays whole", async () => {
  const changed = aDepotOf(known);
  const asked = condense(changed, at("06:00"));
  changed.schedule.put(live(anEvent({ randomizeStart: millis(0), start: at("06:30") })), at("06:00"));
  await asked;
  expect([kind(changed), ...changed.schedule.dueForSummary(at("07:30"))]).toEqual(["live", known.id]);
  const followed = aDepotOf(known);
  const condensing = condense(followed, at("06:00"));
  followed.commands.record(commandRecord("bay-01", 1));
  await condensing;
  expect([kind(followed), ...followed.schedule.dueForSummary(at("06:01"))]).toEqual(["live", known.id]);
});

test("an event that is over is read again where its state changed during the read", async () => {
  const depot = aDepotOf(known);
  await condense(depot, at("06:00"));
  const steps: number[] = [];
  const wanted = () => depot.known.openAgain(at("04:30"));
  const step = depot.known.withWhole(wanted, (read) => steps.push(read.size));
  const again = summaryOf(known, 800);
  depot.schedule.condense(again);
  await step;
  expect([steps, depot.known.get(known.id)]).toEqual([[2], again]);
});
