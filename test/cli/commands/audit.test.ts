import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { stringify } from "yaml";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { rowsSince } from "../../../src/cli/commands/audit.ts";
import { main } from "../../../src/cli/program.ts";
import type { StateOfSite } from "../../../src/daemon/offline.ts";
import { auditRow } from "../../../src/domain/audit.ts";
import { after, instant, iso, millis, minutes } from "../../../src/domain/units.ts";
import { openState } from "../../../src/store/sqlite/open.ts";
import { SqliteStore } from "../../../src/store/sqlite/store.ts";
import { least, SECRET } from "../../support/aConfiguration.ts";

const ROWS = 12_000;
const FIRST = instant(Date.parse("2026-11-01T00:00:00Z"));
const ofRow = (number: number) => after(FIRST, millis(number * minutes(1)));

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "setpointd-audit-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
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
  expect(openings.length).toBe(2);
});

test("of a span far back only its days are read, in two openings", async () => {
  await writeRecord();
  const file = join(folder, "setpointd.yaml");
  writeFileSync(file, stringify({ ...least, state: folder }), { mode: 0o600 });
  vi.stubEnv("SECRET", SECRET);
  const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
  const read = vi.spyOn(SqliteStore.prototype, "audit");
  const moments = ["--since", iso(ofRow(100)), "--until", iso(ofRow(103))];
  expect(await main(["audit", "--json", ...moments, "-c", file])).toBe(0);
  expect(prepare.mock.calls.filter(([sql]) => sql === "PRAGMA quick_check")).toHaveLength(2);
  const pages = read.mock.calls.filter(([{ limit }]) => limit !== 1);
  expect(pages.map(([{ after }]) => after)).toEqual([0, 5_000]);
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
