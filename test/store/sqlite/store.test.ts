import { cpSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";

import type { Alarm } from "../../../src/domain/alarm.ts";
import type { Json, AuditRow } from "../../../src/domain/audit.ts";
import type { Change } from "../../../src/domain/changes.ts";
import type { KnownEvent } from "../../../src/domain/event.ts";
import type { PriceSeries } from "../../../src/domain/prices.ts";
import { chargerId, type EventId, instant } from "../../../src/domain/units.ts";
import { anAlarm } from "../../support/anAlarm.ts";
import { aDescriptor } from "../../support/aReport.ts";
import { anEvent, live } from "../../support/anEvent.ts";
import { diskThatFillsUp } from "../../support/fullDisk.ts";
import { aDirectory, opened } from "./state.ts";
import { aRelease } from "../../support/aHold.ts";
import { commandRecord, NOON, row, tombstone } from "./words.ts";

const minute = (count: number) => instant(NOON + count * 60_000);
const hold = aRelease("bay-02", ["EV-7731"], NOON, NOON);

const decided = (charger: string, seq: number, facts: Json): readonly Change[] => [
  { kind: "command", record: commandRecord(charger, seq) },
  row("to 16 A", { charger: chargerId(charger), command: `7-${seq}`, facts }),
];

test("why a command was decided is there after a restart, unless its row is gone or cannot be read", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  const why = { words: "to 16 A", cause: "event", overruled: [], overruledCount: 0, limits: [] };
  const observed: Change = {
    kind: "command",
    record: { ...commandRecord("bay-01", 5), progress: "observed", standing: commandRecord("bay-01", 2) },
  };
  first.store.write([
    ...decided("bay-01", 1, { ...why, words: "to 6 A" }),
    ...decided("bay-01", 2, { ...why, told: { kind: "current", amperes: 16 } }),
    row("taken", { kind: "outcome", charger: chargerId("bay-01"), command: "7-2" }),
    ...decided("bay-02", 3, { words: "of another make" }),
    { kind: "command", record: commandRecord("bay-03", 4) },
    observed,
  ]);
  expect(await first.store.durable()).toEqual({ ok: true });
  first.store[Symbol.dispose]();
  expect([...opened(directory).storedState.reasons]).toEqual([["7-2", why]]);
});

test("the writes of an hour are the levels that the broker acknowledged, and re-sends, without mere extensions", async () => {
  const { store } = opened(aDirectory());
  const bay = chargerId("bay-01");
  const said = (count: number, kind: AuditRow["kind"], command: string, facts: Json, charger = bay) =>
    row("said", { at: minute(count), kind, command, charger, facts });
  const ACKNOWLEDGED = { progress: "acknowledged" };
  store.write([
    said(0, "outcome", "7-1", ACKNOWLEDGED),
    said(1, "outcome", "7-6", ACKNOWLEDGED),
    said(1, "outcome", "7-1", { progress: "followed" }),
    said(2, "outcome", "7-2", ACKNOWLEDGED),
    said(3, "decision", "7-3", { cause: "event" }),
    said(4, "outcome", "7-3", ACKNOWLEDGED),
    said(5, "outcome", "7-3", { progress: "followed" }),
    said(6, "decision", "7-4", { cause: "held" }),
    said(7, "outcome", "7-4", ACKNOWLEDGED),
    said(8, "outcome", "7-3", { progress: "notFollowed", resends: 1, resent: true }),
    said(9, "outcome", "7-3", { progress: "notFollowed", resends: 2, resent: true }),
    said(10, "outcome", "7-3", { progress: "notFollowed", resends: 2 }),
    said(11, "outcome", "7-5", ACKNOWLEDGED, chargerId("bay-02")),
  ]);
  expect(await store.durable()).toEqual({ ok: true });
  expect(store.reads.writes(bay, minute(1))).toEqual([1, 2, 4, 8, 9].map(minute));
});

test("the broker's acknowledgement of a command is read from the record: its own row is written once", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  const bay = chargerId("bay-01");
  const said = (kind: AuditRow["kind"], command: string, progress: string) =>
    row(progress, { kind, command, charger: bay, facts: { progress } });
  first.store.write([
    said("decision", "7-1", "told"),
    said("outcome", "7-1", "acknowledged"),
    said("decision", "7-2", "told"),
    said("outcome", "7-2", "failed"),
    { kind: "command", record: commandRecord("bay-01", 2) },
  ]);
  expect(await first.store.durable()).toEqual({ ok: true });
  const scope = {
    events: new Set<EventId>(),
    chargers: new Set([bay]),
    holds: new Set<string>(),
    mode: false,
  };
  expect(first.store.reads.stored(scope).commands).toEqual([commandRecord("bay-01", 2)]);
  first.store.write([said("outcome", "7-2", "acknowledged"), said("silence", "7-2", "silent")]);
  first.store[Symbol.dispose]();
  const arrived = { ...commandRecord("bay-01", 2), progress: "acknowledged", sentAt: NOON, sends: 1 };
  expect(opened(directory).storedState.commands).toEqual([arrived]);
});

test("an event that was stored before descriptors were counted has those of its last revision (L3)", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  const known = live(anEvent({ reports: [aDescriptor()] }));
  const stored = [known, tombstone("EV-2")].map((event) => ({ ...event, descriptors: undefined }));
  const old: readonly KnownEvent[] = JSON.parse(JSON.stringify(stored));
  first.store.write(old.map((event) => ({ kind: "event", known: event })));
  first.store[Symbol.dispose]();
  const { store } = opened(directory);
  expect(old.map(({ id }) => store.reads.events.event(id))).toEqual([known, tombstone("EV-2")]);
});

test("an event that was withdrawn before the anchor was kept has none", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  const old: KnownEvent = JSON.parse(JSON.stringify({ ...tombstone("EV-1"), anchor: undefined }));
  const known = { ...tombstone("EV-2"), anchor: NOON };
  first.store.write([old, known].map((event) => ({ kind: "event", known: event })));
  first.store[Symbol.dispose]();
  const { store } = opened(directory);
  expect([old, known].map(({ id }) => store.reads.events.event(id))).toEqual([tombstone("EV-1"), known]);
});

const series = (region: string, raw: string): PriceSeries => ({
  region,
  kind: "actual",
  fetchedAt: NOON,
  prices: [],
  doubts: [],
  raw,
});

test("alarms are there after a restart as they were last stored; one that was changed on the disk is left out", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  const acknowledged: Alarm = { ...anAlarm("broker"), state: "acknowledged" };
  for (const each of [anAlarm("disk"), anAlarm("clock"), anAlarm("skew"), anAlarm("broker"), acknowledged])
    first.store.write([{ kind: "alarm", alarm: each }]);
  first.store.write([{ kind: "alarmForgotten", key: "skew" }]);
  await first.store.durable();
  first.store[Symbol.dispose]();
  const again = opened(directory);
  expect(await again.store.alarms()).toEqual([acknowledged, anAlarm("clock"), anAlarm("disk")]);
  again.store[Symbol.dispose]();
  const database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec("UPDATE alarm SET body = replace(body, 'critical', 'info') WHERE id = 'disk'");
  database.close();
  expect(await opened(directory).store.alarms()).toEqual([acknowledged, anAlarm("clock")]);
});

test("the last prices of each series are there after a restart; one that was changed on the disk is left out", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  for (const one of [series("NO1", "a"), series("NO2", "b"), series("NO1", "c")])
    first.store.write([{ kind: "prices", series: one }]);
  first.store[Symbol.dispose]();
  const again = opened(directory);
  expect(again.store.reads.prices()).toEqual([series("NO1", "c"), series("NO2", "b")]);
  again.store[Symbol.dispose]();
  const database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec("UPDATE prices SET body = replace(body, 'actual', 'actuel') WHERE id = 'actual/NO1'");
  database.close();
  expect(opened(directory).store.reads.prices()).toEqual([series("NO2", "b")]);
});

test("a commit that the disk has no room for is dropped whole and reported; the next one is clean (F05)", async () => {
  const { store } = opened(aDirectory(), { maxPages: 40 });
  store.write([row("before"), { kind: "command", record: commandRecord("bay-01", 1) }]);
  expect(await store.durable()).toEqual({ ok: true });

  const flood: Change[] = [row("x".repeat(100_000)), row("y".repeat(100_000)), { kind: "hold", hold }];
  store.write(flood);
  const waiting = [store.durable(), store.durable()];
  const stored = {
    events: [],
    commands: [],
    holds: [],
    bindings: [],
    observePeriod: null,
    reasons: new Map(),
  };
  const full = { ok: false, reason: expect.stringContaining("full") };
  expect(await Promise.all(waiting)).toEqual([
    { ...full, dropped: flood, stored },
    { ...full, dropped: [], stored: null },
  ]);

  store.write([{ kind: "command", record: commandRecord("bay-01", 2) }, row("after")]);
  expect(await store.durable()).toEqual({ ok: true });
  expect(store.reads.audit({}).map(({ words }) => words)).toEqual(["before", "after"]);
  expect(store.reads.verify()).toMatchObject({ ok: true, rows: 2 });
  expect(store.stats()).toMatchObject({ commits: 2, failures: 1 });
});

test("changes that a failed commit dropped are handed to control alone, also with the next commit that succeeds (F05)", async () => {
  let isFull = false;
  diskThatFillsUp(() => isFull);
  onTestFinished(() => void vi.restoreAllMocks());
  const { store } = opened(aDirectory());
  isFull = true;
  const first: Change = { kind: "command", record: commandRecord("bay-01", 1) };
  const second: Change = { kind: "command", record: commandRecord("bay-02", 2) };
  store.write([first]);
  expect(await store.committed()).toEqual({ ok: false, reason: expect.stringContaining("full") });
  isFull = false;
  store.write([second]);
  expect(await store.committed()).toEqual({ ok: true });
  expect(await store.durable()).toMatchObject({
    ok: true,
    lost: { dropped: [first], stored: { commands: [] } },
  });
  expect(await store.durable()).toEqual({ ok: true });
});

test("a failed commit that drops nothing does not log that changes are dropped (F05)", async () => {
  let isFull = false;
  diskThatFillsUp(() => isFull);
  onTestFinished(() => void vi.restoreAllMocks());
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const { store } = opened(aDirectory(), { log });
  isFull = true;
  store.write([row("the broker is away", { kind: "silence" })]);
  expect(await store.durable()).toMatchObject({ ok: false, dropped: [] });
  store.write([row("a new event", { kind: "event" })]);
  expect(await store.durable()).toMatchObject({ ok: false });
  const logged = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg.includes("are dropped"));
  expect(logged).toMatchObject([{ changes: 1, kept: 1 }]);
});

test("a store that is closed on a full disk stays closed, whatever still waits for a commit", async () => {
  let isFull = false;
  diskThatFillsUp(() => isFull);
  onTestFinished(() => void vi.restoreAllMocks());
  const directory = aDirectory();
  const { store } = opened(directory);
  isFull = true;
  store.write([row("the broker is away", { kind: "silence" })]);
  const answer = store.durable();
  store[Symbol.dispose]();
  expect(await answer).toMatchObject({ ok: false });
  isFull = false;
  // The turn of the loop in which the commit was due passes.
  await new Promise((resolve) => setImmediate(resolve));
  const next = opened(directory);
  expect(next.store.reads.audit({})).toEqual([]);
});

test("rows on silences and outages outlive failed commits, before everything newer, and so does what is asked for", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let isFull = false;
  diskThatFillsUp(() => isFull);
  onTestFinished(() => void vi.restoreAllMocks());
  // A commit on a busy machine would count as slow, and the next one would wait for a timer that stands still.
  const { store } = opened(aDirectory(), { monotonic: () => 0 });
  isFull = true;
  store.write([row("the broker is away", { kind: "silence" }), row("a new event", { kind: "event" })]);
  const stored = vi.fn<() => void>();
  void store.writeUntilStored([row("released", { kind: "decision" }), { kind: "hold", hold }]).then(stored);
  expect(await store.durable()).toMatchObject({ ok: false });
  store.write([row("the clock was set", { kind: "daemon" })]);
  expect(await store.durable()).toMatchObject({ ok: false });
  expect(store.reads.audit({})).toEqual([]);
  expect(stored).not.toHaveBeenCalled();

  isFull = false;
  store.write([row("newer", { kind: "event" })]);
  expect(await store.durable()).toEqual({ ok: true });
  const words = () => store.reads.audit({}).map((found) => found.words);
  expect(words()).toEqual(["the broker is away", "released", "the clock was set", "newer"]);
  const scope = {
    events: new Set<EventId>(),
    chargers: new Set([chargerId("bay-02")]),
    holds: new Set([hold.id]),
    mode: false,
  };
  expect(store.reads.stored(scope).holds).toEqual([hold]);
  expect(stored).toHaveBeenCalledOnce();

  isFull = true;
  store.write([row("the broker is there again", { kind: "silence" })]);
  expect(await store.durable()).toMatchObject({ ok: false });
  isFull = false;
  // Nobody writes anything: it is tried again all the same.
  await vi.advanceTimersByTimeAsync(5_000);
  expect(words().slice(4)).toEqual(["the broker is there again"]);
});

test("rows that outlive failed commits are in the record once, where the disk said that they are not stored and they are", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let isDoubtful = false;
  diskThatFillsUp(
    () => false,
    () => isDoubtful,
  );
  onTestFinished(() => void vi.restoreAllMocks());
  const { store } = opened(aDirectory(), { monotonic: () => 0 });
  isDoubtful = true;
  const stored = vi.fn<() => void>();
  void store.writeUntilStored([row("report sent", { kind: "report" })]).then(stored);
  expect(await store.durable()).toMatchObject({ ok: false, isUnsure: true });
  store.write([row("the broker is away", { kind: "silence" })]);
  expect(await store.durable()).toMatchObject({ ok: false });
  await vi.advanceTimersByTimeAsync(20_000);
  isDoubtful = false;
  store.write([row("newer", { kind: "event" })]);
  expect(await store.durable()).toMatchObject({ ok: true });
  const words = store.reads.audit({}).map((found) => found.words);
  expect(words).toEqual(["report sent", "the broker is away", "newer"]);
  expect(stored).toHaveBeenCalledOnce();
});

test("nothing counts as stored while the state folder is gone, and a folder that is put back is used on", async () => {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write([row("before")]);
  expect(await store.durable()).toEqual({ ok: true });
  renameSync(directory, `${directory}.away`);
  store.write([row("nowhere")]);
  expect(await store.durable()).toMatchObject({ ok: false, reason: expect.stringContaining("are gone") });
  expect(store.beat(NOON)).toMatchObject({ ok: false, isReadable: true });
  renameSync(`${directory}.away`, directory);
  store.write([row("after")]);
  expect(await store.durable()).toMatchObject({ ok: true });
  expect(store.reads.audit({}).map(({ words }) => words)).toEqual(["before", "after"]);
});

test("nothing counts as stored while a copy stands in the place of the state folder", async () => {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write([row("before")]);
  expect(await store.durable()).toEqual({ ok: true });
  cpSync(directory, `${directory}.copy`, { recursive: true });
  renameSync(directory, `${directory}.away`);
  renameSync(`${directory}.copy`, directory);
  store.write([row("into a file without a name")]);
  expect(await store.durable()).toMatchObject({ ok: false, reason: expect.stringContaining("are others") });
  store[Symbol.dispose]();
  const again = opened(directory).store;
  again.write([row("after")]);
  expect(await again.durable()).toEqual({ ok: true });
  expect(again.reads.audit({}).map(({ words }) => words)).toEqual(["before", "after"]);
});

test("a beat is a real commit, and costs none where one worked since the last beat", async () => {
  const directory = aDirectory();
  const { store } = opened(directory);
  const before = store.stats().bytes;
  expect(store.beat(NOON)).toEqual({ ok: true });
  const beaten = store.stats().bytes;
  expect(beaten).toBeGreaterThan(before);
  store.write([row("16 A")]);
  await store.durable();
  const written = store.stats().bytes;
  expect(store.beat(NOON)).toEqual({ ok: true });
  expect(store.stats().bytes).toBe(written);
  store[Symbol.dispose]();
  expect(opened(directory).store.reads.verify()).toMatchObject({ ok: true });
});

test("after a fault other than a full disk the database is opened again, before the next commit (F07)", async () => {
  const directory = aDirectory();
  const reopened: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void reopened.push(line) });
  const { store } = opened(directory, { log });
  const { exec } = DatabaseSync.prototype;
  let isBroken = true;
  const handles = new Set<DatabaseSync>();
  vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (this: DatabaseSync, sql: string) {
    if (sql === "COMMIT") handles.add(this);
    if (sql === "COMMIT" && isBroken)
      throw Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 10 });
    exec.call(this, sql);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  store.write([row("lost")]);
  expect(await store.durable()).toMatchObject({ ok: false });
  isBroken = false;
  store.write([row("kept")]);
  expect(await store.durable()).toEqual({ ok: true });
  expect(handles.size).toBe(2);
  expect(reopened.filter((line) => line.includes("database opened again after a fault"))).toHaveLength(1);
  expect(store.reads.audit({}).map(({ words }) => words)).toEqual(["kept"]);
});
