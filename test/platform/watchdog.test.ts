import { pino } from "pino";
import { expect, test } from "vitest";

import { type Health, Watchdog } from "../../src/platform/systemd.ts";
import { waitFor } from "../support/waitFor.ts";

const FIT: Health = { fit: true, status: "controlling" };
const ILL: Health = { fit: false, status: "the last evaluation is 151 s old" };

/** A watchdog of 40 ms that writes down what it tells; what it finds can be changed. */
function aWatchdog(first: Health) {
  const told: string[] = [];
  const world = { health: first, passes: 0, lagMs: 0, told };
  let ticks = 0;
  const watchdog = Watchdog.start({
    notify: async (...assignments) => void told.push(assignments.join(" ")),
    env: { WATCHDOG_USEC: "40000" },
    healthy: () => {
      world.passes += 1;
      return world.health;
    },
    monotonic: () => (ticks += world.lagMs),
    log: pino({ level: "silent" }),
  });
  if (watchdog === null) throw new Error("nobody listens");
  return { world, watchdog };
}

const feeds = (told: readonly string[]): number =>
  told.filter((line) => line.startsWith("WATCHDOG=1")).length;

test("systemd receives READY once, then a sign of life after each health pass, and STOPPING at the end", async () => {
  const { world, watchdog } = aWatchdog(FIT);
  await waitFor(() => feeds(world.told) >= 3);
  await watchdog[Symbol.asyncDispose]();
  const [first, ...others] = world.told;
  expect(first).toBe("READY=1 STATUS=controlling");
  expect(new Set(others.slice(0, -1))).toEqual(new Set(["WATCHDOG=1 STATUS=controlling"]));
  expect(others.at(-1)).toBe("STOPPING=1 STATUS=stopping");
});

test("a daemon that has not evaluated its depot yet is not ready", async () => {
  const { world, watchdog } = aWatchdog({ fit: false, status: "no evaluation yet" });
  await waitFor(() => world.passes >= 2);
  expect(world.told).toEqual([]);
  world.health = FIT;
  await waitFor(() => world.told[0] === "READY=1 STATUS=controlling");
  await watchdog[Symbol.asyncDispose]();
});

test("an unhealthy daemon is not fed and logs the reason, and is fed again once it is well", async () => {
  const { world, watchdog } = aWatchdog(FIT);
  await waitFor(() => feeds(world.told) >= 1);
  world.health = ILL;
  await waitFor(() => world.told.includes(`STATUS=unhealthy: ${ILL.status}`));
  const [passes, fed] = [world.passes, feeds(world.told)];
  await waitFor(() => world.passes >= passes + 2);
  expect(feeds(world.told)).toBe(fed);
  expect(world.told.filter((line) => line.startsWith("STATUS=unhealthy"))).toHaveLength(1);
  world.health = FIT;
  await waitFor(() => feeds(world.told) > fed);
  await watchdog[Symbol.asyncDispose]();
});

test("F10: an event loop that stands still for more than a second is no sign of life", async () => {
  const { world, watchdog } = aWatchdog(FIT);
  await waitFor(() => feeds(world.told) >= 1);
  world.lagMs = 1_500;
  await waitFor(() => world.told.includes("STATUS=unhealthy: the event loop stood still for 1500 ms"));
  await watchdog[Symbol.asyncDispose]();
});

test("outside of systemd no notification is sent", () => {
  const log = pino({ level: "silent" });
  expect(Watchdog.start({ notify: null, env: {}, healthy: () => FIT, monotonic: () => 0, log })).toBeNull();
});
