import { expect, test } from "vitest";

import {
  acknowledgement,
  chargersOfSharedRow,
  entriesIn,
  SharedRow,
  type AuditEntry,
  auditEntry,
  type Json,
} from "../../src/domain/audit.ts";
import type { Command } from "../../src/domain/command.ts";
import { chargerId, eventId, instant, vehicleId } from "../../src/domain/units.ts";

const NOON = instant(Date.parse("2026-11-21T12:00:00Z"));

const command = (seq: number, more: Partial<Command> = {}): Command => ({
  charger: chargerId(`bay-${seq}`),
  epoch: 7,
  seq,
  desired: { kind: "release" },
  until: null,
  vehicle: vehicleId(`veh-${seq}`),
  event: eventId("EV-1"),
  cause: "event",
  decidedAt: NOON,
  ...more,
});

const acknowledged = (seq: number, more: Partial<Command> = {}): AuditEntry =>
  acknowledgement(command(seq, more), instant(NOON + seq), instant(NOON + 10 * seq));

/** Entries as they are grouped into rows. */
function rowsOf(entries: readonly AuditEntry[]): readonly AuditEntry[] {
  const rows: (AuditEntry | null)[] = [];
  let shared = new SharedRow();
  for (const entry of entries) {
    if (shared.add(entry)) continue;
    rows.push(shared.row);
    shared = new SharedRow();
    shared.add(entry);
  }
  return [...rows, shared.row].filter((row) => row !== null);
}

/** As the store keeps and reads it. */
const stored = (row: AuditEntry): AuditEntry => ({ ...row, facts: JSON.parse(JSON.stringify(row.facts)) });

test("acknowledgements of one event share a row, and read as one entry each", () => {
  const entries = [acknowledged(1), acknowledged(2, { vehicle: null }), acknowledged(3)];
  const [row, ...more] = rowsOf(entries);
  expect([row, more]).toMatchObject([
    { at: instant(NOON + 10), charger: null, event: "EV-1", words: "3 commands acknowledged by the broker" },
    [],
  ]);
  expect(row && chargersOfSharedRow(row)).toEqual(["bay-1", "bay-2", "bay-3"]);
  expect(row && entriesIn(stored(row))).toEqual(entries);
});

test("an acknowledgement alone, of another event or run, or after 64 others, has a row of its own", () => {
  expect(rowsOf([])).toEqual([]);
  expect(rowsOf([acknowledged(1)])).toEqual([acknowledged(1)]);
  const others = [
    acknowledged(1),
    acknowledged(2, { event: null }),
    acknowledged(3, { event: null, epoch: 8 }),
  ];
  expect(rowsOf(others)).toEqual(others);
  const many = Array.from({ length: 130 }, (_, index) => acknowledged(index + 1));
  const rows = rowsOf(many);
  expect(rows.map((row) => chargersOfSharedRow(row).length)).toEqual([64, 64, 2]);
  expect(rows.flatMap((row) => entriesIn(stored(row)))).toEqual(many);
});

test("every other row is stored and read as it is", () => {
  const plain = acknowledged(1);
  const facts: Json = { progress: "acknowledged", ms: 10, sentAt: "2026-11-21T12:00:00.001Z" };
  const other: readonly Partial<AuditEntry>[] = [
    { kind: "decision" },
    { charger: null },
    { command: null },
    { command: "seven" },
    { command: "seven", words: "bay-1 seven acknowledged by the broker after 10 ms" },
    { words: "something else" },
    { facts: null },
    { facts: { ...facts, ms: null } },
    { facts: { ...facts, sentAt: null } },
    { facts: { ...facts, sentAt: "later" } },
    { facts: { ...facts, sentAt: "2026-11-21T12:00:00Z" } },
    { facts: { ...facts, progress: "failed" } },
    { facts: { ...facts, more: 1 } },
  ];
  for (const difference of other) {
    const pair = [{ ...plain, ...difference }, acknowledged(2), { ...plain, ...difference }];
    expect(rowsOf(pair)).toEqual(pair);
    expect(pair.flatMap(entriesIn)).toEqual(pair);
  }
  const foreign = auditEntry("outcome", NOON, "of another program", { facts: { v: 2 } });
  expect([entriesIn(foreign), chargersOfSharedRow(foreign)]).toEqual([[foreign], []]);
});
