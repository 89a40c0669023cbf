import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Presence } from "../../src/chargers/presence.ts";
import { instant, seconds } from "../../src/domain/units.ts";

const said: string[] = [];
beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21) });
  said.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

const aPresence = ({ silentAfter = seconds(10), willIsRetained = true, obeysLater = false } = {}): Presence =>
  new Presence({
    obeysLater,
    silentAfter,
    willIsRetained,
    now: () => instant(Date.now()),
    say: (online, snapshot) =>
      said.push(snapshot ? (online ? "is there" : "is not there") : online ? "came" : "went"),
  });

test("the first sign of life tells how things stand; silence after it is a leaving, and the next sign a return", () => {
  using presence = aPresence();
  presence.gaveSign();
  vi.advanceTimersByTime(9_999);
  presence.gaveSign();
  vi.advanceTimersByTime(9_999);
  expect(said).toEqual(["is there"]);
  vi.advanceTimersByTime(1);
  presence.gaveSign();
  presence.gaveSign();
  expect(said).toEqual(["is there", "went", "came"]);
});

test("one that is there before it obeys has come when it obeys, and not by saying online again", () => {
  using presence = aPresence({ obeysLater: true });
  presence.willSays(true, true);
  presence.obeys();
  expect(said).toEqual(["is there"]);
  vi.advanceTimersByTime(120_000);
  presence.willSays(true, false);
  presence.willSays(true, false);
  expect(said).toEqual(["is there", "went"]);
  presence.obeys();
  presence.willSays(true, false);
  expect(said).toEqual(["is there", "went", "came"]);
  presence.willSays(false, false);
  presence.obeys();
  expect(said).toEqual(["is there", "went", "came", "went"]);
});

test("a charger that never gave a sign is not missed", () => {
  using presence = aPresence();
  presence.brokerUp();
  vi.advanceTimersByTime(3_600_000);
  expect(said).toEqual([]);
});

test("while the broker is away nobody is missed; from its return on silence counts anew", () => {
  using presence = aPresence();
  presence.gaveSign();
  presence.brokerDown();
  vi.advanceTimersByTime(3_600_000);
  expect(said).toEqual(["is there"]);
  presence.brokerUp();
  vi.advanceTimersByTime(10_000);
  expect(said).toEqual(["is there", "went"]);
});

test("what waited at the broker tells how things stand and is no return", () => {
  using presence = aPresence();
  presence.willSays(true, true);
  presence.willSays(true, true);
  expect(said).toEqual(["is there"]);
});

test("F88: a last will and what follows it are a leaving and a return, each told once", () => {
  using presence = aPresence();
  presence.willSays(true, true);
  presence.willSays(false, false);
  presence.willSays(true, false);
  expect(said).toEqual(["is there", "went", "came"]);
});

test("a live word of a retained will is a birth, even where nobody noticed it leave", () => {
  using presence = aPresence();
  presence.willSays(true, true);
  presence.willSays(true, false);
  expect(said).toEqual(["is there", "came"]);
});

test("who says all the time that it is there has not come all the time", () => {
  using presence = aPresence();
  for (let n = 0; n < 100; n += 1) {
    presence.willSays(true, false);
    vi.advanceTimersByTime(30_000);
  }
  expect(said).toEqual(["came"]);
  using other = aPresence({ willIsRetained: false });
  other.willSays(true, false);
  vi.advanceTimersByTime(600_000);
  other.willSays(true, false);
  expect(said).toEqual(["came", "is there"]);
});

test("signs of life of the gateway do not bring back a charger whose last will spoke", () => {
  using presence = aPresence();
  presence.willSays(false, false);
  presence.gaveSign();
  expect(said).toEqual(["is not there"]);
});
