import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { OnlineTracker } from "../../src/chargers/onlineTracker.ts";
import { instant, seconds } from "../../src/domain/units.ts";

const changes: string[] = [];
beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21) });
  changes.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

const aPresence = ({
  silentAfter = seconds(10),
  willIsRetained = true,
  hasReadyTopic = false,
} = {}): OnlineTracker =>
  new OnlineTracker({
    hasReadyTopic,
    silentAfter,
    willIsRetained,
    now: () => instant(Date.now()),
    onChange: (change) => changes.push(change),
  });

test("the first sign of life means online; silence after it means offline, and the next sign a return", () => {
  using presence = aPresence();
  presence.onSignOfLife();
  vi.advanceTimersByTime(9_999);
  presence.onSignOfLife();
  vi.advanceTimersByTime(9_999);
  expect(changes).toEqual(["online"]);
  vi.advanceTimersByTime(1);
  presence.onSignOfLife();
  presence.onSignOfLife();
  expect(changes).toEqual(["online", "went", "returned"]);
});

test("a charger with a ready topic is back at its first ready message, not at a repeated online", () => {
  using presence = aPresence({ hasReadyTopic: true });
  presence.onWill(true, true);
  presence.onReady();
  expect(changes).toEqual(["online"]);
  vi.advanceTimersByTime(120_000);
  presence.onWill(true, false);
  presence.onWill(true, false);
  expect(changes).toEqual(["online", "went"]);
  presence.onReady();
  presence.onWill(true, false);
  expect(changes).toEqual(["online", "went", "returned"]);
  presence.onWill(false, false);
  presence.onReady();
  expect(changes).toEqual(["online", "went", "returned", "went"]);
});

test("a last will that comes after the return of its charger ends with the next ready message", () => {
  using presence = aPresence({ hasReadyTopic: true });
  presence.onWill(true, false);
  presence.onReady();
  presence.onWill(false, false);
  expect(changes).toEqual(["offline", "returned", "went"]);
  // It may be on its way since before the will.
  vi.advanceTimersByTime(9_999);
  presence.onReady();
  expect(changes).toHaveLength(3);
  vi.advanceTimersByTime(1);
  presence.onReady();
  expect(changes).toEqual(["offline", "returned", "went", "returned"]);
});

test("a last will that came before the clock was set back ends with the next ready message", () => {
  using presence = aPresence({ hasReadyTopic: true });
  presence.onWill(false, false);
  vi.setSystemTime(Date.now() - 3_600_000);
  presence.onReady();
  expect(changes).toEqual(["offline", "returned"]);
});

test("a charger without any sign of life never counts as silent", () => {
  using presence = aPresence();
  presence.brokerUp();
  vi.advanceTimersByTime(3_600_000);
  expect(changes).toEqual([]);
});

test("while the broker is down no charger counts as silent; silence counts again from its return", () => {
  using presence = aPresence();
  presence.onSignOfLife();
  presence.brokerDown();
  vi.advanceTimersByTime(3_600_000);
  expect(changes).toEqual(["online"]);
  presence.brokerUp();
  vi.advanceTimersByTime(10_000);
  expect(changes).toEqual(["online", "went"]);
});

test("a retained online is no return", () => {
  using presence = aPresence();
  presence.onWill(true, true);
  presence.onWill(true, true);
  expect(changes).toEqual(["online"]);
});

test("F88: a last will and the online after it are reported once each, as a departure and a return", () => {
  using presence = aPresence();
  presence.onWill(true, true);
  presence.onWill(false, false);
  presence.onWill(true, false);
  expect(changes).toEqual(["online", "went", "returned"]);
});

test("a live online on a retained will is a restart, even without an offline before it", () => {
  using presence = aPresence();
  presence.onWill(true, true);
  presence.onWill(true, false);
  expect(changes).toEqual(["online", "restarted"]);
});

test("a charger that repeats its online has not restarted each time", () => {
  using presence = aPresence();
  for (let n = 0; n < 100; n += 1) {
    presence.onWill(true, false);
    vi.advanceTimersByTime(30_000);
  }
  expect(changes).toEqual(["restarted"]);
  using other = aPresence({ willIsRetained: false });
  other.onWill(true, false);
  vi.advanceTimersByTime(600_000);
  other.onWill(true, false);
  expect(changes).toEqual(["restarted", "online"]);
});

test("after the clock was set back, the first live online shows a restart, and the next one is its repetition", () => {
  using presence = aPresence();
  presence.onWill(true, false);
  vi.setSystemTime(Date.now() - 3_600_000);
  presence.onWill(true, false);
  vi.advanceTimersByTime(30_000);
  presence.onWill(true, false);
  expect(changes).toEqual(["restarted", "restarted"]);
  using starting = aPresence({ hasReadyTopic: true });
  starting.onWill(true, false);
  starting.onReady();
  vi.setSystemTime(Date.now() - 3_600_000);
  starting.onWill(true, false);
  expect(changes.slice(2)).toEqual(["offline", "returned", "went"]);
});

test("signs of life of the gateway do not bring back a charger whose last will was published", () => {
  using presence = aPresence();
  presence.onWill(false, false);
  presence.onSignOfLife();
  expect(changes).toEqual(["offline"]);
});
