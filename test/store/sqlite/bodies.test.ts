import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { after, chargerId, eventId, instant, millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import { readingsOf } from "../../../src/reporting/reading.ts";
import type { BodyTable } from "../../../src/store/bodies.ts";
import { sumOf } from "../../../src/store/sqlite/auditRows.ts";
import { aRelease } from "../../support/aHold.ts";
import { anEvent, live } from "../../support/anEvent.ts";
import { aDirectory, open, opened } from "./state.ts";
import { NOON, reportRecord, row } from "./words.ts";

const DATABASE = "setpointd.db";
const bay = chargerId("bay-01");

const hold = aRelease(bay, ["EV-1"], NOON, after(NOON, minutes(10)));

/** An event that lies ahead: the body of one that is over is not read at a start. */
const ahead = (id: string) =>
  live(anEvent({ id: eventId(id), revision: NOON, start: after(NOON, minutes(60)) }));

/** A stopped state with an event, a hold, a report and two readings. */
async function written(): Promise<string> {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write([
    row("a row"),
    { kind: "event", known: ahead("EV-1") },
    { kind: "event", known: ahead("EV-2") },
    { kind: "hold", hold },
    { kind: "report", record: reportRecord("EV-1/0/0"), body: '{"energy":42}' },
  ]);
  await store.durable();
  for (const second of [0, 30]) {
    const at = after(NOON, millis(second * 1000));
    const known = { charger: bay, vehicle: vehicleId("veh-214") };
    store.keepReadings(readingsOf(known, { at, powerW: 11_040, energyWh: 1000 + second }, at, null));
  }
  store[Symbol.dispose]();
  return directory;
}

/** Edits a body as somebody does who knows the tables: its sum is computed anew. */
function edited(directory: string, table: BodyTable, id: string, edit: (body: string) => string): void {
  using database = new DatabaseSync(join(directory, DATABASE));
  const stored = database.prepare(`SELECT body, mac FROM ${table} WHERE id = ?`).get(id);
  const body = edit(String(stored?.["body"]));
  const sum = sumOf(table, id, body, String(stored?.["mac"]));
  database.prepare(`UPDATE ${table} SET body = ?, sum = ? WHERE id = ?`).run(body, sum, id);
}

const later = (body: string): string => body.replaceAll(String(NOON), String(NOON + 1));

test("an event that another program edited is kept apart, and its neighbours stay", async () => {
  const directory = await written();
  edited(directory, "event", "EV-1", later);
  const { setAside, storedState: remembered, store } = opened(directory);
  expect(setAside).toBeNull();
  expect(remembered.events).toEqual([ahead("EV-2")]);
  // A failed commit does not bring it back either.
  const scope = { chargers: new Set<never>(), holds: new Set<never>(), mode: false };
  const stored = (...ids: readonly string[]) =>
    store.reads.stored({ ...scope, events: new Set(ids.map(eventId)) });
  expect(stored("EV-2").events).toEqual([ahead("EV-2")]);
  expect(() => stored("EV-1", "EV-2")).toThrow("EV-1");
  expect(remembered.edited).toEqual([{ id: "EV-1", raw: expect.stringContaining(String(NOON + 1)) }]);
  expect(store.reads.verify()).toEqual({ ok: false, seq: null, reason: "the stored event EV-1 was changed" });
});

test("a body of one event is none for another", async () => {
  const directory = await written();
  using database = new DatabaseSync(join(directory, DATABASE));
  const { body, mac } = database.prepare("SELECT body, mac FROM event WHERE id = 'EV-1'").get() ?? {};
  database
    .prepare("UPDATE event SET body = ?, mac = ?, sum = ? WHERE id = 'EV-2'")
    .run(String(body), String(mac), sumOf("event", "EV-2", String(body), String(mac)));
  database.close();
  expect(opened(directory).storedState.edited.map(({ id }) => id)).toEqual(["EV-2"]);
});

test("an event without an HMAC is not taken for one of an earlier version", async () => {
  const directory = await written();
  using database = new DatabaseSync(join(directory, DATABASE));
  const body = String(database.prepare("SELECT body FROM event WHERE id = 'EV-1'").get()?.["body"]);
  database
    .prepare("UPDATE event SET mac = NULL, sum = ? WHERE id = 'EV-1'")
    .run(sumOf("event", "EV-1", body));
  database.close();
  expect(opened(directory).storedState.edited.map(({ id }) => id)).toEqual(["EV-1"]);
});

test("a hold that another program edited frees no charger: the state is set aside", async () => {
  const directory = await written();
  edited(directory, "hold", "hold-7-1", later);
  expect(open(directory, { damaged: "refuse" })).toMatchObject({
    ok: false,
    reason: "the stored hold hold-7-1 was edited by another program",
  });
  expect(opened(directory).setAside).not.toBeNull();
});

test("an edited report is not shown, and neither is an edited body", async () => {
  const directory = await written();
  edited(directory, "report_body", "EV-1/0/0", (body) => body.replace("42", "43"));
  const first = opened(directory);
  expect(first.store.reads.report("EV-1/0/0")).toMatchObject({ body: null });
  expect(first.store.reads.verify()).toMatchObject({
    ok: false,
    reason: expect.stringContaining("report_body"),
  });
  first.store[Symbol.dispose]();
  const other = await written();
  edited(other, "report", "EV-1/0/0", (body) => body.replace("4.2 kWh", "9.9 kWh"));
  expect(opened(other).setAside).not.toBeNull();
});

test.for([
  ["an edited figure", "UPDATE reading SET power = 7000 WHERE at % 60000 = 0"],
  ["a reading moved to another charger", "UPDATE reading SET charger = 'bay-02' WHERE at % 60000 = 0"],
  ["a reading without an HMAC", "UPDATE reading SET mac = NULL WHERE at % 60000 = 0"],
  [
    "a planted reading",
    `INSERT INTO reading SELECT minute, charger, at + 1, delay, vehicle, marks, 99000, energy, current, voltage, soc,
       level, state, told, mac FROM reading WHERE at % 60000 = 0`,
  ],
])("%s is left out of what is asked for, and audit verify finds it", async ([, sql = ""]) => {
  const directory = await written();
  using database = new DatabaseSync(join(directory, DATABASE));
  database.exec(sql);
  const { rows } = database.prepare("SELECT count(*) AS rows FROM reading").get() ?? {};
  database.close();
  const { store } = opened(directory);
  const found: unknown[] = [];
  const left: string[] = [];
  for (const charger of [bay, chargerId("bay-02")])
    for (const { kind, value } of store.reads.readings([charger], NOON, after(NOON, minutes(1)), (each) =>
      left.push(each.charger),
    ))
      if (kind === "power") found.push(value);
  expect([new Set(found), left.length]).toEqual([new Set([11_040]), 1]);
  expect(found.length).toBe(Number(rows) - 1);
  expect(store.reads.verify()).toMatchObject({
    ok: false,
    seq: null,
    reason: expect.stringContaining("stored reading of bay-0"),
  });
});

test("more of a message that is stored already is signed with it", async () => {
  const directory = await written();
  const add = (telemetry: { soc: number }): void => {
    const { store } = opened(directory);
    store.keepReadings(readingsOf({ charger: bay, vehicle: null }, { at: NOON, ...telemetry }, NOON, null));
    store[Symbol.dispose]();
  };
  add({ soc: 71 });
  const { store } = opened(directory);
  const found = store.reads.readings([bay], NOON, instant(NOON + 1)).map(({ kind, value }) => [kind, value]);
  expect(found).toEqual([
    ["power", 11_040],
    ["energy", 1000],
    ["soc", 71],
  ]);
  expect(store.reads.verify()).toMatchObject({ ok: true, readings: 2, unsigned: 0 });
});
