import { vi } from "vitest";

import { type Instant, instant } from "../../src/domain/units.ts";

/** What one timer causes takes this many turns of the event loop at most: gathered, committed, published. */
const TURNS = 6;

/** Immediates are real, and take no virtual time: what can happen without time has happened after it. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => void setImmediate(resolve));
}

const DAY = 86_400_000;

/** Timers and the wall clock stand still until they are moved; RxJS follows as it is. */
export function startVirtualTime(at: string): void {
  vi.useFakeTimers({
    now: Date.parse(at),
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
  });
}

export const virtualNow = (): Instant => instant(Date.now());

/** Fires timer after timer with all that each of them causes, up to and including those that are due at `at`. */
export async function advanceTo(at: Instant): Promise<void> {
  // In steps: a longer timer would overflow here just as it would in the program.
  while (at - Date.now() > DAY) await advanceBy(DAY);
  await advanceBy(at - Date.now());
  await settled();
}

/** One millisecond: what is due now, and what that causes without taking time, has happened after it. */
export const settled = (): Promise<void> => advanceBy(1);

async function advanceBy(span: number): Promise<void> {
  const arrival = { over: false };
  setTimeout(() => {
    arrival.over = true;
  }, span);
  await quiet();
  while (!arrival.over) {
    vi.advanceTimersToNextTimer();
    await quiet();
  }
}
