import { StatementSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";

import { aDepot } from "../support/aDepot.ts";

/** Rows that statements write, and bytes of text that they are given. */
function writes() {
  const counted = { rows: 0, bytes: 0 };
  const run = vi.spyOn(StatementSync.prototype, "run");
  onTestFinished(() => run.mockRestore());
  return {
    /** Counts while this happens. */
    async during(act: () => Promise<unknown>): Promise<typeof counted> {
      run.mockClear();
      await act();
      const values = run.mock.calls.flat();
      const bytes = values.reduce<number>(
        (sum, value) => sum + (typeof value === "string" ? Buffer.byteLength(value) : 0),
        0,
      );
      return { rows: run.mock.calls.length, bytes };
    },
  };
}

test("a delivery writes as many rows and bytes with 400 stored events, half of them in force for its vehicles, as with none", async () => {
  const depot = await aDepot().withVehicles(20).startingAt("08:00").running();
  const written = writes();
  const takesOver = (id: string, priority: number) =>
    written.during(async () => {
      await depot.deliver({ id, start: "07:59", minutes: 600, amperes: priority + 8, priority });
      await depot.passes(1_000);
    });
  const first = await takesOver("EV-0001", 5);
  expect(first.rows).toBeGreaterThan(40);
  for (let index = 0; index < 200; index += 1) {
    await depot.deliver({ id: `EV-A${index}`, start: "07:59", minutes: 600, amperes: 12, priority: 1_000 });
    await depot.deliver({ id: `EV-B${index}`, start: "20:00", minutes: 60, amperes: 12, priority: 1_000 });
  }
  await depot.passes(1_000);
  const last = await takesOver("EV-0002", 1);
  expect(last.rows).toBeLessThanOrEqual(first.rows + 5);
  // The reason of a decision names at most five overruled events and a count.
  expect(last.bytes).toBeLessThan(first.bytes + 20 * 1_500);
});
