import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";

import { aDirectory, opened } from "./state.ts";
import { row } from "./words.ts";

/** Immediates are real: one turn of the loop. */
const turn = (): Promise<void> => new Promise((next) => void setImmediate(next));

/** A store in whose time a commit takes as long as the test says. */
function aStore() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const time = { now: 0, commitTakes: 0 };
  const { store } = opened(aDirectory(), { monotonic: () => time.now });
  const { exec } = DatabaseSync.prototype;
  vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (this: DatabaseSync, sql: string) {
    if (sql === "COMMIT") time.now += time.commitTakes;
    exec.call(this, sql);
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });
  const passes = async (ms: number): Promise<void> => {
    time.now += ms;
    await vi.advanceTimersByTimeAsync(ms);
  };
  return { store, time, passes };
}

test("F08: after a sync that took two seconds the loop has a second for other things, and all that comes in it shares the next sync", async () => {
  const { store, time, passes } = aStore();
  time.commitTakes = 2_000;
  store.write([row("first")]);
  await Promise.all([store.durable(), turn()]);
  const waiting: Promise<unknown>[] = [];
  for (let n = 0; n < 40; n += 1) {
    store.write([row(`row ${n}`)]);
    waiting.push(store.durable());
    await turn();
  }
  expect(store.stats().commits).toBe(1);
  await passes(999);
  expect(store.stats().commits).toBe(1);
  await passes(1);
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => ({ ok: true })));
  expect(store.stats()).toMatchObject({ commits: 2, longestCommitMs: 2_000 });
  expect(
    store.reads
      .audit({})
      .map(({ words }) => words)
      .slice(0, 3),
  ).toEqual(["first", "row 0", "row 1"]);
});

test("commits after that rest wait for nothing, and neither does any on a quick disk, however much it writes", async () => {
  const { store, time, passes } = aStore();
  time.commitTakes = 2_000;
  store.write([row("slow")]);
  await store.durable();
  await passes(1_000);
  time.commitTakes = 500;
  store.write(Array.from({ length: 600 }, (_, n) => row(`row ${n}`)));
  await store.durable();
  time.commitTakes = 5;
  for (const words of ["next", "and next"]) {
    store.write([row(words)]);
    await store.durable();
  }
  expect(store.stats().commits).toBe(4);
});

const rows = (count: number) => Array.from({ length: count }, (_, n) => row(`row ${n}`));

test("changes that nothing waits for are committed soon where they are many: a commit blocks the loop", async () => {
  const { store, passes } = aStore();
  store.write(rows(400));
  await passes(50);
  expect(store.stats().commits).toBe(0);
  store.write(rows(200));
  store.write(rows(10));
  await passes(1);
  expect(store.stats().commits).toBe(1);
  store.write(rows(10));
  await passes(50);
  expect(store.stats().commits).toBe(1);
});
