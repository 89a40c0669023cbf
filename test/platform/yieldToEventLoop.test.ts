import { expect, test } from "vitest";

import { runCooperatively } from "../../src/platform/cooperative.ts";

test("the loop has its turn about every ten milliseconds, however much there is to do", async () => {
  let tick = 0;
  let turns = 0;
  let over = false;
  const turn = (): void => {
    turns += 1;
    if (!over) setImmediate(turn);
  };
  setImmediate(turn);
  const result = await runCooperatively(
    (function* () {
      for (let step = 0; step < 100; step += 1) {
        tick += 4;
        yield;
      }
      return "done";
    })(),
    () => tick,
  );
  over = true;
  expect(result).toBe("done");
  expect(turns).toBeGreaterThanOrEqual(30);
});

test("a failure of the task rejects the promise of its caller", async () => {
  const wrong = (function* (): Generator<void, never> {
    yield;
    throw new Error("the disk is gone");
  })();
  await expect(runCooperatively(wrong, () => 0)).rejects.toThrow("the disk is gone");
});
