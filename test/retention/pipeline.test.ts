import { expect, onTestFinished, test, vi } from "vitest";

import { summaryOf } from "../../src/domain/event.ts";
import { instant, millis } from "../../src/domain/units.ts";
import { RetentionAlarms } from "../../src/retention/rules.ts";
import { retention } from "../../src/retention/pipeline.ts";
import { aDepot } from "../support/aDepot.ts";
import { aPicture } from "../support/aPicture.ts";
import { anEvent, live } from "../support/anEvent.ts";

const now = () => instant(Date.now());
const days = (count: number) => millis(count * 86_400_000);

const SHORT = { events: "8d", withdrawn: "8d", audit: "8d", reports: "8d" };

const pruning = () => aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").withRetention(SHORT);

test("an old ended event leaves memory and disk once the partner no longer lists it", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("2026-12-05T00:00:00Z");
  expect(depot.knownEvents()).toEqual(["EV-1"]);
  depot.partner.events.clear();
  await depot.until("2026-12-07T00:00:00Z");
  expect(depot.knownEvents()).toEqual([]);
  await depot.restart();
  expect(depot.knownEvents()).toEqual([]);
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("an old revision of a pruned event commands no charger (S5)", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("09:30");
  depot.partner.events.clear();
  await depot.until("2026-12-02T00:00:00Z");
  expect(depot.knownEvents()).toEqual([]);
  depot.forget();
  await depot.deliver({ start: "08:00", amperes: 10 });
  await depot.passes(3_600_000);
  expect([depot.knownEvents(), depot.messages()]).toEqual([["EV-1"], []]);
});

test("a tombstone outlives the retries of a sender, then it is pruned", async () => {
  const depot = await pruning().running();
  await depot.withdraw("EV-9", 0);
  await depot.until("2026-11-28T00:00:00Z");
  expect(depot.knownEvents()).toEqual(["EV-9"]);
  await depot.until("2026-12-01T00:00:00Z");
  expect(depot.knownEvents()).toEqual([]);
});

test("old rows are pruned in one commit with a checkpoint, and the rest verifies, also after a restart (S8, S10)", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("2026-12-02T00:00:00Z");
  expect(depot.audit("checkpoint").at(-1)).toMatch(
    /^the oldest \d+ rows of the record, up to row \d+ of 2026-11-/,
  );
  expect(depot.audit("decision")).toEqual([]);
  expect(depot.verified()).toMatchObject({ ok: true });
  await depot.restart();
  expect(depot.verified()).toMatchObject({ ok: true });
});

test("a clock that is years ahead of the partner's prunes nothing (F20)", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("09:30");
  depot.partner.events.clear();
  await depot.until("12:00");
  depot.clockAgrees = false;
  vi.setSystemTime(Date.parse("2036-11-21T12:00:00Z"));
  await depot.until("2036-11-23T12:00:00Z");
  expect(depot.knownEvents()).toEqual(["EV-1"]);
  expect(depot.audit("checkpoint")).toEqual([]);
  expect(depot.audit("decision")).toHaveLength(2);
});

test("a full disk delays pruning to the next day and loses nothing (F05)", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("09:30");
  depot.partner.events.clear();
  await depot.until("2026-11-29T00:00:00Z");
  depot.disk.full = true;
  await depot.until("2026-11-30T12:00:00Z");
  depot.disk.full = false;
  expect(depot.knownEvents()).toEqual(["EV-1"]);
  await depot.until("2026-12-02T12:00:00Z");
  expect(depot.knownEvents()).toEqual([]);
  expect(depot.verified()).toMatchObject({ ok: true });
});

test("a record near its cap raises one warning, and another when rows are pruned early", async () => {
  vi.useFakeTimers({ now: Date.parse("2026-12-21T00:00:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  let rows = 700;
  const written: unknown[] = [];
  const alarms = new RetentionAlarms();
  const keep = { events: days(8), withdrawn: days(8), reports: days(8), audit: days(8) };
  const pruning$ = retention(
    aPicture(),
    { ...keep, maxEvents: 1000, maxAuditRows: 1000, bytes: 1e9, readingBytes: 130 },
    {
      now,
      alarms,
      clockAgrees: () => true,
      recordRows: async () => rows,
      oldRows: async ({ maxRows }) => {
        const excess = rows - maxRows;
        if (excess <= 0) return null;
        rows = maxRows;
        return { rows: excess, through: excess, hash: "", at: instant(now() - days(1)) };
      },
      oldReports: async () => [],
      isOpenReport: () => false,
      reportedOn: () => new Set(),
      write: (changes) =>
        void written.push(...changes.flatMap((row) => (row.kind === "audit" ? [row.entry.words] : []))),
      committed: async () => ({ ok: true }),
    },
  ).subscribe();
  onTestFinished(() => pruning$.unsubscribe());
  await vi.advanceTimersByTimeAsync(days(0.5));
  expect([written, alarms.open]).toEqual([[], []]);
  rows = 850;
  await vi.advanceTimersByTimeAsync(days(0.1));
  expect(written).toEqual([
    "rows of the record use 85 % of their disk space: beyond it the oldest are pruned before their age (retention.audit)",
  ]);
  rows = 1100;
  await vi.advanceTimersByTimeAsync(days(0.5));
  expect(written.slice(1)).toEqual([
    expect.stringMatching(/^the oldest 100 rows of the record/),
    "rows of the record are pruned before their age (retention.audit): their disk space is used up",
  ]);
  expect(alarms.open).toMatchObject([{ kind: "record", leftEarly: true, used: 1 }]);
});

test("an event pruned for its size raises a warning and leaves memory and disk", async () => {
  vi.useFakeTimers({ now: Date.parse("2026-11-22T00:00:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  const depot = aPicture();
  const large = summaryOf(live(anEvent()), 20_000_000);
  depot.schedule.condense(large);
  depot.absences.listed(new Set(), [], now());
  const alarms = new RetentionAlarms();
  const written: string[] = [];
  const keep = { events: days(90), withdrawn: days(8), reports: days(8), audit: days(8) };
  const pruning$ = retention(
    depot,
    { ...keep, maxEvents: 1000, maxAuditRows: 1000, bytes: 1e8, readingBytes: 130 },
    {
      now,
      alarms,
      clockAgrees: () => true,
      recordRows: async () => 0,
      oldRows: async () => null,
      oldReports: async () => [],
      isOpenReport: () => false,
      reportedOn: () => new Set(),
      write: (changes) => void written.push(...changes.map(({ kind }) => kind)),
      committed: async () => ({ ok: true }),
    },
  ).subscribe();
  onTestFinished(() => pruning$.unsubscribe());
  await vi.advanceTimersByTimeAsync(90_000);
  expect(depot.known.size).toBe(0);
  expect(written).toContain("eventForgotten");
  expect(alarms.open[0]?.message).toContain("ended events are pruned before their age (retention.events)");
});

test("an event revised during the pruning of its old revision stays", async () => {
  vi.useFakeTimers({ now: Date.parse("2026-12-21T00:00:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  const depot = aPicture();
  const old = live(anEvent());
  depot.schedule.put(old, now());
  depot.absences.listed(new Set(), [], now());
  const anew = live(anEvent({ start: instant(now() + days(2)), revision: now() }));
  const keep = { events: days(8), withdrawn: days(8), reports: days(8), audit: days(8) };
  const written: string[] = [];
  const pruning$ = retention(
    depot,
    { ...keep, maxEvents: 1000, maxAuditRows: 1000, bytes: 1e9, readingBytes: 130 },
    {
      now,
      alarms: new RetentionAlarms(),
      recordRows: async () => 0,
      clockAgrees: () => true,
      oldRows: async () => null,
      oldReports: async () => [],
      isOpenReport: () => false,
      reportedOn: () => new Set(),
      write: (changes) => void written.push(...changes.map(({ kind }) => kind)),
      committed: async () => {
        if (depot.known.get(old.id) === old) depot.schedule.put(anew, now());
        return { ok: true };
      },
    },
  ).subscribe();
  onTestFinished(() => pruning$.unsubscribe());
  await vi.advanceTimersByTimeAsync(90_000);
  expect(written).toEqual(["eventForgotten"]);
  expect([...depot.known.values()]).toEqual([anew]);
});
