import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";

import type { ReportObligation, ReportRecord } from "../../../src/domain/report.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { aDirectory, opened } from "./state.ts";
import { NOON, reportRecord } from "./words.ts";

const duty: ReportObligation = {
  event: eventId("EV-1"),
  descriptor: 0,
  receivedAt: NOON,
  issued: { k: 0, moment: NOON },
  withdrawn: null,
  state: "open",
  reason: null,
};

/** Kept with their bodies, in this order, and closed. */
function kept(directory: string, records: readonly (readonly [ReportRecord, string | null])[]): void {
  const { store } = opened(directory);
  for (const [record, body] of records) store.write([{ kind: "report", record, body }]);
  store[Symbol.dispose]();
}

test("a restart finds what was not delivered yet, the oldest first, with the very body, and every duty as it was", () => {
  const directory = aDirectory();
  const sent = reportRecord("EV-1/0/0", { state: "sent", nextTry: null });
  kept(directory, [
    [reportRecord("EV-1/0/0"), '{"a":1}'],
    [reportRecord("EV-1/1/0"), '{"b":"ü\ud800"}'],
    [reportRecord("EV-2/0/0"), '{"c":1}'],
    [sent, null],
  ]);
  const { store, storedState: remembered } = opened(directory);
  store.write([{ kind: "duty", duty: { ...duty, issued: null } }]);
  store.write([{ kind: "duty", duty }]);
  store[Symbol.dispose]();
  expect(remembered.outbox.map(({ name }) => name)).toEqual(["EV-1/1/0", "EV-2/0/0"]);
  const again = opened(directory);
  expect(again.storedState.duties).toEqual([duty]);
  expect(again.store.reads.report("EV-1/0/0")).toEqual({ record: sent, body: '{"a":1}' });
  expect(again.store.reads.report("EV-1/1/0")?.body).toBe('{"b":"ü\ufffd"}');
  expect(again.store.reads.report("EV-9/0/0")).toBeNull();
});

test("a body that was changed on the disk is never sent, and a changed report is not shown", () => {
  const directory = aDirectory();
  const done = reportRecord("EV-1/0/0", { nextTry: null, state: "sent" });
  kept(directory, [
    [done, '{"kWh":1}'],
    [reportRecord("EV-1/0/1"), '{"kWh":2}'],
  ]);
  const database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec("UPDATE report SET body = replace(body, 'USAGE', 'DEMAND') WHERE id = 'EV-1/0/0'");
  database.exec("UPDATE report_body SET body = replace(body, '2', '9')");
  database.close();
  const { store } = opened(directory);
  expect(store.reads.reports({}).map(({ name }) => name)).toEqual(["EV-1/0/1"]);
  expect(store.reads.report("EV-1/0/0")).toBeNull();
  expect(store.reads.report("EV-1/0/1")).toMatchObject({ body: null });
});

test("the newest 128 MiB of bodies of delivered reports are kept; undelivered ones always are", async () => {
  const { store } = opened(aDirectory());
  const body = "x".repeat(30 * 1024 * 1024);
  store.write([{ kind: "report", record: reportRecord("EV-1/0/0"), body }]);
  for (const k of [1, 2, 3, 4, 5]) {
    const record = reportRecord(`EV-1/0/${k}`, { state: "sent", nextTry: null });
    store.write([{ kind: "report", record, body }]);
    await store.durable();
  }
  const kept = [0, 1, 2, 3, 4, 5].filter((k) => store.reads.report(`EV-1/0/${k}`)?.body != null);
  expect(kept).toEqual([0, 2, 3, 4, 5]);
  expect(store.reads.reports({})).toHaveLength(6);
});

test("a report that is too old to be kept takes its body along", () => {
  const directory = aDirectory();
  kept(
    directory,
    Array.from({ length: 10_002 }, (_, k) => [
      reportRecord(`EV-1/0/${k}`, { state: "sent", nextTry: null }),
      "{}",
    ]),
  );
  using database = new DatabaseSync(join(directory, "setpointd.db"), { readOnly: true });
  for (const table of ["report", "report_body"])
    expect(database.prepare(`SELECT count(*) AS count FROM ${table}`).get()).toEqual({ count: 10_000 });
});

test("the sizes of all stored bodies are not added up for each report", async () => {
  const { store } = opened(aDirectory());
  const statements = vi.spyOn(DatabaseSync.prototype, "prepare");
  for (let k = 0; k < 20; k++) {
    store.write([{ kind: "report", record: reportRecord(`EV-1/0/${k}`), body: "{}" }]);
    await store.durable();
  }
  const sums = statements.mock.calls.filter(([sql]) => sql.includes("sum(size) AS total"));
  statements.mockRestore();
  expect(sums).toHaveLength(1);
});

const closed = (name: string, composedAt: number) =>
  reportRecord(name, { state: "sent", nextTry: null, composedAt: instant(composedAt) });

test("retention looks at the oldest closed reports alone, not at all of them for each step", async () => {
  const { store } = opened(aDirectory());
  const { composedAt } = reportRecord("EV-0/0/0");
  store.write([
    { kind: "report", record: reportRecord("EV-0/0/0"), body: "{}" },
    { kind: "report", record: closed("EV-1/0/0", composedAt + 1), body: "{}" },
    { kind: "report", record: closed("EV-2/0/0", composedAt), body: "{}" },
  ]);
  await store.durable();
  const old = instant(composedAt + 1);
  expect(store.reads.oldReports(old, 1)).toEqual([]);
  expect(store.reads.oldReports(old, 2)).toEqual(["EV-2/0/0"]);
});
