import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, expect, test, vi } from "vitest";

import { rowsSince } from "../../../src/cli/commands/audit.ts";
import type { StateOfSite } from "../../../src/daemon/offline.ts";
import { auditRow } from "../../../src/domain/audit.ts";
import { after, instant, iso, millis, minutes } from "../../../src/domain/units.ts";
import { openState } from "../../../src/store/sqlite/open.ts";

const ROWS = 12_000;
const FIRST = instant(Date.parse("2026-11-01T00:00:00Z"));
const ofRow = (number: number) => after(FIRST, millis(number * minutes(1)));

const folder = mkdtempSync(join(tmpdir(), "setpointd-audit-"));
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

test("without a daemon a long record is read in few openings of the state, each of which checks all of it", async () => {
  await writeRecord();
  const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
  const config = { state: folder, keys: { site: null, proof: null }, database: null } as StateOfSite;
  const rows = await rowsSince(config, ofRow(ROWS - 10), 100);
  expect(typeof rows === "string" ? rows : rows.map(({ at }) => at)).toEqual(
    Array.from({ length: 10 }, (_, index) => iso(ofRow(ROWS - 10 + index))),
  );
  const openings = prepare.mock.calls.filter(([sql]) => sql === "PRAGMA quick_check");
  expect(openings.length).toBe(3);
});

async function writeRecord(): Promise<void> {
  const opened = openState(folder, {
    now: () => FIRST,
    random: randomBytes,
    keys: { site: null, proof: null },
    log: pino({ level: "silent" }),
  });
  if (!opened.ok) throw new Error(opened.reason);
  await using store = opened.store;
  store.write(
    Array.from({ length: ROWS }, (_, number) => auditRow("daemon", ofRow(number), `row ${number}`)),
  );
  expect(await store.durable()).toEqual({ ok: true });
}
