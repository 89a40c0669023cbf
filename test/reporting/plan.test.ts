import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { MOST_DESCRIPTORS } from "../../src/domain/event.ts";
import { after, instant, iso, millis, minutes, seconds } from "../../src/domain/units.ts";
import { afterWithdrawal, reportName, type ReportPlan } from "../../src/reporting/plan.ts";
import type { ReportSettings } from "../../src/reporting/settings.ts";
import {
  aDescriptor,
  aPlan,
  aReportedEvent,
  type Counts,
  counts,
  reportSettings,
  windowByIds,
  windowInWords,
} from "../support/aReport.ts";
import { at } from "../support/anEvent.ts";

/** Each report of the hour from 12:00: the moment it is about, and the intervals it holds. */
const byIds = (mode: ReportSettings["mode"], asked: Counts, settings: Partial<ReportSettings> = {}): string =>
  aPlan(aReportedEvent(counts(asked)), { mode, ...settings })
    .windows.map(windowByIds)
    .join(" ");

describe("an event of one hour from 12:00, as the partner's counts may be meant", () => {
  const hourly = { mode: "implied", settings: { continueAfterEvent: true } } as const;

  test.each<[asked: Counts, whole: string, implied: string, auto: string]>([
    [[null, null, "T", null, null], "13:00 [0-0]", "13:00 [0-0]", "13:00 [0-0]"],
    [[-1, -1, "T", -1, 1], "13:00 [0-0]", "13:00 [0-0]", "13:00 [0-0]"],
    [[0, 0, "T", 0, 0], "13:00 [0-0]", "13:00 [0-0]", "13:00 [0-0]"],
    [[-1, 4, "T", -1, 1], "13:00 [0-0]", "16:00 [0-3]", "13:00 [0-3]"],
    [[0, 4, "T", -1, 1], "13:00 [0-0]", "16:00 [0-3]", "13:00 [0-3]"],
    [
      [0, 1, "T", 1, 4],
      "13:00 [0-0]",
      "13:00 [0-0] 14:00 [1-1] 15:00 [2-2] 16:00 [3-3]",
      "12:15 [0-0] 12:30 [1-1] 12:45 [2-2] 13:00 [3-3]",
    ],
    [
      [-1, 1, "T", 1, 4],
      "13:00 [0-0]",
      "13:00 [0-0] 14:00 [1-1] 15:00 [2-2] 16:00 [3-3]",
      "12:15 [0-0] 12:30 [1-1] 12:45 [2-2] 13:00 [3-3]",
    ],
    [
      [0, 3, "F", 1, 4],
      "12:00 [0-0]",
      "12:00 [0-2] 13:00 [1-3] 14:00 [2-4] 15:00 [3-5]",
      "12:00 [0-2] 12:10 [1-3] 12:20 [2-4] 12:30 [3-5]",
    ],
    [
      [1, 2, "T", 2, 3],
      "13:00 [0-0]",
      "14:00 [0-1] 16:00 [2-3] 18:00 [4-5]",
      "12:20 [0-1] 12:40 [2-3] 13:00 [4-5]",
    ],
    [[0, -1, "F", -1, 1], "11:00 [0-0]", "11:00 [0-0]", "11:00 [0-0]"],
  ])("%j as the whole event, as implied intervals, and divided", (asked, whole, implied, auto) => {
    expect(byIds("event", asked)).toBe(whole);
    expect(byIds("implied", asked)).toBe(implied);
    expect(byIds("auto", asked)).toBe(auto);
  });

  test("endless: once as a whole, hourly until deleted, or every 15 min to the end of the event", () => {
    const asked: Counts = [0, 1, "T", 1, -1];
    expect(byIds("event", asked)).toBe("13:00 [0-0]");
    expect(byIds("auto", asked)).toBe("12:15 [0-0] 12:30 [1-1] 12:45 [2-2] 13:00 [3-3]");
    const plan = aPlan(aReportedEvent(counts(asked)), { ...hourly.settings, mode: hourly.mode });
    expect(plan.windows.slice(0, 3).map(windowByIds)).toEqual(["13:00 [0-0]", "14:00 [1-1]", "15:00 [2-2]"]);
    expect([plan.windows.length, plan.more]).toEqual([96, true]);
  });

  test("a frequency larger than the event: once, after 900 hours, or every 15 min where it means seconds", () => {
    const asked: Counts = [-1, 1, "T", 900, -1];
    expect(byIds("event", asked)).toBe("13:00 [0-0]");
    expect(byIds("auto", asked)).toBe("13:00 [0-0]");
    expect(byIds("frequencySeconds", asked)).toBe("12:15 [0-0] 12:30 [1-1] 12:45 [2-2] 13:00 [3-3]");
    const [first] = aPlan(aReportedEvent(counts(asked)), { ...hourly.settings, mode: hourly.mode }).windows;
    expect(first?.moment).toBe(after(at("12:00"), minutes(900 * 60)));
    expect(aPlan(aReportedEvent(counts(asked))).flags).toEqual([
      "frequency is larger than the event: reported once, at its end",
    ]);
  });

  test("with frequency as a time: hourly where it is not set, and never more often than minInterval", () => {
    expect(byIds("frequencySeconds", [null, null, "T", null, null])).toBe("13:00 [0-0]");
    expect(byIds("frequencySeconds", [0, 4, "T", -1, 1])).toBe("13:00 [0-0]");
    expect(byIds("frequencySeconds", [0, -1, "F", -1, 1])).toBe("11:00 [0-0]");
    const everySecond = aPlan(aReportedEvent(counts([0, 1, "T", 1, 4])), {
      mode: "frequencySeconds",
      minInterval: seconds(1),
    });
    expect(everySecond.windows.slice(0, 2).map(windowByIds)).toEqual(["12:00:01 [0-0]", "12:00:02 [1-1]"]);
    const everyTwo = { mode: "frequencySeconds", minInterval: seconds(1) } as const;
    expect(byIds("frequencySeconds", [1, 2, "T", 2, 3], everyTwo)).toMatch(
      /^12:00:02 \[0-0\] 12:00:04 \[1-1\]/,
    );
    const tooOften = aPlan(aReportedEvent(counts([0, 1, "T", 1, 4])), { mode: "frequencySeconds" });
    expect(tooOften.windows.slice(0, 2).map(windowByIds)).toEqual(["12:01 [0-0]", "12:02 [1-1]"]);
    expect(tooOften.flags).toEqual(["every 1 s is too often: every 60 s"]);
    expect(byIds("frequencyMinutes", [0, 1, "T", 20, 4])).toBe("12:20 [0-0] 12:40 [1-1] 13:00 [2-2]");
  });
});

test("a frequency that is a time may be a week, or more", () => {
  const event = aReportedEvent({ frequency: 604_800 }, { duration: minutes(14 * 24 * 60) });
  const plan = aPlan(event, { mode: "frequencySeconds" });
  expect(plan.windows.map(({ due, flags }) => [iso(due), ...flags])).toEqual([
    ["2026-11-28T12:00:30.000Z"],
    ["2026-12-05T12:00:30.000Z"],
  ]);
  const endless = aPlan(aReportedEvent({ frequency: 2 ** 40 }), { mode: "frequencyMinutes" });
  expect(endless.flags).toEqual(["frequency 1099511627776 is taken as 315360000"]);
});

test("an hourly report continues while the event is listed, if configured", () => {
  const plan = aPlan(aReportedEvent(), { mode: "frequencySeconds", continueAfterEvent: true });
  expect(plan.windows.slice(0, 2).map(windowByIds)).toEqual(["13:00 [0-0]", "14:00 [1-1]"]);
  expect(plan.more).toBe(true);
});

test("fixed steps start with the event, and its end cuts the last one", () => {
  const event = aReportedEvent({}, { duration: minutes(50) });
  expect(aPlan(event, { mode: "fixed" }).windows.map(windowInWords)).toEqual([
    "12:50:30 [12:00-12:15 12:15-12:30 12:30-12:45 12:45-12:50]",
  ]);
});

test("an event divided without end has equal parts of at most 15 min", () => {
  const event = aReportedEvent(counts([0, 1, "T", 1, -1]), { duration: minutes(50) });
  expect(aPlan(event).windows.map(windowInWords)).toEqual([
    "12:13 [12:00-12:12:30]",
    "12:25:30 [12:12:30-12:25]",
    "12:38 [12:25-12:37:30]",
    "12:50:30 [12:37:30-12:50]",
  ]);
});

test("reports after the event keep its steps", () => {
  const goesOn = { continueAfterEvent: true } as const;
  const first = (mode: ReportSettings["mode"], asked: Counts): string =>
    aPlan(aReportedEvent(counts(asked)), { mode, ...goesOn })
      .windows.slice(0, 6)
      .map(windowByIds)
      .join(" ");
  const quarters = "12:15 [0-0] 12:30 [1-1] 12:45 [2-2] 13:00 [3-3] 13:15 [4-4] 13:30 [5-5]";
  expect(first("auto", [0, 1, "T", 1, -1])).toBe(quarters);
  expect(first("fixed", [0, 1, "T", 1, -1])).toBe(quarters);
  const hours = "13:00 [0-3] 14:00 [4-7] 15:00 [8-11] 16:00 [12-15] 17:00 [16-19] 18:00 [20-23]";
  expect(first("auto", [-1, -1, "T", -1, -1])).toBe(hours);
  expect(first("fixed", [-1, -1, "T", -1, -1])).toBe(hours);
  expect(byIds("implied", [0, 1, "T", 1, -1])).toBe("13:00 [0-0]");
});

test("a report waits 30 s for late readings, a forecast does not", () => {
  expect(aPlan(aReportedEvent()).windows.map(windowInWords)).toEqual(["13:00:30 [12:00-13:00]"]);
  const forecast = aReportedEvent({ historical: false });
  expect(aPlan(forecast).windows.map(windowInWords)).toEqual(["12:00 [12:00-13:00]"]);
});

test("report windows are the nominal ones, without the random start", () => {
  const event = aReportedEvent({}, { randomizeStart: minutes(30) });
  expect(aPlan(event).windows.map(windowInWords)).toEqual(["13:00:30 [12:00-13:00]"]);
});

test("an event that starts now is reported from its first receipt", () => {
  const event = aReportedEvent({}, { start: "now" });
  expect(aPlan(event).windows.map(windowInWords)).toEqual(["12:00:30 [11:00-12:00]"]);
});

describe("an event that arrives late", () => {
  const quarters = aReportedEvent(counts([0, 1, "T", 1, 4]));
  const late = (catchUp: ReportSettings["catchUp"], receivedAt: string): ReportPlan =>
    aPlan(quarters, { catchUp }, { receivedAt: at(receivedAt) });

  test("sends the latest of the reports that were due before, at once", () => {
    const plan = late("latest", "12:40");
    expect(plan.windows.map(windowInWords)).toEqual([
      "12:40 [12:15-12:30]",
      "12:45:30 [12:30-12:45]",
      "13:00:30 [12:45-13:00]",
    ]);
    expect(plan.windows.map(({ k }) => k)).toEqual([1, 2, 3]);
    expect(plan.flags).toEqual(["1 more was due before the event arrived"]);
  });

  test("sends all of them, or none, where that is set", () => {
    expect(late("all", "12:50").windows.map(({ due }) => due)).toEqual([
      ...Array.from({ length: 3 }, () => at("12:50")),
      at("13:00:30"),
    ]);
    const none = late("none", "14:00");
    expect([none.windows, none.flags]).toEqual([[], ["4 more were due before the event arrived"]]);
  });

  test("an event that is over is still reported", () => {
    expect(late("latest", "14:00").windows.map(windowInWords)).toEqual(["14:00 [12:45-13:00]"]);
  });

  test("an acknowledgement is never late", () => {
    const event = aReportedEvent(counts([0, -1, "F", -1, 1]));
    const plan = aPlan(event, { catchUp: "none" }, { receivedAt: at("12:40") });
    expect(plan.windows.map(windowInWords)).toEqual(["12:40 [12:00-13:00]"]);
  });

  test("catches up with only the newest reports of an endless plan", () => {
    const endless = aReportedEvent(counts([0, 1, "T", 1, -1]), {
      start: instant(Date.UTC(2020, 0, 1)),
      duration: millis(1e15),
    });
    const plan = aPlan(endless, { catchUp: "all" });
    expect([plan.windows.length, plan.more]).toEqual([96, true]);
    expect(plan.windows.at(-1)?.moment).toBe(at("10:45"));
  });
});

describe("a new revision", () => {
  const asked = counts([0, 1, "T", 1, 4]);

  test("replaces what was not handed over, and goes on counting", () => {
    const longer = aReportedEvent(asked, { duration: minutes(120) });
    const issued = { k: 1, moment: at("12:30") };
    const plan = aPlan(longer, {}, { receivedAt: at("12:33"), issued });
    expect(plan.windows.map(windowInWords)).toEqual([
      "13:00:30 [12:30-13:00]",
      "13:30:30 [13:00-13:30]",
      "14:00:30 [13:30-14:00]",
    ]);
    expect(plan.windows.map(reportName)).toEqual(["EV-7731/0/2", "EV-7731/0/3", "EV-7731/0/4"]);
    expect(plan.flags).toEqual([]);
  });

  test("with unchanged times sends nothing twice", () => {
    const plan = aPlan(
      aReportedEvent(asked),
      {},
      { receivedAt: at("12:33"), issued: { k: 1, moment: at("12:30") } },
    );
    expect(plan.windows.map(windowInWords)).toEqual(["12:45:30 [12:30-12:45]", "13:00:30 [12:45-13:00]"]);
    expect(plan.windows.map(({ k }) => k)).toEqual([2, 3]);
    const done = aPlan(
      aReportedEvent(),
      {},
      { receivedAt: at("14:00"), issued: { k: 0, moment: at("13:00") } },
    );
    expect(done.windows).toEqual([]);
  });

  test("is acknowledged anew", () => {
    const event = aReportedEvent(counts([0, -1, "F", -1, 1]));
    const issued = { k: 0, moment: at("11:00") };
    expect(aPlan(event, {}, { issued }).windows).toEqual([]);
    const [again] = aPlan(event, {}, { issued, receivedAt: at("11:30") }).windows;
    expect([again?.k, again?.due]).toEqual([1, at("11:30")]);
  });

  test("without the descriptor has nothing to report", () => {
    expect(aPlan(aReportedEvent(), {}, { descriptor: 1 })).toEqual({ windows: [], more: false, flags: [] });
  });
});

test("a long plan comes in parts: the next follows when the first is issued", () => {
  const event = aReportedEvent(counts([0, 1, "T", 1, -1]), { duration: millis(1e15) });
  const first = aPlan(event);
  const last = first.windows.at(-1);
  if (last === undefined) throw new Error("no windows");
  const next = aPlan(event, {}, { issued: last });
  expect([last.k, next.windows[0]?.k, next.windows[0]?.moment]).toEqual([
    95,
    96,
    after(last.moment, minutes(15)),
  ]);
});

describe("a withdrawn event", () => {
  const quarters = aPlan(aReportedEvent(counts([0, 1, "T", 1, 4]))).windows;

  test("is reported no more, but for what was owed by then", () => {
    expect(afterWithdrawal(quarters, at("12:14"), reportSettings())).toEqual([]);
    for (const deleted of ["12:15", "12:20"])
      expect(afterWithdrawal(quarters, at(deleted), reportSettings())).toEqual(quarters.slice(0, 1));
    expect(afterWithdrawal(quarters, at("14:00"), reportSettings())).toEqual(quarters);
  });

  test("is reported as far as it came, where that is wanted", () => {
    const partial = reportSettings({ onCancel: "partial" });
    expect(afterWithdrawal(quarters, at("12:20"), partial).map(windowInWords)).toEqual([
      "12:15:30 [12:00-12:15]",
      "12:20:30 [12:15-12:20]",
    ]);
    expect(afterWithdrawal(quarters, at("11:30"), partial)).toEqual([]);
    const whole = aPlan(aReportedEvent({ numIntervals: 4 })).windows;
    const [cut] = afterWithdrawal(whole, at("12:20"), partial);
    expect(cut && windowInWords(cut)).toBe("12:20:30 [12:00-12:15 12:15-12:20]");
    expect(cut?.flags).toEqual(["partial: the event was withdrawn"]);
    expect(afterWithdrawal(whole, at("14:00"), partial)).toEqual(whole);
  });

  test("overlapping reports are cut to one, and a forecast that was not due by then is pointless", () => {
    const partial = reportSettings({ onCancel: "partial" });
    const looking = aPlan(aReportedEvent(counts([-1, 3, "T", 1, -1]))).windows;
    expect(afterWithdrawal(looking, at("12:20"), partial).map(windowInWords)).toEqual([
      "12:15:30 [12:00-12:15]",
      "12:20:30 [12:00-12:15 12:15-12:20]",
    ]);
    const forecasts = aPlan(aReportedEvent(counts([0, 3, "F", 1, 4]))).windows;
    expect(afterWithdrawal(forecasts, at("11:59"), partial)).toEqual([]);
    expect(
      afterWithdrawal(forecasts, at("12:20"), partial).map(({ moment }) => moment <= at("12:20")),
    ).toEqual([true, true, true]);
  });
});

describe("numbers without a meaning", () => {
  test("a hundred thousand intervals become as many as a report may hold, with a note", () => {
    const event = aReportedEvent({ numIntervals: 100_000 }, { duration: minutes(24 * 60) });
    const plan = aPlan(event);
    expect(plan.windows.map(({ intervals }) => intervals.length)).toEqual([96]);
    expect(plan.flags).toEqual(["numIntervals 100000 is taken as 96"]);
    const repeated = aPlan(
      aReportedEvent({ numIntervals: 1, repeat: 100_000 }, { duration: minutes(24 * 60) }),
    );
    expect(repeated.windows.length).toBe(96);
    expect(repeated.flags).toEqual(["100000 intervals were asked for: made 96"]);
  });

  test("intervals shorter than a minute become one", () => {
    const plan = aPlan(aReportedEvent({ numIntervals: 61 }));
    expect(plan.windows.map(windowInWords)).toEqual(["13:00:30 [12:00-13:00]"]);
    expect(plan.flags).toEqual(["61 intervals of this event would be too short: made one"]);
    const implied = aPlan(aReportedEvent({ repeat: 2, numIntervals: 1 }, { duration: seconds(1) }), {
      mode: "implied",
    });
    expect(implied.flags).toEqual(["the event is too short to be reported again and again: reported once"]);
  });

  test("a start beyond the last interval gets a note, and the last is reported", () => {
    const plan = aPlan(aReportedEvent(counts([7, 1, "T", 1, 2])), { mode: "event" });
    expect(plan.windows.map(windowByIds)).toEqual(["13:00 [0-0]"]);
    expect(plan.flags).toEqual(["startInterval 7 is beyond the last interval"]);
  });

  test("a report too large keeps its end, a forecast its beginning", () => {
    const asked = counts([-1, -1, "T", -1, 200]);
    const [late] = aPlan(aReportedEvent(asked), { mode: "implied" }).windows;
    expect([late?.intervals[0]?.id, late?.intervals.length]).toEqual([104, 96]);
    const forecast = counts([-1, -1, "F", -1, 200]);
    const [early] = aPlan(aReportedEvent(forecast), { mode: "implied" }).windows;
    expect([early?.intervals[0]?.id, early?.intervals.length]).toEqual([0, 96]);
  });

  test("an event without end is one report at its end, or one every 15 min, for now as many as fit", () => {
    const endless = { duration: millis(1e15) };
    expect(aPlan(aReportedEvent({}, endless)).windows.map(({ intervals }) => intervals.length)).toEqual([1]);
    const fixed = aPlan(aReportedEvent({}, endless), { mode: "fixed" });
    expect([fixed.windows.length, fixed.flags]).toEqual([1, ["the event has no real end"]]);
    const all = aPlan(aReportedEvent({ repeat: -1 }, endless));
    expect([all.windows.length, all.windows[0] && windowByIds(all.windows[0])]).toEqual([96, "12:15 [0-0]"]);
  });

  test("a long event in fixed steps has longer ones", () => {
    const plan = aPlan(aReportedEvent({}, { duration: minutes(48 * 60) }), { mode: "fixed" });
    expect(plan.windows[0]?.intervals.length).toBe(96);
    expect(plan.flags).toEqual(["192 intervals are too many: made 96"]);
    const rarer = aPlan(aReportedEvent({ frequency: 5 }), { mode: "fixed" });
    expect(rarer.windows.map(windowByIds)).toEqual(["13:00 [0-0]"]);
    const never = aPlan(aReportedEvent(counts([-1, 1, "T", 5, -1])), { mode: "implied" });
    expect(never.windows.map(windowByIds)).toEqual(["13:00 [0-0]"]);
  });

  test("an event of no duration has nothing to report, with a note", () => {
    const plan = aPlan(aReportedEvent({}, { duration: millis(0) }));
    expect([plan.windows, plan.flags]).toEqual([[], ["the event's duration is zero: nothing to report"]]);
  });

  test("descriptors beyond the thirty-second are not answered, with a note", () => {
    const reports = Array.from({ length: MOST_DESCRIPTORS + 1 }, () => aDescriptor());
    const event = aReportedEvent({}, { reports });
    const plan = aPlan(event, {}, { descriptor: MOST_DESCRIPTORS });
    expect([plan.windows, plan.flags]).toEqual([
      [],
      ["too many report descriptors: this one is not answered"],
    ]);
    expect(aPlan(event, {}, { descriptor: MOST_DESCRIPTORS - 1 }).windows.length).toBe(1);
  });

  test("F57: an event at the end of time has no windows without length", () => {
    const event = aReportedEvent(counts([0, 1, "T", 1, 4]), {
      start: instant(8.64e15),
      duration: minutes(60),
    });
    expect(aPlan(event, {}, { start: instant(8.64e15) }).windows).toEqual([]);
  });

  test("F55: an unknown payload or reading type is flagged, and still planned", () => {
    const plan = aPlan(aReportedEvent({ payloadType: "FLUX", readingType: "GUESSED" }));
    expect(plan.windows.length).toBe(1);
    expect(plan.flags).toEqual([
      'payloadType "FLUX" is not available here',
      'readingType "GUESSED" is not known: read directly',
    ]);
  });
});

const MODES = ["auto", "event", "implied", "fixed", "frequencySeconds", "frequencyMinutes"] as const;
const anyCount = fc.oneof(
  fc.constant(null),
  fc.integer({ min: -2, max: 20 }),
  fc.integer(),
  fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }),
);
const anyCounts = fc.tuple(
  anyCount,
  anyCount,
  fc.constantFrom("T" as const, "F" as const),
  anyCount,
  anyCount,
);
const anyDuration = fc.oneof(
  fc.integer({ min: 1, max: 60_000 }),
  fc.integer({ min: 60_000, max: 48 * 3_600_000 }),
  fc.integer({ min: 1, max: 1e15 }),
);

test("for any counts, a plan has at most 96 reports of at most 96 intervals, in order", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...MODES),
      anyCounts,
      anyDuration,
      fc.boolean(),
      fc.integer({ min: -100_000, max: 100_000 }),
      fc.constantFrom("latest" as const, "all" as const, "none" as const),
      (mode, asked, duration, continueAfterEvent, lateBy, catchUp) => {
        const event = aReportedEvent(counts(asked), { duration: millis(duration) });
        const receivedAt = after(at("12:00"), seconds(lateBy));
        const { windows } = aPlan(event, { mode, continueAfterEvent, catchUp }, { receivedAt });
        expect(windows.length).toBeLessThanOrEqual(96);
        expect(new Set(windows.map(reportName)).size).toBe(windows.length);
        for (const [index, { intervals, moment, due }] of windows.entries()) {
          expect(intervals.length).toBeGreaterThan(0);
          expect(intervals.length).toBeLessThanOrEqual(96);
          expect(due).toBeGreaterThanOrEqual(receivedAt);
          expect(moment).toBeGreaterThanOrEqual(windows[index - 1]?.moment ?? -Infinity);
          for (const { span } of intervals) expect(span.from).toBeLessThan(span.until);
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("the windows of a report on the whole event cover it without overlap", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("auto" as const, "event" as const, "fixed" as const, "frequencyMinutes" as const),
      anyDuration,
      fc.integer({ min: -1, max: 200 }),
      fc.constantFrom(1, -1),
      (mode, duration, frequency, repeat) => {
        fc.pre(mode !== "frequencyMinutes" || duration < 90 * 60_000);
        fc.pre(repeat === 1 || duration < 24 * 3_600_000);
        const event = aReportedEvent(counts([-1, -1, "T", frequency, repeat]), {
          duration: millis(duration),
        });
        const spans = aPlan(event, { mode }).windows.flatMap(({ intervals }) =>
          intervals.map(({ span }) => span),
        );
        expect(spans[0]?.from).toBe(at("12:00"));
        expect(spans.at(-1)?.until).toBe(after(at("12:00"), millis(duration)));
        spans.slice(1).forEach(({ from }, index) => expect(from).toBe(spans[index]?.until));
      },
    ),
    { numRuns: 500 },
  );
});
