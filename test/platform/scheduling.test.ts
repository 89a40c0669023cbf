import { setImmediate as nextTick } from "node:timers/promises";
import * as fc from "fast-check";
import { Subject, tap } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";

import { instant } from "../../src/domain/units.ts";
import { delayUntil } from "../../src/platform/clock.ts";
import { afterPause, batchPerTick, every, fanIn, wakeUps } from "../../src/platform/scheduling.ts";

const MINUTE = 60_000;

test("a flow without a next moment still wakes every minute", () => {
  expect(delayUntil(undefined, instant(5))).toBe(MINUTE);
});

test("no nap is ever longer than a minute, past the moment, or negative, up to the year 9999 (F26)", () => {
  const moment = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }).map(instant);
  fc.assert(
    fc.property(moment, moment, (due, now) => {
      const span = delayUntil(due, now);
      expect(span).toBeGreaterThanOrEqual(0);
      expect(span).toBeLessThanOrEqual(MINUTE);
      if (due > now) expect(now + span).toBeLessThanOrEqual(due);
    }),
  );
});

test("values of one tick are one batch; a value that the batch causes begins the next one, and waits for no other", async () => {
  const values$ = new Subject<number>();
  const batches: (readonly number[])[] = [];
  let isOver = false;
  values$
    .pipe(
      batchPerTick(),
      tap((batch) => batches.push(batch)),
      tap((batch) => batch[0] === 1 && values$.next(3)),
    )
    .subscribe({ complete: () => (isOver = true) });
  values$.next(1);
  values$.next(2);
  expect(batches).toEqual([]);
  await nextTick();
  await nextTick();
  expect(batches).toEqual([[1, 2], [3]]);
  values$.next(4);
  values$.complete();
  expect(isOver).toBe(false);
  await nextTick();
  expect(batches.at(-1)).toEqual([4]);
  expect(isOver).toBe(true);
});

test("each subscription has batches of its own, and none after it ends", async () => {
  const values$ = new Subject<number>();
  const batched$ = values$.pipe(batchPerTick());
  const seen: string[] = [];
  const first = batched$.subscribe((batch) => seen.push(`first ${batch.join()}`));
  batched$.subscribe((batch) => seen.push(`second ${batch.join()}`));
  values$.next(1);
  first.unsubscribe();
  await nextTick();
  expect(seen).toEqual(["second 1"]);
});

const startVirtualTimers = (): void => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
  onTestFinished(() => void vi.useRealTimers());
};

test("work that outlasts its interval skips rounds, and its error ends the flow", async () => {
  startVirtualTimers();
  const runs: PromiseWithResolvers<void>[] = [];
  const errors: unknown[] = [];
  const work = (): Promise<void> => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  };
  const flow = every(1_000, work).subscribe({ error: (error) => errors.push(error) });
  await vi.advanceTimersByTimeAsync(999);
  expect(runs).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(3_001);
  expect(runs).toHaveLength(1);
  runs[0]?.resolve();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(runs).toHaveLength(2);
  runs[1]?.reject(new Error("a bug"));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(errors).toEqual([new Error("a bug")]);
  expect([runs.length, flow.closed, vi.getTimerCount()]).toEqual([2, true, 0]);
});

test("the first round may come at once, or later than the others; an unsubscription ends both", async () => {
  startVirtualTimers();
  const rounds: string[] = [];
  const round = (name: string) => () => void rounds.push(name);
  const atOnce = every(1_000, round("at once"), 0).subscribe();
  expect(rounds).toEqual(["at once"]);
  const late = every(1_000, round("late"), 1_500).subscribe();
  const never = every(1_000, round("never"), 1_500).subscribe();
  never.unsubscribe();
  await vi.advanceTimersByTimeAsync(2_600);
  expect(rounds).toEqual(["at once", "at once", "late", "at once", "late"]);
  atOnce.unsubscribe();
  late.unsubscribe();
  expect(vi.getTimerCount()).toBe(0);
});

test("a wake-up comes at the boundary that an evaluation has added, and each minute; a bug in the boundary ends the flow", async () => {
  startVirtualTimers();
  const evaluated$ = new Subject<void>();
  const rings: number[] = [];
  const errors: unknown[] = [];
  const began = Date.now();
  const now = () => instant(Date.now() - began);
  let due: number | undefined;
  const next = () => {
    if (due === -1) throw new Error("a bug");
    return due === undefined ? undefined : instant(due);
  };
  wakeUps(evaluated$, next, now).subscribe({
    next: (at) => rings.push(at),
    error: (error) => errors.push(error),
  });
  due = 5_000;
  evaluated$.next();
  await vi.advanceTimersByTimeAsync(MINUTE - 1);
  expect(rings).toEqual([5_000]);
  await vi.advanceTimersByTimeAsync(1);
  expect(rings).toEqual([5_000, MINUTE]);
  due = -1;
  evaluated$.next();
  expect(errors).toEqual([new Error("a bug")]);
  expect(vi.getTimerCount()).toBe(0);
  wakeUps(evaluated$, next, now).subscribe({ error: (error) => errors.push(error) });
  expect(errors).toHaveLength(2);
  expect([evaluated$.observed, vi.getTimerCount()]).toEqual([false, 0]);
});

test("a flow of several sources ends with an error of one of them, or of what is made of its values", () => {
  const numbers$ = new Subject<number>();
  const words$ = new Subject<string>();
  const seen: string[] = [];
  const joined$ = fanIn<string>((join) => {
    join(numbers$, (value) => {
      if (value < 0) throw new Error("negative");
      return `number ${value}`;
    });
    join(words$);
  });
  const observer = {
    next: (value: string) => seen.push(value),
    error: (error: Error) => seen.push(error.message),
  };
  joined$.subscribe(observer);
  numbers$.next(1);
  words$.next("not shown");
  numbers$.next(-1);
  numbers$.next(2);
  expect(seen).toEqual(["number 1", "negative"]);
  joined$.subscribe(observer);
  words$.error(new Error("a source failed"));
  numbers$.next(3);
  expect(seen.slice(2)).toEqual(["a source failed"]);
});

test("a value counts after a pause without another one of its key", async () => {
  startVirtualTimers();
  const values$ = new Subject<string>();
  const seen: string[] = [];
  const flow = values$
    .pipe(afterPause(1_000, (value) => value.charAt(0)))
    .subscribe((value) => seen.push(value));
  values$.next("a1");
  values$.next("b1");
  await vi.advanceTimersByTimeAsync(600);
  values$.next("a2");
  await vi.advanceTimersByTimeAsync(600);
  expect(seen).toEqual(["b1"]);
  await vi.advanceTimersByTimeAsync(400);
  expect(seen).toEqual(["b1", "a2"]);
  values$.next("a3");
  flow.unsubscribe();
  expect(vi.getTimerCount()).toBe(0);
});
