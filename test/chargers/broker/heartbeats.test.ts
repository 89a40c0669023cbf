import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Heartbeats } from "../../../src/chargers/broker/heartbeats.ts";
import { keepalivesOf } from "../../../src/chargers/profile/publishes.ts";
import { instant } from "../../../src/domain/units.ts";
import { boundTo } from "../profile/aTrial.ts";

const said: string[] = [];
beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  said.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

const stations = [40, 41].map((instance) => boundTo("victron-evcs", { portalId: "gx", instance }));
const aHeart = () =>
  new Heartbeats(
    stations.flatMap(keepalivesOf),
    async ({ topic, payload }) => said.push(`${topic} ${payload}`),
    () => instant(Date.now()),
  );

test("two chargers of one gateway share one keepalive, with its special first message", () => {
  using heart = aHeart();
  heart.start();
  vi.advanceTimersByTime(60_000);
  const further = 'R/gx/keepalive {"keepalive-options":["suppress-republish"]}';
  expect(said).toEqual(["R/gx/keepalive ", further, further]);
});

test("while the broker is down no keepalive is sent; its return starts them again", () => {
  using heart = aHeart();
  heart.start();
  heart.stop();
  vi.advanceTimersByTime(600_000);
  expect(said).toHaveLength(1);
  heart.start();
  heart.start();
  vi.advanceTimersByTime(30_000);
  expect(said).toHaveLength(4);
});

test("a charger whose keepalives are paused receives none until they resume", () => {
  using heart = aHeart();
  heart.start();
  const speakAgain = heart.pauseKeepalives(stations.slice(0, 1).flatMap(keepalivesOf));
  vi.advanceTimersByTime(60_000);
  expect(said).toHaveLength(1);
  speakAgain();
  vi.advanceTimersByTime(30_000);
  expect(said).toHaveLength(2);
});
