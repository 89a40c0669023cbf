import { Subject } from "rxjs";
import { onTestFinished, test, expect, vi } from "vitest";

import { startsAllowed } from "../../src/control/pipeline.ts";
import { startVirtualTime } from "../support/virtualTime.ts";

/** The gate of new starts: what it says, and what can be told to it. */
function aGate(isDoubted = false) {
  startVirtualTime("2026-11-21T00:00:00Z");
  onTestFinished(() => void vi.useRealTimers());
  const gate = { isDoubted, opened: 0, believed: 0 };
  const [fetched$, doubted$, agrees$] = [new Subject(), new Subject(), new Subject()];
  const subscription = startsAllowed(fetched$, {
    isDoubted: () => gate.isDoubted,
    doubted$,
    agrees$,
    believe: () => {
      gate.believed += 1;
      gate.isDoubted = false;
    },
  }).subscribe(() => {
    gate.opened += 1;
  });
  onTestFinished(() => subscription.unsubscribe());
  return {
    fetched: () => fetched$.next(null),
    agrees: () => agrees$.next(null),
    doubt: () => {
      gate.isDoubted = true;
      doubted$.next(null);
    },
    passes: (minutes: number) => vi.advanceTimersByTime(minutes * 60_000),
    said: () => [gate.opened, gate.believed],
  };
}

test("after a start the gate opens once the partner was polled, or after ten seconds", () => {
  const asked = aGate();
  asked.fetched();
  asked.fetched();
  expect(asked.said()).toEqual([1, 0]);
  const unasked = aGate();
  unasked.passes(0.16);
  expect(unasked.said()).toEqual([0, 0]);
  unasked.passes(0.01);
  expect(unasked.said()).toEqual([1, 0]);
});

test("a doubted clock keeps the gate closed until the partner's clock agrees, whatever was fetched (F22)", () => {
  const gate = aGate();
  gate.doubt();
  gate.fetched();
  gate.passes(1);
  expect(gate.said()).toEqual([0, 0]);
  gate.agrees();
  expect(gate.said()).toEqual([1, 1]);
});

test("without an answer from the partner the gate opens after five minutes (F22, F30)", () => {
  const gate = aGate();
  gate.doubt();
  gate.passes(4.9);
  expect(gate.said()).toEqual([0, 0]);
  gate.passes(0.2);
  expect(gate.said()).toEqual([1, 1]);
});

test("each doubt closes the gate again for five minutes of its own (F21)", () => {
  const gate = aGate();
  gate.fetched();
  gate.doubt();
  gate.passes(3);
  gate.doubt();
  gate.passes(3);
  expect(gate.said()).toEqual([1, 0]);
  gate.agrees();
  expect(gate.said()).toEqual([2, 1]);
});
