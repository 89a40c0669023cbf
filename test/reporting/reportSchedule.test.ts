import * as fc from "fast-check";
import { expect, test } from "vitest";

import { type CoordinationEvent, type TrackedEvent, summaryOf } from "../../src/domain/event.ts";
import type { ReportObligation } from "../../src/domain/report.ts";
import { type EventId, eventId, type Instant, instant, iso, minutes } from "../../src/domain/units.ts";
import {
  forDescriptor,
  reportSchedule,
  type ReportSchedule,
  edgesWithin,
  takeDue,
} from "../../src/reporting/obligations.ts";
import { reportName } from "../../src/reporting/plan.ts";
import {
  type ScheduleContext,
  issue,
  scheduleChangedEvents,
  reportedOn,
  restoreSchedule,
} from "../../src/reporting/reportSchedule.ts";
import { reportRecord } from "../store/sqlite/words.ts";
import { aDescriptor, aReportedEvent, reportSettings } from "../support/aReport.ts";
import { anEvent, at, live, withdrawn } from "../support/anEvent.ts";

const context = (changes: Partial<ScheduleContext> = {}): ScheduleContext => ({
  settings: reportSettings(),
  enabled: true,
  concernsUs: () => true,
  whole: () => null,
  ...changes,
});
const knownAs = (...events: readonly TrackedEvent[]): ReadonlyMap<EventId, TrackedEvent> =>
  new Map(events.map((known) => [known.id, known]));
const anAsk = (...reports: readonly Partial<CoordinationEvent["reports"][number]>[]) =>
  aReportedEvent({}, { reports: reports.map(aDescriptor) });

/** As if all of them had changed, those that are gone included. */
const scheduleEvents = (
  schedule: ReportSchedule,
  events: ReadonlyMap<EventId, TrackedEvent>,
  how: ScheduleContext,
) => scheduleChangedEvents(schedule, events, new Set([...schedule.seen.keys(), ...events.keys()]), how);

/** `EV-7731/0/0 at 13:00:30` of each duty with a report to come. */
const upcoming = ({ upcoming }: ReportSchedule): readonly string[] =>
  [...upcoming.values()].map(({ window }) => `${reportName(window)} at ${iso(window.due).slice(11, 19)}`);
const formatted = ({ event, descriptor, state, reason }: ReportObligation): string =>
  [`${event}/${descriptor}`, state, reason].filter((part) => part !== null).join(" ");
const duties = (schedule: ReportSchedule): readonly string[] =>
  [...schedule.obligations.values()].map(formatted);

/** Hands the next report of a duty over. */
function hand(
  schedule: ReportSchedule,
  key: string,
  settings = context().settings,
  reason: string | null = null,
) {
  const next = schedule.upcoming.get(key);
  if (next === undefined) throw new Error(`nothing to come of ${key}`);
  return issue(schedule, key, next, reason, settings);
}

test("each descriptor has its next report, without anything stored", () => {
  const schedule = reportSchedule();
  const events = knownAs(live(anAsk({}, { numIntervals: 1, frequency: 1, repeat: 4 })));
  expect(scheduleEvents(schedule, events, context())).toEqual([]);
  expect(upcoming(schedule)).toEqual(["EV-7731/0/0 at 13:00:30", "EV-7731/1/0 at 12:15:30"]);
  expect(scheduleEvents(schedule, events, context())).toEqual([]);
});

test("F15 L3: an event that brings out a bug has its descriptors flagged, and others are planned", () => {
  const schedule = reportSchedule();
  const other = live(anAsk({}), { id: eventId("EV-2") });
  const concernsUs: ScheduleContext["concernsUs"] = (revision) => {
    if (revision === other.revision) return true;
    throw new TypeError("what is this?");
  };
  const flagged = scheduleEvents(schedule, knownAs(live(anAsk({}, {})), other), context({ concernsUs }));
  const why = "flagged a bug: this program cannot plan it (TypeError: what is this?)";
  expect(flagged.map(formatted)).toEqual([`EV-7731/0 ${why}`, `EV-7731/1 ${why}`]);
  expect(upcoming(schedule)).toHaveLength(1);
});

test("a due report is returned once, until it is issued", () => {
  const schedule = reportSchedule();
  scheduleEvents(schedule, knownAs(live(anAsk({ numIntervals: 1, frequency: 1, repeat: 4 }))), context());
  expect(takeDue(schedule, at("12:15"))).toEqual([]);
  expect(takeDue(schedule, at("12:15:30"))).toEqual(["EV-7731/0"]);
  expect(takeDue(schedule, at("12:40"))).toEqual([]);
  expect(hand(schedule, "EV-7731/0")).toMatchObject({ state: "open", issued: { k: 0, moment: at("12:15") } });
  expect(takeDue(schedule, at("12:40"))).toEqual(["EV-7731/0"]);
});

test("an obligation is done with its last report, also after a restart", () => {
  const schedule = reportSchedule();
  const events = knownAs(live(anAsk({})));
  scheduleEvents(schedule, events, context());
  const done = hand(schedule, "EV-7731/0");
  expect(done).toMatchObject({ state: "done", reason: null });
  if (done === null) throw new Error("no duty");
  const again = reportSchedule();
  restoreSchedule(again, { duties: [done], outbox: [] }, true);
  expect(scheduleEvents(again, events, context())).toEqual([]);
  expect([upcoming(again), duties(again)]).toEqual([[], ["EV-7731/0 done"]]);
});

test("a report that could not be composed flags the obligation at its end", () => {
  const schedule = reportSchedule();
  scheduleEvents(schedule, knownAs(live(anAsk({ numIntervals: 1, frequency: 1, repeat: 2 }))), context());
  expect(hand(schedule, "EV-7731/0", context().settings, "no power")).toMatchObject({
    state: "open",
    reason: "no power",
  });
  expect(hand(schedule, "EV-7731/0")).toMatchObject({ state: "flagged", reason: "no power" });
});

test("an unknown report is not issued", () => {
  const schedule = reportSchedule();
  scheduleEvents(schedule, knownAs(live(anAsk({}))), context());
  const next = schedule.upcoming.get("EV-7731/0");
  if (next === undefined) throw new Error("nothing to come");
  scheduleEvents(schedule, new Map(), context());
  expect(issue(schedule, "EV-7731/0", next, null, context().settings)).toBeNull();
});

test.each<readonly [string, Partial<ScheduleContext>, CoordinationEvent, string]>([
  ["reports are switched off", { enabled: false }, anAsk({}), "reports are switched off"],
  [
    "none of its vehicles is ours",
    { concernsUs: () => false },
    anAsk({}),
    "none of its targets is a vehicle of this site",
  ],
  [
    "it has no length",
    {},
    aReportedEvent({}, { duration: minutes(0) }),
    "the event's duration is zero: nothing to report",
  ],
  [
    "everything was due before it came, and that is not wanted",
    { settings: reportSettings({ catchUp: "none" }) },
    aReportedEvent({}, { start: at("01:00") }),
    "1 more was due before the event arrived",
  ],
])("a descriptor is flagged with the reason where %s (L3)", (_why, changes, event, reason) => {
  const schedule = reportSchedule();
  const flagged = scheduleEvents(schedule, knownAs(live(event)), context(changes));
  expect(flagged.map(formatted)).toEqual([`EV-7731/0 flagged ${reason}`]);
  expect(upcoming(schedule)).toEqual([]);
});

test("beyond the last representable time nothing is reported", () => {
  const end = instant(8.64e15);
  const schedule = reportSchedule();
  const flagged = scheduleEvents(schedule, knownAs(live(aReportedEvent({}, { start: end }))), context());
  expect(flagged.map(formatted)).toEqual(["EV-7731/0 flagged there is nothing to report"]);
});

test("descriptors beyond the 32nd share one flag", () => {
  const schedule = reportSchedule();
  const flagged = scheduleEvents(
    schedule,
    knownAs(live(anAsk(...Array.from({ length: 40 }, () => ({}))))),
    context(),
  );
  expect(flagged.map(formatted)).toEqual(["EV-7731/32 flagged 8 report descriptors too many"]);
  expect(upcoming(schedule)).toHaveLength(32);
});

test("reports that were disabled are composed once they are enabled again", () => {
  const schedule = reportSchedule();
  const events = knownAs(live(anAsk({})));
  const stored = scheduleEvents(schedule, events, context({ enabled: false }));
  const [off, on] = [reportSchedule(), reportSchedule()];
  restoreSchedule(off, { duties: stored, outbox: [] }, false);
  expect(scheduleEvents(off, events, context({ enabled: false }))).toEqual([]);
  restoreSchedule(on, { duties: stored, outbox: [] }, true);
  scheduleEvents(on, events, context());
  expect(upcoming(on)).toEqual(["EV-7731/0/0 at 13:00:30"]);
});

test("an event is reported once its vehicle is configured", () => {
  const schedule = reportSchedule();
  const events = knownAs(live(anAsk({})));
  const stored = scheduleEvents(schedule, events, context({ concernsUs: () => false }));
  const [unknown, known] = [reportSchedule(), reportSchedule()];
  restoreSchedule(unknown, { duties: stored, outbox: [] }, true);
  expect(scheduleEvents(unknown, events, context({ concernsUs: () => false }))).toEqual([]);
  restoreSchedule(known, { duties: stored, outbox: [] }, true);
  expect(scheduleEvents(known, events, context())).toEqual([]);
  expect([upcoming(known), duties(known)]).toEqual([["EV-7731/0/0 at 13:00:30"], ["EV-7731/0 open"]]);
});

test("a new revision replaces the schedule, but not issued reports", () => {
  const schedule = reportSchedule();
  const counts = { numIntervals: 1, frequency: 1, repeat: 4 };
  scheduleEvents(schedule, knownAs(live(anAsk(counts, {}))), context());
  hand(schedule, "EV-7731/0");
  const shorter = aReportedEvent(counts, { duration: minutes(32), revision: at("12:20") });
  const flagged = scheduleEvents(
    schedule,
    knownAs(live(shorter, { receivedAt: at("12:20"), descriptors: 2 })),
    context(),
  );
  expect(flagged.map(formatted)).toEqual(["EV-7731/1 flagged the event does not ask for it any more"]);
  expect(upcoming(schedule)).toEqual(["EV-7731/0/1 at 12:20:00"]);
  expect(takeDue(schedule, at("13:30"))).toEqual(["EV-7731/0"]);
});

const LATE = "flagged what it asks for now was asked after its reports had gone out";

test.each<readonly [string, CoordinationEvent, string]>([
  ["another thing", anAsk({ payloadType: "DEMAND" }), LATE],
  ["another time", aReportedEvent({}, { duration: minutes(30) }), LATE],
  ["nothing else", aReportedEvent({}, { name: "renamed" }), "done"],
])("a revision that asks for %s once all is answered does not end in silence (L3)", (_what, event, state) => {
  const schedule = reportSchedule();
  scheduleEvents(schedule, knownAs(live(anAsk({}))), context());
  hand(schedule, "EV-7731/0");
  const revised = knownAs(live(event, { receivedAt: at("13:05") }));
  expect(scheduleEvents(schedule, revised, context()).map(formatted)).toEqual([`EV-7731/0 ${state}`]);
  expect(upcoming(schedule)).toEqual([]);
});

test.each<readonly [string, CoordinationEvent, string]>([
  ["another thing", anAsk({ payloadType: "DEMAND" }), LATE],
  ["nothing else", aReportedEvent({}, { name: "renamed" }), "done"],
])(
  "the same holds for %s where memory has only a summary of what was asked before",
  (_what, event, state) => {
    const schedule = reportSchedule();
    const before = live(anAsk({}));
    scheduleEvents(schedule, knownAs(before), context());
    hand(schedule, "EV-7731/0");
    expect(scheduleEvents(schedule, knownAs(summaryOf(before, 700)), context())).toEqual([]);
    const revised = knownAs(live(event, { receivedAt: at("13:05") }));
    expect(scheduleEvents(schedule, revised, context()).map(formatted)).toEqual([`EV-7731/0 ${state}`]);
  },
);

test("an event that returns after all its reports were sent owes none", () => {
  const gone = withdrawn(anAsk({}), at("13:02"));
  for (const tombstone of [gone, summaryOf(gone, 90)]) {
    const schedule = reportSchedule();
    scheduleEvents(schedule, knownAs(live(anAsk({}))), context());
    hand(schedule, "EV-7731/0");
    expect(scheduleEvents(schedule, knownAs(tombstone), context())).toEqual([]);
    const revived = knownAs(live(anAsk({ payloadType: "DEMAND" }), { receivedAt: at("13:05") }));
    expect(scheduleEvents(schedule, revived, context()).map(formatted)).toEqual(["EV-7731/0 done"]);
  }
});

test("after a restart a fully reported event stays settled", () => {
  const schedule = reportSchedule();
  scheduleEvents(schedule, knownAs(live(anAsk({}))), context());
  hand(schedule, "EV-7731/0");
  schedule.seen.clear();
  const revised = knownAs(live(anAsk({ payloadType: "DEMAND" }), { receivedAt: at("13:05") }));
  expect(scheduleEvents(schedule, revised, context()).map(formatted)).toEqual(["EV-7731/0 done"]);
});

test("a fetch of the same revision changes nothing", () => {
  const schedule = reportSchedule();
  const known = live(anAsk({}), { source: "webhook" });
  scheduleEvents(schedule, knownAs(known), context());
  hand(schedule, "EV-7731/0");
  expect(scheduleEvents(schedule, knownAs({ ...known, source: "fetch" }), context())).toEqual([]);
  expect(duties(schedule)).toEqual(["EV-7731/0 done"]);
});

test("a withdrawal flags the pending reports", () => {
  const schedule = reportSchedule();
  const event = anAsk({});
  scheduleEvents(schedule, knownAs(live(event)), context());
  const flagged = scheduleEvents(schedule, knownAs(withdrawn(event, at("12:20"))), context());
  expect(flagged.map(formatted)).toEqual(["EV-7731/0 flagged the event was withdrawn"]);
});

test("a withdrawn event is reported up to its withdrawal, if configured, once, also after a restart", () => {
  const settings = reportSettings({ onCancel: "partial" });
  const schedule = reportSchedule();
  const event = anAsk({});
  scheduleEvents(schedule, knownAs(live(event)), context({ settings }));
  const gone = knownAs(withdrawn(event, at("12:20")));
  const stored = scheduleEvents(schedule, gone, context({ settings }));
  expect(stored.map(formatted)).toEqual(["EV-7731/0 open"]);
  const again = reportSchedule();
  restoreSchedule(again, { duties: stored, outbox: [] }, true);
  scheduleEvents(again, gone, context({ settings }));
  expect(upcoming(again)).toEqual(["EV-7731/0/0 at 12:20:30"]);
  expect(hand(again, "EV-7731/0", settings)).toMatchObject({
    state: "flagged",
    reason: "the event was withdrawn",
  });
});

test("a withdrawn event is stored with its own descriptor only, until its last report", () => {
  const settings = reportSettings({ onCancel: "partial" });
  const schedule = reportSchedule();
  const event = anAsk(...Array.from({ length: 100 }, (_, index) => ({ payloadType: `TYPE-${index}` })));
  scheduleEvents(schedule, knownAs(live(event)), context({ settings }));
  const gone = knownAs(withdrawn(event, at("12:20")));
  const stored: readonly ReportObligation[] = JSON.parse(
    JSON.stringify(scheduleEvents(schedule, gone, context({ settings }))),
  );
  expect(stored.map(formatted)).toEqual(Array.from({ length: 32 }, (_, index) => `EV-7731/${index} open`));
  for (const duty of stored) {
    const kept = duty.withdrawn?.revision.event.reports ?? [];
    expect(kept.filter(Boolean).map(({ payloadType }) => payloadType)).toEqual([`TYPE-${duty.descriptor}`]);
  }
  const again = reportSchedule();
  restoreSchedule(again, { duties: stored, outbox: [] }, true);
  scheduleEvents(again, gone, context({ settings }));
  expect(upcoming(again)).toEqual(upcoming(schedule));
  expect(hand(again, "EV-7731/31", settings)?.withdrawn).toBeNull();
});

test("a withdrawal stored just before a crash is found after it", () => {
  const settings = reportSettings({ onCancel: "partial" });
  const event = anAsk({});
  const revision = { event, start: at("12:00") };
  const open: ReportObligation = {
    event: event.id,
    descriptor: 0,
    receivedAt: at("11:00"),
    issued: null,
    withdrawn: null,
    state: "open",
    reason: null,
  };
  const schedule = reportSchedule();
  restoreSchedule(schedule, { duties: [open], outbox: [] }, true);
  const ending = { revision, at: at("12:20") };
  scheduleEvents(schedule, knownAs(withdrawn(event, at("12:20"), [ending])), context({ settings }));
  expect(upcoming(schedule)).toEqual(["EV-7731/0/0 at 12:20:30"]);
  const lost = reportSchedule();
  restoreSchedule(lost, { duties: [open], outbox: [] }, true);
  const flagged = scheduleEvents(lost, knownAs(withdrawn(event, at("12:20"))), context({ settings }));
  expect(flagged.map(formatted)).toEqual(["EV-7731/0 flagged the event was withdrawn"]);
});

test("a descriptor without stored state before a crash is still flagged, once (L3)", () => {
  const gone = knownAs(withdrawn(anAsk({}, {}), at("12:20")));
  const schedule = reportSchedule();
  const flagged = scheduleEvents(schedule, gone, context());
  expect(flagged.map(formatted)).toEqual([
    "EV-7731/0 flagged the event was withdrawn",
    "EV-7731/1 flagged the event was withdrawn",
  ]);
  const again = reportSchedule();
  restoreSchedule(again, { duties: flagged, outbox: [] }, true);
  expect(scheduleEvents(again, gone, context())).toEqual([]);
  const fewer = knownAs(live(anAsk({}), { receivedAt: at("12:20"), descriptors: 2 }));
  expect(scheduleEvents(reportSchedule(), fewer, context()).map(formatted)).toEqual([
    "EV-7731/1 flagged the event does not ask for it any more",
  ]);
});

test("an event is needed until its last report is accepted, and while it is unscheduled", () => {
  const schedule = reportSchedule();
  const events = knownAs(live(anAsk({})), live(aReportedEvent({}, { reports: [] }), { id: eventId("EV-2") }));
  expect([...reportedOn(schedule, events)]).toEqual(["EV-7731"]);
  scheduleEvents(schedule, events, context());
  expect([...reportedOn(schedule, events)]).toEqual(["EV-7731"]);
  hand(schedule, "EV-7731/0");
  expect([...reportedOn(schedule, events)]).toEqual([]);
  const waiting = reportRecord("EV-3/0/0");
  restoreSchedule(schedule, { duties: [], outbox: [waiting] }, true);
  expect([...reportedOn(schedule, new Map())]).toEqual([waiting.event]);
});

test("a pruned event loses its obligations; others stay", () => {
  const schedule = reportSchedule();
  const other = live(aReportedEvent({}, {}), { id: eventId("EV-2") });
  scheduleEvents(schedule, knownAs(live(anAsk({})), other), context());
  scheduleEvents(schedule, knownAs(live(anAsk({}))), context());
  expect([upcoming(schedule), duties(schedule)]).toEqual([["EV-7731/0/0 at 13:00:30"], ["EV-7731/0 open"]]);
});

test("a schedule restored repeatedly, as on a full disk, does not grow (F05)", () => {
  const schedule = reportSchedule();
  const events = knownAs(live(anAsk({}, { numIntervals: 1, frequency: 1, repeat: 4 })));
  scheduleEvents(schedule, events, context());
  const { size } = schedule.due;
  for (let tries = 0; tries < 3; tries += 1) {
    restoreSchedule(schedule, { duties: [], outbox: [] }, true);
    expect(schedule.due.size).toBe(0);
    scheduleEvents(schedule, events, context());
  }
  expect(schedule.due.size).toBe(size);
  expect(takeDue(schedule, at("13:30"))).toEqual(["EV-7731/1", "EV-7731/0"]);
});

const clock = (moment: Instant): string => iso(moment).slice(11, 16);

test("interval edges are known in advance, in order, each once", () => {
  const schedule = reportSchedule();
  scheduleEvents(schedule, knownAs(live(anAsk({ numIntervals: 4 }, {}))), context());
  const edges = edgesWithin(schedule, { from: at("12:00"), until: at("12:46") });
  expect(edges.map(clock)).toEqual(["12:00", "12:15", "12:30", "12:45"]);
});

test("a report about another time costs a few looks, however many intervals it has", () => {
  const schedule = reportSchedule();
  scheduleEvents(schedule, knownAs(live(anAsk({ numIntervals: 48 }))), context());
  let looks = 0;
  for (const [key, upcoming] of schedule.upcoming) {
    const counted = new Proxy(upcoming.window.intervals, {
      get: (intervals, index, receiver) => {
        looks += Number(/^\d+$/.test(String(index)));
        return Reflect.get(intervals, index, receiver) as unknown;
      },
    });
    schedule.upcoming.set(key, { ...upcoming, window: { ...upcoming.window, intervals: counted } });
  }
  expect(edgesWithin(schedule, { from: at("09:00"), until: at("09:12") })).toEqual([]);
  expect(edgesWithin(schedule, { from: at("22:00"), until: at("22:12") })).toEqual([]);
  expect(looks).toBeGreaterThan(0);
  expect(looks).toBeLessThan(40);
});

test("after any edits, withdrawals and returns, each descriptor has a planned report or an end with a reason (L3)", () => {
  const step = fc.record({
    kind: fc.constantFrom("live", "live", "withdrawn"),
    descriptors: fc.integer({ min: 0, max: 3 }),
    length: fc.integer({ min: 0, max: 120 }),
    hands: fc.integer({ min: 0, max: 3 }),
    ends: fc.constantFrom("goes on", "restarts", "crashes"),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), fc.constantFrom("none", "partial"), (steps, onCancel) => {
      const settings = reportSettings({ onCancel });
      let schedule = reportSchedule();
      let most = 0;
      const stored = new Map<string, ReportObligation>();
      const keep = (duties: readonly (ReportObligation | null)[]) => {
        for (const duty of duties) if (duty !== null) stored.set(`${duty.event}/${duty.descriptor}`, duty);
      };
      steps.forEach(({ kind, descriptors: count, length, hands, ends }, index) => {
        const when = instant(at("11:00") + index * 600_000);
        const reports = Array.from({ length: count }, () => aDescriptor({ repeat: 2, numIntervals: 1 }));
        const event = aReportedEvent({}, { duration: minutes(length), reports, revision: when });
        if (kind === "live") most = Math.max(most, count);
        const as = kind === "live" ? live(event, { receivedAt: when }) : withdrawn(event, when);
        const known = { ...as, descriptors: most };
        const changed = scheduleEvents(schedule, knownAs(known), context({ settings }));
        if (ends !== "crashes") keep(changed);
        for (let hand = 0; hand < (ends === "crashes" ? 0 : hands); hand += 1) {
          const [next] = schedule.upcoming;
          if (next !== undefined) keep([issue(schedule, ...next, null, settings)]);
        }
        if (ends !== "goes on") {
          schedule = reportSchedule();
          restoreSchedule(schedule, { duties: [...stored.values()], outbox: [] }, true);
          keep(scheduleEvents(schedule, knownAs(known), context({ settings })));
        }
        expect(schedule.obligations.size).toBe(most);
        for (const [key, { state, reason }] of schedule.obligations) {
          expect(schedule.upcoming.has(key)).toBe(state === "open");
          expect(reason !== null).toBe(state === "flagged");
        }
      });
    }),
  );
});

test("a withdrawn event stored for one report has that descriptor alone", () => {
  const event = anEvent({ reports: [aDescriptor(), aDescriptor()] });
  const ending = { revision: { event, start: event.revision }, at: event.revision };
  expect(forDescriptor(ending, 1).revision.event.reports).toEqual([undefined, aDescriptor()]);
  expect(forDescriptor(ending, 2).revision.event.reports).toEqual([]);
});
