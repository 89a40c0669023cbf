import { setImmediate as nextTick } from "node:timers/promises";
import * as fc from "fast-check";
import { Subject, tap } from "rxjs";
import { expect, test } from "vitest";

import { instant } from "../../src/domain/units.ts";
import { delayUntil } from "../../src/platform/clock.ts";
import { batchPerTick } from "../../src/platform/scheduling.ts";

const MINUTE = 60_000;

test("an alarm without a next moment still wakes every minute", () => {
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
