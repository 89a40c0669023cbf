import { expect, test } from "vitest";

import { aDay, asked, time } from "./aDay.ts";
import { type Action, type Day, MINUTE, type PlannedReport } from "./plan.ts";
import { forgottenOutbox } from "./plants.ts";
import { playDay } from "./playDay.ts";

const once: PlannedReport = { payloadType: "USAGE", historical: true, numIntervals: -1, repeat: 0 };
const quarterly = { ...once, numIntervals: 1, repeat: -1 };

/** Reports are made on this day. */
function reporting(...actions: readonly Action[]): Day {
  const day = aDay(actions);
  return { ...day, knobs: { ...day.knobs, reports: true } };
}

const tray = (how: (Action & { kind: "tray" })["how"], at: string, minutes: number): Action => ({
  kind: "tray",
  at: time(at),
  how,
  lasts: minutes * MINUTE,
});
const crash = (at: string): Action => ({ kind: "crash", at: time(at), point: "at once", downFor: 1_000 });

/** An event from eight to nine, a partner that takes no report until a quarter past, and a crash in between. */
const refused = reporting(
  asked("E1", "08:00", "09:00", { reports: [once, quarterly] }),
  tray("error", "08:20", 55),
  crash("09:05"),
);

test("F43 L3: what the partner did not take is tried again, also after a crash, and all of it is sent in the end", async () => {
  const { failure, reported } = await playDay(refused);
  expect(failure).toBeNull();
  expect(reported[0]).toBe("08:15:30 E1/1/0");
  const inTheEnd = reported.filter((line) => line >= "09:15").map((line) => line.slice(9));
  expect(inTheEnd.toSorted()).toEqual(["E1/0/0", "E1/1/1", "E1/1/2", "E1/1/3"]);
  expect(reported.length).toBeLessThan(40);
});

test("F01 F43: a report whose answer was lost is the same when it comes again", async () => {
  const { failure, reported } = await playDay(
    reporting(asked("E1", "08:00", "09:00", { reports: [once] }), tray("lost", "08:55", 6), {
      kind: "crash",
      at: time("09:00:31"),
      point: "at once",
      downFor: 1_000,
    }),
  );
  expect(failure).toBeNull();
  expect(reported.length).toBeGreaterThan(1);
  expect(new Set(reported.map((line) => line.slice(9)))).toEqual(new Set(["E1/0/0"]));
});

test("L3: an event that is withdrawn or asks for less leaves its descriptors flagged, also over a crash", async () => {
  const { failure } = await playDay(
    reporting(
      asked("E1", "08:00", "09:00", { reports: [once] }),
      asked("E2", "10:00", "11:00", { reports: [once, quarterly] }),
      { kind: "withdraw", at: time("07:30"), id: "E1", deliveries: [100] },
      { kind: "crash", at: time("07:30"), point: "after a commit", downFor: 1_000 },
      { ...asked("E2", "10:00", "11:00"), at: time("09:30") },
      { kind: "crash", at: time("09:30"), point: "after a commit", downFor: 1_000 },
    ),
  );
  expect(failure).toBeNull();
});

test("F24: reports of a night on which the clocks change are made at the same moments", async () => {
  const oslo = {
    midnight: Date.parse("2026-10-24T22:00:00Z"),
    zone: "Europe/Oslo",
    writtenIn: "Europe/Oslo",
  };
  const night = reporting(asked("E1", "01:00", "05:00", { reports: [once, quarterly] }));
  const [inOslo, inUtc] = [
    await playDay({ ...night, ...oslo }),
    await playDay({ ...night, ...oslo, zone: "UTC" }),
  ];
  expect([inOslo.failure, inUtc.failure]).toEqual([null, null]);
  expect(inOslo.reported).toHaveLength(17);
  expect(inUtc.reported).toEqual(inOslo.reported);
});

test("the simulation finds reports that do not survive a restart", async () => {
  const { failure } = await playDay(refused, { plant: forgottenOutbox });
  expect(failure?.invariant).toMatch(/^L3/);
});
