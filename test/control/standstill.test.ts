import { expect, onTestFinished, test, vi } from "vitest";

import type { Change } from "../../src/domain/changes.ts";
import { instant, millis } from "../../src/domain/units.ts";
import { standstill } from "../../src/control/pipeline.ts";

test("a standstill of the process is on record with its beginning, a busy second is not", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let blocked = 0;
  const written: Change[] = [];
  const now = () => instant(Date.now() + blocked);
  const watch = standstill({
    now,
    monotonic: () => millis(performance.now() + blocked),
    write: (changes) => void written.push(...changes),
  }).subscribe();
  onTestFinished(() => watch.unsubscribe());
  await vi.advanceTimersByTimeAsync(10_000);
  blocked += 3_000;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(written).toEqual([]);

  blocked += 25_000;
  await vi.advanceTimersByTimeAsync(1_000);
  const since = new Date(now() - 25_000).toISOString();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(written).toMatchObject([
    {
      entry: {
        kind: "daemon",
        words: "setpointd stood still for 25 s: nothing was received or sent meanwhile",
        facts: { outage: "setpointd", since, over: true },
      },
    },
  ]);
});
