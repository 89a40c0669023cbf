import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { type AuditEntry, chainHash } from "../../../src/domain/audit.ts";
import { chargerId, eventId, instant, minutes, vehicleId } from "../../../src/domain/units.ts";
import { runToEnd } from "../../../src/platform/cooperative.ts";
import { queryEventRows } from "../../../src/store/sqlite/eventRecord.ts";
import type { SqliteStore } from "../../../src/store/sqlite/store.ts";
import { aDirectory, opened } from "./state.ts";
import { NOON, row } from "./words.ts";

const EV1 = eventId("EV-1");
const later = (count: number) => instant(NOON + minutes(count));
const at = (count: number, words: string, more: Partial<AuditEntry>) =>
  row(words, { at: later(count), ...more });
const [bay1, bay2] = [chargerId("bay-01"), chargerId("bay-02")];
const overruling = (event: string) => ({ winner: { event: "EV-2" }, overruled: [{ event }] });

const DAY = [
  at(0, "started", { kind: "daemon" }),
  at(1, "EV-1 is new", { kind: "event", event: EV1 }),
  at(2, "EV-1 to 16 A", { event: EV1, charger: bay1, facts: { winner: { event: "EV-1" }, overruled: [] } }),
  at(3, "EV-2 to 8 A", { event: eventId("EV-2"), charger: bay1, facts: overruling("EV-1") }),
  at(4, "EV-2 to 9 A", {
    event: eventId("EV-2"),
    charger: bay2,
    vehicle: vehicleId("veh-3"),
    facts: { ...overruling("EV-10"), overruledCount: 459 },
  }),
  at(5, "bay-01 freed", { kind: "operator", charger: bay1 }),
  at(6, "bay-02 freed", { kind: "operator", charger: bay2 }),
  at(7, "bay-01 is unreachable", { kind: "silence", charger: bay1 }),
  at(8, "prices", { kind: "prices" }),
  at(9, "started", { kind: "daemon" }),
  at(20, "started", { kind: "daemon" }),
];

/** Finds the rows on an event, and reads them. */
function rowsOn(store: SqliteStore, ...query: Parameters<SqliteStore["reads"]["eventRows"]>) {
  const found = runToEnd(store.reads.eventRows(...query));
  return found.ok ? store.reads.recordRows(found.seqs) : [];
}

async function written(directory: string) {
  const { store } = opened(directory);
  store.write(DAY);
  expect(await store.durable()).toEqual({ ok: true });
  return store;
}

test("the rows on an event are its own, those that overruled it, and what befell its site until its end", async () => {
  const store = await written(aDirectory());
  expect(rowsOn(store, EV1, later(10)).map(({ seq, words }) => `${seq} ${words}`)).toEqual([
    "2 EV-1 is new",
    "3 EV-1 to 16 A",
    "4 EV-2 to 8 A",
    "6 bay-01 freed",
    "8 bay-01 is unreachable",
    "10 started",
  ]);
  expect(rowsOn(store, EV1, later(60)).at(-1)?.seq).toBe(11);
  const own = runToEnd(store.reads.eventRows(EV1, instant(0)));
  expect(own.ok && own.seqs).toEqual([2, 3, 4]);
  // Among the many that the decision of the fourth minute overruled without a name.
  const windows = new Map([[vehicleId("veh-3"), [{ from: later(0), until: later(10) }]]]);
  const unnamed = runToEnd(store.reads.eventRows(EV1, later(10), windows));
  expect(unnamed.ok && unnamed.seqs).toEqual([2, 3, 4, 5, 6, 8, 10]);
  expect(runToEnd(store.reads.eventRows(eventId("EV-9"), later(60)))).toEqual({
    ok: true,
    seqs: [],
    checkpoint: null,
  });
});

const outage = (count: number, who: string, over: boolean) =>
  at(count, `${who} ${over ? "is back" : "is away"}`, {
    kind: "silence",
    facts: { outage: who, ...(over ? { over } : {}) },
  });

test("an outage that began before an event, and was not over by then, is part of what befell it", async () => {
  const { store } = opened(aDirectory());
  store.write([
    outage(0, "partner", false),
    outage(1, "broker", false),
    outage(2, "partner", true),
    at(3, "bay-02 is offline", { kind: "silence", charger: bay2, facts: { outage: "charger" } }),
    at(4, "EV-1 is new", { kind: "event", event: EV1 }),
    at(5, "EV-1 to 16 A", { event: EV1, charger: bay1, facts: { winner: { event: "EV-1" }, overruled: [] } }),
    outage(6, "broker", true),
  ]);
  expect(await store.durable()).toEqual({ ok: true });
  expect(store.reads.openOutages().map(({ words }) => words)).toEqual(["bay-02 is offline"]);
  expect(rowsOn(store, EV1, later(10)).map(({ words }) => words)).toEqual([
    "broker is away",
    "EV-1 is new",
    "EV-1 to 16 A",
    "broker is back",
  ]);
});

/** EV-3 goes on with bay-01. */
const took = (count: number, more: Partial<AuditEntry>) =>
  at(count, "EV-3 to 20 A", {
    event: eventId("EV-3"),
    charger: bay1,
    facts: { winner: { event: "EV-3" } },
    ...more,
  });

test("the decision by which another event takes over belongs to the event, but not what comes after", async () => {
  const store = await written(aDirectory());
  store.write([took(30, {}), took(31, {})]);
  expect(await store.durable()).toEqual({ ok: true });
  const found = runToEnd(store.reads.eventRows(EV1, instant(0)));
  expect(found.ok && found.seqs).toEqual([2, 3, 4]);
  const took2 = runToEnd(store.reads.eventRows(eventId("EV-2"), instant(0)));
  expect(took2.ok && took2.seqs).toEqual([4, 5, 12]);
  store.write([took(32, { facts: { winner: null, told: { kind: "release" } } }), took(33, { event: EV1 })]);
  expect(await store.durable()).toEqual({ ok: true });
  const released = runToEnd(store.reads.eventRows(eventId("EV-3"), instant(0)));
  expect(released.ok && released.seqs).toEqual([12, 13, 14]);
});

test("each row can be hashed anew from its text and the hash before it", async () => {
  const store = await written(aDirectory());
  const rows = rowsOn(store, EV1, later(60));
  expect(rows).not.toEqual([]);
  for (const { previous, text, hash } of rows) expect(chainHash(previous, text)).toBe(hash);
  const hashes = store.reads.hashes([2, 3, 999]);
  expect([...hashes]).toEqual(rows.slice(0, 2).map(({ seq, hash }) => [seq, hash]));
});

test("nothing is proven from a row that was changed", async () => {
  const directory = aDirectory();
  const store = await written(directory);
  store[Symbol.dispose]();
  const database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec("UPDATE audit SET words = 'EV-1 to 32 A' WHERE seq = 3");
  expect(runToEnd(queryEventRows(database, EV1, later(60)))).toEqual({ ok: false, seq: 3 });
  database.close();
});

test("the newest checkpoint counts the pruned rows, and the first row that is kept follows on it", async () => {
  const store = await written(aDirectory());
  const hash = store.reads.hashes([2]).get(2) ?? "";
  store.write([
    row("pruned", { kind: "checkpoint", facts: { through: 2, hash } }),
    { kind: "auditPruned", through: 2 },
  ]);
  expect(await store.durable()).toEqual({ ok: true });
  const found = runToEnd(store.reads.eventRows(EV1, later(10)));
  expect(found.ok && found.checkpoint?.facts).toEqual({ through: 2, hash });
  expect(rowsOn(store, EV1, later(10)).map(({ seq, previous }) => [seq, previous])[0]).toEqual([3, hash]);
  const gone = runToEnd(store.reads.eventRows(eventId("EV-9"), later(10)));
  expect(gone.ok && gone.checkpoint?.words).toBe("pruned");
});
