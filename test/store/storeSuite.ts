import * as fc from "fast-check";
import { expect, test } from "vitest";

import { anAlarm } from "../support/anAlarm.ts";
import { acknowledgement, type AuditRow, chainHash, type Json } from "../../src/domain/audit.ts";
import type { Change } from "../../src/domain/changes.ts";
import { commandId, type CommandRecord } from "../../src/domain/command.ts";
import { departureKey, type SetDeparture } from "../../src/domain/departure.ts";
import type { PriceSeries } from "../../src/domain/prices.ts";
import type { OpenedState, Store } from "../../src/domain/store.ts";
import { after, chargerId, eventId, instant, millis, minutes, vehicleId } from "../../src/domain/units.ts";
import { outcomeCount } from "../../src/operator/handoverEvents.ts";
import { pagesOfEvent } from "../../src/operator/recordPages.ts";
import { readingsOf } from "../../src/reporting/reading.ts";
import { GENESIS } from "../../src/store/chain.ts";
import { aRelease } from "../support/aHold.ts";
import { commandRecord, NOON, reportRecord, row, tombstone } from "./sqlite/words.ts";

/** An empty state of a site. Each call opens it for another run; the run before has disposed of its store. */
export type NewSite = () => () => Promise<OpenedState>;

const [bay, other] = [chargerId("bay-01"), chargerId("bay-02")];
const bus = vehicleId("veh-214");
const DAY = 86_400_000;
const seconds = (count: number) => after(NOON, millis(count * 1000));
const hold = aRelease("bay-02", ["EV-7731"], NOON, NOON);
const binding = {
  charger: bay,
  vehicle: bus,
  identity: null,
  by: "anna",
  reason: "it stands there",
  since: NOON,
  key: null,
};

const about = ({ command }: CommandRecord) => ({
  charger: command.charger,
  vehicle: command.vehicle,
  event: command.event,
  command: commandId(command),
});
const accepted = (record: CommandRecord): Change =>
  row("accepted", { ...about(record), kind: "outcome", facts: { progress: "accepted" } });
const acknowledged = ({ command }: CommandRecord): Change => ({
  kind: "audit",
  entry: acknowledgement(command, NOON, seconds(1)),
});

const quarantined = (n: number): Change => ({
  kind: "quarantine",
  at: NOON,
  source: "webhook",
  rejected: { kind: "rejected", id: null, path: `[${n}]`, reason: "not an event", raw: "{}" },
});

const duty = (event: string): Change => ({
  kind: "duty",
  duty: {
    event: eventId(event),
    descriptor: 0,
    receivedAt: NOON,
    issued: { k: 0, moment: NOON },
    withdrawn: null,
    state: "open",
    reason: null,
  },
});

const series = (kind: PriceSeries["kind"], fetchedAt: number): PriceSeries => ({
  region: "NO1",
  kind,
  fetchedAt: instant(fetchedAt),
  prices: [],
  doubts: [],
  raw: "{}",
});

const message = (power: number, at = NOON, charger = bay) =>
  readingsOf({ charger, vehicle: bus }, { at, powerW: power }, at, null);

async function commits(store: Store, ...changes: readonly Change[]): Promise<void> {
  store.write(changes);
  expect(await store.durable()).toEqual({ ok: true });
}

/** Prunes one step as retention does. Returns the number of pruned rows. */
async function prune(store: Store, query: Parameters<Store["oldRows"]>[0]): Promise<number> {
  const old = await store.oldRows(query);
  if (old === null) return 0;
  const { through, hash, rows } = old;
  const checkpoint = { kind: "checkpoint", facts: { through, hash }, at: after(NOON, minutes(1e6)) } as const;
  await commits(store, row("pruned", checkpoint), { kind: "auditPruned", through });
  return rows;
}

const period = {
  since: NOON,
  until: after(NOON, minutes(60)),
  cap: after(NOON, minutes(1440)),
  by: "anna",
  reason: "work",
};

/** What every store keeps of the promises in `domain/store.ts`. */
export function storeSuite(newSite: NewSite): void {
  const opened = async (): Promise<Store> => (await newSite()()).store;

  test("changes that are due soon share the commit of urgent ones, and are committed without them as well", async () => {
    const { store } = await newSite()();
    await using _ = store;
    const before = store.stats().commits;
    store.write([row("first")]);
    const soon = store.durable("soon");
    store.write([row("second")]);
    expect(await Promise.all([soon, store.durable()])).toEqual([{ ok: true }, { ok: true }]);
    expect(store.stats().commits).toBe(before + 1);
    store.write([row("third")]);
    expect(await store.durable("soon")).toEqual({ ok: true });
    expect(store.stats().commits).toBe(before + 2);
  });

  test("acknowledged changes are there after a restart: events, commands, holds, named vehicles, and when the last row was written", async () => {
    const open = newSite();
    const first = await open();
    await commits(
      first.store,
      { kind: "event", known: tombstone("EV-1") },
      { kind: "command", record: commandRecord("bay-01", 1) },
      { kind: "command", record: commandRecord("bay-01", 2) },
      { kind: "hold", hold },
      { kind: "hold", hold: { ...hold, id: "hold-7-2" } },
      { kind: "holdForgotten", id: "hold-7-2" },
      { kind: "binding", binding },
      { kind: "binding", binding: { ...binding, charger: other } },
      { kind: "bindingForgotten", charger: other },
      { kind: "observePeriod", period: null },
      { kind: "observePeriod", period },
      row("16 A"),
    );
    await first.store[Symbol.asyncDispose]();
    const { store, storedState, epoch } = await open();
    expect(epoch).toBeGreaterThan(first.epoch);
    const [id, unknown] = [eventId("EV-1"), eventId("EV-9")];
    expect(await store.archive.whole([id, unknown])).toEqual(new Map([[id, tombstone("EV-1")]]));
    expect([...(await store.archive.summaries([id, unknown])).keys()]).toEqual([id]);
    expect(storedState).toEqual({
      events: [expect.objectContaining({ kind: "over", was: "withdrawn", id: "EV-1" })],
      commands: [commandRecord("bay-01", 2)],
      reasons: new Map(),
      holds: [hold],
      bindings: [binding],
      observePeriod: period,
      duties: [],
      outbox: [],
      evaluatedAt: NOON,
      recordedAt: NOON,
      aliveAt: NOON,
      edited: [],
    });
  });

  test("answers to commands are found in the record after a restart: of the broker, of the charger, of both", async () => {
    const open = newSite();
    const first = await open();
    const [one, two, three, four] = [1, 2, 3, 4].map((seq) => commandRecord(`bay-0${seq}`, seq));
    if (!one || !two || !three || !four) throw new Error("four commands");
    const decided = [one, two, three, four].flatMap((record): Change[] => [
      row("decided", about(record)),
      { kind: "command", record },
    ]);
    await commits(first.store, ...decided);
    await commits(first.store, acknowledged(one), acknowledged(three), accepted(one));
    await commits(first.store, accepted(two));
    await first.store[Symbol.asyncDispose]();
    const { storedState } = await open();
    expect(storedState.commands.map(({ progress, sentAt, sends }) => [progress, sentAt, sends])).toEqual([
      ["accepted", seconds(1), 1],
      ["accepted", null, 0],
      ["acknowledged", seconds(1), 1],
      ["planned", null, 0],
    ]);
  });

  test("all who write in one turn of the loop share one commit", async () => {
    const store = await opened();
    const answers = [1, 2, 3].map((n) => {
      store.write([row(`row ${n}`)]);
      return store.durable();
    });
    expect(await Promise.all(answers)).toEqual([{ ok: true }, { ok: true }, { ok: true }]);
    expect(store.stats()).toMatchObject({ commits: 1, failures: 0, failing: null });
    expect((await store.audit({})).map(({ seq, words }) => [seq, words])).toEqual([
      [1, "row 1"],
      [2, "row 2"],
      [3, "row 3"],
    ]);
  });

  test("with nothing written there is nothing to wait for", async () => {
    const store = await opened();
    store.write([]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(store.stats().commits).toBe(0);
  });

  test("rows reach the log after their commit, with their place in the chain", async () => {
    const store = await opened();
    const seen: AuditRow[] = [];
    store.onCommitted = (rows) => seen.push(...rows);
    store.write([row("16 A", { facts: { a: [1, null] } })]);
    expect(seen).toEqual([]);
    await store.durable();
    expect(seen).toEqual(await store.audit({}));
    const [{ seq, hash } = { seq: 0, hash: "" }] = seen;
    expect(store.head()).toMatchObject({ seq, hash });
    expect(await store.hashes([seq, 99])).toEqual(new Map([[seq, hash]]));
  });

  test("the rows on an event are found by their numbers, and read in parts, each with the hash before it", async () => {
    const store = await opened();
    const event = eventId("EV-1");
    await commits(
      store,
      row("1", { event, charger: bay, facts: { winner: { event }, told: { kind: "current" } } }),
      row("2", { event: eventId("EV-2"), charger: other }),
      row("3", { event, charger: bay, kind: "outcome" }),
      row("4", { event: eventId("EV-2"), charger: bay, facts: { winner: { event: "EV-2" } } }),
      row("5", { event: eventId("EV-2"), charger: bay }),
    );
    const found = await store.eventRows(event, NOON);
    expect(found).toEqual({ ok: true, seqs: [1, 3, 4], checkpoint: null });
    const rows = await store.recordRows([1, 3, 4, 99]);
    expect(rows.map(({ words }) => words)).toEqual(["1", "3", "4"]);
    const hashes = await store.hashes([2, 3]);
    expect(rows.map(({ previous }) => previous)).toEqual([GENESIS.hash, hashes.get(2), hashes.get(3)]);
    for (const { previous, text, hash } of rows) expect(chainHash(previous, text)).toBe(hash);
  });

  test("changes that have to survive are stored by the next commit, and marked as stored", async () => {
    const store = await opened();
    const stored = store.writeUntilStored([row("released")]);
    await store.durable();
    await stored;
    expect((await store.audit({})).map(({ words }) => words)).toEqual(["released"]);
  });

  test("a stop commits what is staged, and nothing can be written after it", async () => {
    const open = newSite();
    const { store } = await open();
    store.write([row("stopped")]);
    await store[Symbol.asyncDispose]();
    expect(() => store.write([row("late")])).toThrow("closed");
    expect(await (await open()).store.audit({})).toHaveLength(1);
  });

  test("the record can be asked by event, by charger, from a row on, and newest first", async () => {
    const store = await opened();
    await commits(
      store,
      row("1", { event: eventId("EV-1"), charger: bay }),
      row("2", { event: eventId("EV-2"), charger: bay }),
      row("3", { event: eventId("EV-1"), charger: other }),
      row("4"),
    );
    const words = async (query: Parameters<Store["audit"]>[0]) =>
      (await store.audit(query)).map((found) => found.words);
    expect(await words({ event: "EV-1" })).toEqual(["1", "3"]);
    expect(await words({ charger: "bay-01" })).toEqual(["1", "2"]);
    expect(await words({ event: "EV-1", charger: "bay-02" })).toEqual(["3"]);
    expect(await words({ after: 2 })).toEqual(["3", "4"]);
    expect(await words({ newest: true, limit: 2 })).toEqual(["4", "3"]);
    expect(await words({ newest: true, before: 3 })).toEqual(["2", "1"]);
    expect(await words({ charger: "bay-01", newest: true, before: 2 })).toEqual(["1"]);
  });

  test("a handover counts each of 20,000 vehicles of an event, page by page", async () => {
    const store = await opened();
    const event = eventId("EV-1");
    const vehicles = Array.from({ length: 20_000 }, (_, n) => `veh-${n}`);
    const decided = (id: string, command: string) =>
      row("10 A", { vehicle: vehicleId(id), event, command, facts: { winner: { event } } });
    const measured = (id: string, command: string, progress: string) =>
      row(progress, { kind: "outcome", vehicle: vehicleId(id), event, command, facts: { progress } });
    for (let from = 0; from < vehicles.length; from += 2_000) {
      const some = vehicles.slice(from, from + 2_000);
      await commits(
        store,
        ...some.map((id) => decided(id, `7-${id}`)),
        ...some.map((id) => measured(id, `7-${id}`, id.endsWith("9") ? "notFollowed" : "followed")),
      );
    }
    const count = outcomeCount(event, new Set(vehicles));
    let most = 0;
    for await (const page of pagesOfEvent(store, event)) {
      most = Math.max(most, page.length);
      count.add(page);
    }
    const { followed, notFollowed } = count.outcome();
    expect([followed.length, notFollowed.length, most]).toEqual([18_000, 2_000, 256]);
  }, 60_000);

  test("a row always reads back and verifies, whatever text it carries", async () => {
    const store = await opened();
    const anyText = fc.string({ unit: "binary" });
    const anything = fc.record({ words: anyText, vehicle: anyText, facts: fc.jsonValue() });
    await fc.assert(
      fc.asyncProperty(anything, async ({ words, vehicle, facts }) => {
        // A stray half of a surrogate pair, as a sender may cut it.
        const cut = `${words}\ud800`;
        const json: Json = JSON.parse(JSON.stringify(facts));
        await commits(store, row(cut, { vehicle: vehicleId(vehicle), facts: json }));
        const [newest] = await store.audit({ newest: true, limit: 1 });
        expect(newest).toMatchObject({ words: cut.toWellFormed(), vehicle: vehicle.toWellFormed() });
        expect(newest?.facts).toEqual(json);
      }),
    );
    expect(await store.verify()).toMatchObject({ ok: true });
  });

  test("rows beyond the number go whatever their age, and the record still verifies", async () => {
    const store = await opened();
    expect(await store.oldRows({ before: instant(NOON * 2), maxRows: 0, most: 10 })).toBeNull();
    await commits(store, ...Array.from({ length: 57 }, (_, n) => row(`row ${n}`)));
    const query = { before: null, maxRows: 20, most: 10 };
    const gone: number[] = [];
    for (let step = await prune(store, query); step > 0; step = await prune(store, query)) gone.push(step);
    expect(gone).toEqual([10, 10, 10, 10, 10]);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 12 });
  });

  test("a forgotten event takes only its own duties along", async () => {
    const open = newSite();
    const { store } = await open();
    const known = tombstone("EV");
    await commits(store, { kind: "event", known }, duty("EV"), duty("EV/1"), duty("EV0"));
    await commits(store, { kind: "eventForgotten", id: eventId("EV") });
    expect((await store.owed()).duties.map(({ event }) => event)).toEqual(["EV/1", "EV0"]);
    await store[Symbol.asyncDispose]();
    const { storedState } = await open();
    expect(storedState.events).toEqual([]);
    expect(storedState.duties.map(({ event }) => event)).toEqual(["EV/1", "EV0"]);
  });

  test("reports are listed the newest first, of one event or of all, each with the very body", async () => {
    const store = await opened();
    for (const name of ["EV-1/0/0", "EV-2/0/0", "EV-1/0/1"])
      await commits(store, { kind: "report", record: reportRecord(name), body: `{"name":"${name}"}` });
    const names = async (query: Parameters<Store["reports"]>[0]) =>
      (await store.reports(query)).map(({ name }) => name);
    expect(await names({})).toEqual(["EV-1/0/1", "EV-2/0/0", "EV-1/0/0"]);
    expect(await names({ event: "EV-1", limit: 1 })).toEqual(["EV-1/0/1"]);
    expect(await store.report("EV-2/0/0")).toEqual({
      record: reportRecord("EV-2/0/0"),
      body: '{"name":"EV-2/0/0"}',
    });
    expect(await store.report("EV-9/0/0")).toBeNull();
    expect((await store.owed()).outbox).toHaveLength(3);
  });

  test("a closed report goes at its age, one with a next try never", async () => {
    const store = await opened();
    const closed = reportRecord("EV-1/0/0", { state: "sent", nextTry: null });
    await commits(
      store,
      { kind: "report", record: closed, body: "{}" },
      { kind: "report", record: reportRecord("EV-2/0/0"), body: "{}" },
    );
    expect(await store.oldReports(closed.composedAt, 10)).toEqual([]);
    expect(await store.oldReports(instant(closed.composedAt + 1), 10)).toEqual(["EV-1/0/0"]);
    await commits(store, { kind: "reportForgotten", name: "EV-1/0/0" });
    expect((await store.reports({})).map(({ name }) => name)).toEqual(["EV-2/0/0"]);
  });

  test("the newest 1,000 of the unreadable input are kept", async () => {
    const store = await opened();
    await commits(store, ...Array.from({ length: 1201 }, (_, n) => quarantined(n)));
    const kept = await store.quarantine(5000);
    expect(kept).toHaveLength(1000);
    expect(kept[0]).toEqual({
      at: NOON,
      source: "webhook",
      event: null,
      path: "[1200]",
      reason: "not an event",
      raw: "{}",
    });
  });

  test("alarms are kept as they were last stored, until they are deleted", async () => {
    const store = await opened();
    const [broker, disk] = [anAlarm("broker"), anAlarm("disk")];
    await commits(store, { kind: "alarm", alarm: broker }, { kind: "alarm", alarm: disk });
    await commits(store, { kind: "alarm", alarm: { ...broker, state: "cleared", clearedAt: NOON } });
    await commits(store, { kind: "alarmForgotten", key: "disk" });
    expect(await store.alarms()).toEqual([{ ...broker, state: "cleared", clearedAt: NOON }]);
  });

  test("departures and plug-ins are kept as they were last stored, until they are deleted", async () => {
    const open = newSite();
    const { store: first } = await open();
    const leaves = (at: number, by: string): SetDeparture => ({
      vehicle: bus,
      at: instant(at),
      need: { kind: "energy", wh: 18_000 },
      source: "api",
      by,
      setAt: NOON,
    });
    const plugIn = { vehicle: bus, at: NOON, energyWh: 5_000 };
    await commits(
      first,
      { kind: "departure", departure: leaves(NOON, "kari") },
      { kind: "departure", departure: leaves(NOON, "ben") },
      { kind: "departure", departure: leaves(NOON + 1, "kari") },
      { kind: "departureForgotten", key: departureKey(leaves(NOON + 1, "kari")) },
      { kind: "plugIn", charger: bay, plugIn },
      { kind: "plugIn", charger: other, plugIn },
      { kind: "plugInForgotten", charger: other },
    );
    await first[Symbol.asyncDispose]();
    const { store } = await open();
    expect(await store.departures()).toEqual({
      departures: [leaves(NOON, "ben")],
      plugIns: new Map([[bay, plugIn]]),
    });
    await store[Symbol.asyncDispose]();
  });

  test("the last prices of each series replace those before", async () => {
    const store = await opened();
    await commits(store, { kind: "prices", series: series("actual", NOON) });
    await commits(store, { kind: "prices", series: series("forecast", NOON) });
    await commits(store, { kind: "prices", series: series("actual", NOON + 1) });
    const kept = (await store.prices()).map(({ kind, fetchedAt }) => `${kind} ${fetchedAt - NOON}`);
    expect(new Set(kept)).toEqual(new Set(["actual 1", "forecast 0"]));
    expect(kept).toHaveLength(2);
  });

  test("every message is found in its time and only there, whatever the order", async () => {
    const offset = fc.integer({ min: -600, max: 600 });
    const anyMessages = fc.uniqueArray(fc.tuple(offset, fc.constantFrom(bay, other)), { selector: String });
    await fc.assert(
      fc.asyncProperty(anyMessages, offset, offset, async (said, from, until) => {
        const open = newSite();
        const { store: first } = await open();
        for (const [at, charger] of said) first.keepReadings(message(at, seconds(at), charger));
        const found = async (store: Store, chargers = [bay]) =>
          (await store.readings(chargers, seconds(from), seconds(until))).map(({ value }) => value);
        const waiting = await found(first);
        await first[Symbol.asyncDispose]();
        const { store } = await open();
        const stored = await found(store);
        const without = ["bay-03", "bay-04", "bay-05", "bay-06"].map((id) => chargerId(id));
        expect(await found(store, [bay, ...without])).toEqual(stored);
        await store[Symbol.asyncDispose]();
        const expected = said.filter(([at, charger]) => charger === bay && from <= at && at < until);
        expect(stored).toEqual(expected.map(([at]) => at).toSorted((a, b) => a - b));
        expect(new Set(waiting)).toEqual(new Set(stored));
      }),
      { numRuns: 20 },
    );
  });

  test("what is read of many windows at once is what is read of one after the other", async () => {
    const open = newSite();
    const { store: first } = await open();
    const days = [-3, -2, -1, 0].map((day) => after(NOON, millis(day * DAY)));
    for (const [index, at] of days.entries()) first.keepReadings(message(index, at, index % 2 ? bay : other));
    await first[Symbol.asyncDispose]();
    const { store } = await open();
    // These wait for their commit.
    store.keepReadings([...message(9, seconds(9)), ...message(8, seconds(8), other)]);
    const windows = days.map((from) => ({ from, until: after(from, millis(60_000)) }));
    windows.push({ from: NOON, until: NOON });
    const seats = await store.seatsIn(bus, windows);
    expect(seats).toEqual(await Promise.all(windows.map(({ from, until }) => store.seats(bus, from, until))));
    for (const more of [[], ["bay-03", "bay-04", "bay-05", "bay-06"].map((id) => chargerId(id))]) {
      const asked = windows.map((window, index) => ({
        ...window,
        chargers: [...(seats[index] ?? []), ...more],
      }));
      const together = await store.readingsIn(asked, async () => {});
      const apart: unknown[] = [];
      for (const { chargers, from, until } of asked)
        apart.push(...(await store.readings(chargers, from, until)));
      expect(together).toHaveLength(6);
      expect(new Set(together.map((each) => JSON.stringify(each)))).toEqual(
        new Set(apart.map((each) => JSON.stringify(each))),
      );
    }
  });

  test("the chargers of a vehicle are known by the day", async () => {
    const open = newSite();
    const { store: first } = await open();
    first.keepReadings(message(1, after(NOON, millis(-DAY))));
    first.keepReadings(message(1, NOON, other));
    await first[Symbol.asyncDispose]();
    const { store } = await open();
    expect(await store.seats(bus, NOON, seconds(60))).toEqual([other]);
    expect(await store.seats(bus, after(NOON, millis(-DAY)), NOON)).toEqual([bay, other]);
    expect(await store.seats(vehicleId("veh-9"), NOON, seconds(60))).toEqual([]);
  });
}
