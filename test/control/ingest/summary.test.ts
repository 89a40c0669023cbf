import { expect, test } from "vitest";

import { howEnded } from "../../../src/control/decide/reason.ts";
import type { EventNotice } from "../../../src/control/ingest/intake.ts";
import { isSameState, outcomeFor } from "../../../src/control/ingest/summary.ts";
import {
  type EventSummary,
  type KnownEvent,
  askPrint,
  summaryOf,
  openUntil,
} from "../../../src/domain/event.ts";
import type { PostAnswer, ReportObligation } from "../../../src/domain/report.ts";
import { instant, minutes, vehicleId } from "../../../src/domain/units.ts";
import { reportSchedule } from "../../../src/reporting/obligations.ts";
import { aboutEvent } from "../../../src/reporting/outbox.ts";
import { scheduleChangedEvents, restoreSchedule } from "../../../src/reporting/reportSchedule.ts";
import { forgettable } from "../../../src/retention/rules.ts";
import { settingsWith } from "../../support/aCharger.ts";
import { aDescriptor, reportSettings } from "../../support/aReport.ts";
import { anEvent, at, live, withdrawn } from "../../support/anEvent.ts";

const NOT_FOUND: PostAnswer = { kind: "answered", status: 404, text: "", retryAfter: null };

const event = anEvent({ reports: [aDescriptor()] });

test("a summary has the kind, the end and the request of an event, without its targets", () => {
  const summary = summaryOf(live(event), 700);
  expect(summary).toEqual({
    kind: "over",
    id: "EV-7731",
    was: "live",
    revision: at("04:00"),
    hash: event.hash,
    receivedAt: at("04:00"),
    start: at("05:00"),
    until: at("06:10"),
    descriptors: 1,
    asks: [askPrint(live(event).revision, 0)],
    size: 700,
  });
  expect(summaryOf(withdrawn(event, at("04:30")), 90)).toMatchObject({
    was: "withdrawn",
    hash: null,
    start: at("04:30"),
    until: at("04:30"),
    asks: [],
  });
});

const noticed = (changes: Parameters<typeof anEvent>[0]): EventNotice => ({
  kind: "event",
  event: anEvent({ reports: [aDescriptor()], ...changes }),
});

test("a repeat or an older revision of an event that is over needs no read from the disk", () => {
  const summary = summaryOf(live(event), 700);
  expect(outcomeFor(summary, noticed({}), at("12:00"))).toBe("repeat");
  expect(outcomeFor(summary, noticed({ revision: at("03:59") }), at("12:00"))).toBe("stale");
  expect(outcomeFor(summary, noticed({ revision: at("04:01") }), at("12:00"))).toBeNull();
  expect(outcomeFor(summary, noticed({ name: "other content, same time" }), at("12:00"))).toBeNull();
  const ahead = summaryOf(live(anEvent({ revision: instant(8e14) })), 700);
  expect(outcomeFor(ahead, noticed({}), at("12:00"))).toBeNull();
  expect(outcomeFor(summary, { kind: "gone", id: event.id }, at("12:00"))).toBeNull();
  expect(outcomeFor(summaryOf(withdrawn(event, at("04:30")), 90), noticed({}), at("12:00"))).toBeNull();
});

test("a state is the same in memory and on disk, whole or not", () => {
  const summary = summaryOf(live(event), 700);
  expect([isSameState(live(event), summary), isSameState(summary, summary)]).toEqual([true, true]);
  expect(isSameState(live(event, { receivedAt: at("04:10") }), summary)).toBe(false);
  expect(isSameState(withdrawn(event, at("04:00")), summary)).toBe(false);
});

test("releases and holds work with summaries as well", () => {
  const context = { siteKey: Buffer.alloc(32), vehicles: new Map(), settings: settingsWith() };
  const [was, gone] = [summaryOf(live(event), 700), summaryOf(withdrawn(event, at("04:30")), 90)];
  const ends = [was, gone].map((known) => howEnded(known, vehicleId("veh-214"), context, at("07:00")));
  expect(ends).toEqual(["in its time", "withdrawn"]);
  expect(openUntil(was, at("07:00"))).toBeNull();
  const keep = { events: minutes(60), maxEvents: 100, maxBytes: 1_000_000, withdrawn: minutes(60) };
  const how = { now: at("09:00"), agesCount: true, isNeeded: () => false, most: 10 };
  expect(forgettable([was, gone], keep, how)).toEqual([gone, was]);
  expect(aboutEvent(NOT_FOUND, gone)).toMatchObject({ kind: "checked" });
  expect(aboutEvent(NOT_FOUND, was)).toBe(NOT_FOUND);
});

const duty = (state: ReportObligation["state"]): ReportObligation => ({
  event: event.id,
  descriptor: 0,
  receivedAt: at("04:00"),
  issued: null,
  withdrawn: null,
  state,
  reason: null,
});

/** What a desk makes of an event that is over, by what is stored of its one report. */
const lookedAt = (stored: readonly ReportObligation[], whole: KnownEvent | null, tracked: EventSummary) => {
  const desk = reportSchedule();
  restoreSchedule(desk, { duties: stored, outbox: [] }, true);
  const context = { settings: reportSettings(), enabled: true, concernsUs: () => true, whole: () => whole };
  const ended = scheduleChangedEvents(desk, new Map([[event.id, tracked]]), [event.id], context);
  return [desk.upcoming.size, ...ended.map(({ state, reason }) => `${state} ${reason}`)];
};

test("an event that is over is read as a whole only while a report of it is pending (L3)", () => {
  const summary = summaryOf(live(event), 700);
  expect(lookedAt([duty("done")], null, summary)).toEqual([0]);
  expect(lookedAt([duty("open")], live(event), summary)).toEqual([1]);
  expect(lookedAt([], null, summary)).toEqual([0, "flagged the stored event cannot be read"]);
  const earlier = { ...duty("done"), receivedAt: at("03:00") };
  expect(lookedAt([earlier], null, { ...summary, was: "withdrawn" })).toEqual([0]);
  expect(lookedAt([earlier], null, summary)).toEqual([0]);
});
