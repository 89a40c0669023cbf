import pino from "pino";
import { expect, onTestFinished, test, vi } from "vitest";

import { ActionLog } from "../../src/daemon/actionLog.ts";
import type { AuditRow } from "../../src/domain/audit.ts";
import { chargerId, eventId, instant, vehicleId } from "../../src/domain/units.ts";

const row = (changes: Partial<AuditRow>): AuditRow => ({
  seq: 1,
  hash: "",
  at: instant(0),
  kind: "decision",
  charger: null,
  vehicle: null,
  event: null,
  command: null,
  words: "bay-01 to 16 A",
  facts: null,
  ...changes,
});

const aLog = (lines: string[]) =>
  pino({ base: null, timestamp: false }, { write: (line: string) => lines.push(line) });

function logged(entry: AuditRow): Record<string, unknown> {
  const lines: string[] = [];
  using log = new ActionLog(aLog(lines));
  log.add([entry], 1);
  expect(lines).toEqual([]);
  log[Symbol.dispose]();
  return JSON.parse(lines[0] ?? "{}") as Record<string, unknown>;
}

test("the lines follow their commits soon, in order", async () => {
  const lines: string[] = [];
  using log = new ActionLog(aLog(lines));
  log.add([row({ words: "first" }), row({ words: "second" })], 1);
  log.add([row({ words: "third" })], 1);
  await expect.poll(() => lines.map((line) => JSON.parse(line).msg)).toEqual(["first", "second", "third"]);
});

test("the rows of many commits are logged in several turns of the loop", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const lines: string[] = [];
  using log = new ActionLog(aLog(lines));
  for (let commit = 0; commit < 6; commit += 1)
    log.add(
      Array.from({ length: 300 }, () => row({})),
      1,
    );
  const counts: number[] = [];
  for (vi.advanceTimersByTime(50); counts.at(-1) !== lines.length; vi.advanceTimersToNextTimer())
    counts.push(lines.length);
  expect(counts).toEqual([600, 1200, 1800]);
});

test("another reader gets each commit with its rows and its duration, when its lines are written", () => {
  const counted: string[] = [];
  const committed = (rows: readonly AuditRow[], tookMs: number) =>
    counted.push(`${rows.map(({ words }) => words).join(", ")}: ${tookMs} ms`);
  using log = new ActionLog(aLog([]));
  log.readBy(committed);
  log.add([row({ words: "first" }), row({ words: "second" })], 3);
  log.add([row({ words: "third" })], 4);
  expect(counted).toEqual([]);
  log[Symbol.dispose]();
  expect(counted).toEqual(["first, second: 3 ms", "third: 4 ms"]);
});

test("a decision is a line with what it is about, and nothing that it is not about", () => {
  const about = {
    charger: chargerId("bay-01"),
    vehicle: vehicleId("veh-214"),
    event: eventId("EV-1"),
    command: "7-1",
  };
  expect(logged(row(about))).toEqual({ level: 30, kind: "decision", ...about, msg: "bay-01 to 16 A" });
  expect(logged(row({}))).toEqual({ level: 30, kind: "decision", msg: "bay-01 to 16 A" });
});

test.each([
  [{ kind: "rejected" }, 40],
  [{ kind: "missed" }, 40],
  [{ kind: "event", facts: { odd: ["no targets"] } }, 40],
  [{ kind: "event", facts: { odd: [] } }, 30],
  [{ kind: "event", facts: { warning: "contradiction" } }, 40],
  [{ kind: "outcome", facts: { progress: "refused" } }, 40],
  [{ kind: "outcome", facts: { progress: "followed" } }, 30],
  [{ kind: "outcome", facts: { progress: "notFollowed", alarm: true } }, 50],
] as const)("%j is logged at level %i", (changes, level) => {
  expect(logged(row(changes))).toMatchObject({ level });
});

test("thousands of logs have one listener for the exit of the process, which writes the lines of each", () => {
  const before = process.listeners("exit");
  const lines: string[] = [];
  const logs = Array.from({ length: 20 }, () => new ActionLog(aLog(lines)));
  const [listener, ...others] = process.listeners("exit").filter((each) => !before.includes(each));
  expect(others).toEqual([]);
  for (const log of logs) log.add([row({})], 1);
  listener?.(0);
  expect(lines.length).toBe(20);
  for (const log of logs) log[Symbol.dispose]();
  expect([process.listeners("exit"), lines.length]).toEqual([before, 20]);
});
