import { expect, test } from "vitest";

import { aDepot } from "../../support/aDepot.ts";

const threeChargers = () =>
  aDepot().withVehicles(3).withEvent({ start: "08:00", minutes: 60, amperes: 12 }).publishingStates();

/** Who is first of those that ask at the same moment does not matter. */
const anyBay = (line: string): string => line.replace(/ bay-\d+/, "");

test("simultaneous releases are sent one after another at the ramp, and the wait is shown", async () => {
  const depot = await threeChargers()
    .withControl({ releaseRamp: { current: 40 } })
    .running();
  await depot.until("08:59:59");
  depot.forget();
  await depot.until("09:05");
  // 20 A each at 40 A a minute: every half minute. Who waits stays at its level by a command of its own.
  expect(depot.timedCommands().map(anyBay)).toEqual([
    "09:00:00.000 release",
    "09:00:00.000 12 A",
    "09:00:00.000 12 A",
    "09:00:30.000 release",
    "09:01:00.000 release",
  ]);
  expect(depot.standing()).toEqual([]);
  expect(depot.audit("decision")).toContainEqual(
    expect.stringMatching(/ stays at 12 A until .*09:01:00.*: the next level has to wait/),
  );
  const held = depot.floor.states.filter(({ payload }) =>
    payload.includes("others rise first (release ramp)"),
  );
  expect(held.length).toBeGreaterThan(0);
});

test("the ramp goes on where it was after a restart", async () => {
  const depot = await threeChargers()
    .withControl({ releaseRamp: { current: 40 } })
    .running();
  await depot.until("09:00:10");
  depot.forget();
  await depot.restart();
  await depot.until("09:05");
  expect(
    depot
      .timedCommands()
      .filter((line) => line.includes("release"))
      .map(anyBay),
  ).toEqual(["09:00:30.000 release", "09:01:00.000 release"]);
});

test("after a restart the vehicle that waits longest for the ramp is released first, whatever the order of the configuration", async () => {
  const depot = await aDepot()
    .withVehicles(4)
    .withControl({ releaseRamp: { current: 20 } })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 12, vehicles: ["v4"] })
    .withEvent({ id: "EV-2", start: "08:00:01", minutes: 60, amperes: 12, vehicles: ["v3"] })
    .withEvent({ id: "EV-3", start: "08:00:02", minutes: 60, amperes: 12, vehicles: ["v1"] })
    .withEvent({ id: "EV-4", start: "08:00:03", minutes: 60, amperes: 12, vehicles: ["v2"] })
    .running();
  await depot.until("09:00:10");
  depot.forget();
  await depot.restart();
  await depot.until("09:10");
  // 20 A each at 20 A a minute. bay-04 was released before the restart.
  expect(depot.timedCommands().filter((line) => line.includes("release"))).toEqual([
    "09:01:00.000 bay-03 release",
    "09:02:00.000 bay-01 release",
    "09:03:00.000 bay-02 release",
  ]);
});

const pausedInTurn = () =>
  aDepot()
    .withVehicles(4)
    .withControl({ releaseRamp: { current: 20 } })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 0, vehicles: ["v4"] })
    .withEvent({ id: "EV-2", start: "08:00:01", minutes: 60, amperes: 0, vehicles: ["v3"] })
    .withEvent({ id: "EV-3", start: "08:00:02", minutes: 60, amperes: 0, vehicles: ["v1"] })
    .withEvent({ id: "EV-4", start: "08:00:03", minutes: 60, amperes: 0, vehicles: ["v2"] });

test("after a restart the paused vehicle that waits longest for the ramp is released first", async () => {
  const depot = await pausedInTurn()
    .withVehicle("v5", "bay-05")
    .withEvent({ id: "EV-5", start: "08:00", minutes: 120, amperes: 0, vehicles: ["v5"] })
    .running();
  await depot.until("09:00:00.500");
  await depot.withdraw("EV-5", 1);
  await depot.until("09:00:10");
  depot.forget();
  await depot.restart();
  await depot.until("09:10");
  // From 0 A to 32 A at 20 A a minute. bay-04 was released before the restart.
  expect(depot.timedCommands()).toEqual([
    "09:01:36.000 bay-05 release",
    "09:03:12.000 bay-03 release",
    "09:04:48.000 bay-01 release",
    "09:06:24.000 bay-02 release",
  ]);
});

test("a pause that waited for the ramp and is asked for again waits anew after that", async () => {
  const depot = await pausedInTurn().running();
  await depot.until("09:00:10");
  // bay-03 waits longest, until it is paused again for half a minute.
  await depot.deliver({ id: "EV-5", start: "09:00:10", minutes: 0.5, amperes: 0, vehicles: ["v3"] });
  await depot.until("09:00:50");
  depot.forget();
  await depot.restart();
  await depot.until("09:10");
  expect(depot.timedCommands()).toEqual([
    "09:01:36.000 bay-01 release",
    "09:03:12.000 bay-02 release",
    "09:04:48.000 bay-03 release",
  ]);
});

test("reductions never wait for the ramp, and rises between events do", async () => {
  const depot = await aDepot()
    .withVehicles(2)
    .withControl({ releaseRamp: { power: 13.8 } })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 20, priority: 5 })
    .withEvent({ id: "EV-2", start: "08:10", minutes: 10, amperes: 10, priority: 1 })
    .running();
  await depot.until("08:30");
  expect(depot.timedCommands().map(anyBay)).toEqual([
    "08:00:00.000 20 A",
    "08:00:00.000 20 A",
    "08:10:00.000 10 A",
    "08:10:00.000 10 A",
    "08:20:00.000 20 A",
    "08:20:00.000 10 A",
    "08:20:30.000 20 A",
  ]);
});

test("a pause lasts as long as the charger wants it to; the pause itself is not delayed", async () => {
  const depot = await aDepot()
    .withCharger("bay-01", { minOff: "5m" })
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 20, priority: 5 })
    .withEvent({ id: "EV-2", start: "08:10", minutes: 1, amperes: 0, priority: 1 })
    .running();
  await depot.until("08:30");
  expect(depot.timedCommands()).toEqual([
    "08:00:00.000 bay-01 20 A",
    "08:10:00.000 bay-01 pause",
    "08:15:00.000 bay-01 20 A",
  ]);
});

test("beyond a charger's limit on writes, increases wait and reductions do not", async () => {
  const depot = await aDepot()
    .withCharger("bay-01", { writesPerHour: 2 })
    .withVehicle("v1", "bay-01")
    .withControl({ refresh: "1h" })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 120, amperes: 20, priority: 5 })
    .withEvent({ id: "EV-2", start: "08:10", minutes: 5, amperes: 10, priority: 1 })
    .withEvent({ id: "EV-3", start: "08:12", minutes: 1, amperes: 8, priority: 0 })
    .running();
  await depot.until("09:30");
  expect(depot.timedCommands().slice(0, 3)).toEqual([
    "08:00:00.000 bay-01 20 A",
    "08:10:00.000 bay-01 10 A",
    "08:12:00.000 bay-01 8 A",
  ]);
  // Three in the hour from 08:00 on: the next one is let through when only one is left in the last hour.
  expect(depot.timedCommands().slice(3)).toEqual(["08:13:00.000 bay-01 8 A", "09:10:00.005 bay-01 20 A"]);
});

test("a restart allows no more writes in the hour than the charger's limit", async () => {
  const depot = await aDepot()
    .withCharger("bay-01", { writesPerHour: 2 })
    .withCharger("bay-02")
    .withVehicle("v1", "bay-01")
    .withControl({ refresh: "1h" })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 120, amperes: 20, priority: 5 })
    .withEvent({ id: "EV-2", start: "08:10", minutes: 5, amperes: 10, priority: 1 })
    .running();
  await depot.until("08:12");
  depot.forget();
  await depot.restart();
  await depot.until("09:30");
  // The first one left the last hour at 09:00.
  const raised = depot.timedCommands().filter((line) => line.endsWith("20 A"));
  expect(raised).toEqual(["09:00:00.005 bay-01 20 A"]);
});

test("a bus whose event is over does not wait an hour for its charger's limit on writes", async () => {
  const depot = await aDepot()
    .withCharger("bay-01", { writesPerHour: 2 })
    .withVehicle("v1", "bay-01")
    .withControl({ refresh: "1h" })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 14, amperes: 20, priority: 5 })
    .withEvent({ id: "EV-2", start: "08:10", minutes: 2, amperes: 0, priority: 1 })
    .publishingStates()
    .running();
  await depot.until("09:30");
  // Paused at 08:10, so it may go on at 08:15 at the latest; EV-1 is over by then.
  expect(depot.timedCommands()).toEqual([
    "08:00:00.000 bay-01 20 A",
    "08:10:00.000 bay-01 pause",
    "08:15:00.000 bay-01 release",
  ]);
  const held = depot.floor.states.filter(({ payload }) => payload.includes("it allows 2 writes an hour"));
  expect(held.length).toBeGreaterThan(0);
});

test("a level that has to be extended before a release is extended once", async () => {
  const depot = await aDepot()
    .withCharger("bay-01", { writesPerHour: 1 })
    .withVehicle("v1", "bay-01")
    .withControl({ refresh: "1h" })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 3, amperes: 20 })
    .running();
  await depot.until("09:30");
  expect(depot.timedCommands()).toEqual([
    "08:00:00.000 bay-01 20 A",
    "08:03:00.000 bay-01 20 A",
    "08:05:00.000 bay-01 release",
  ]);
});

test("a charger that commissioning takes out of the queue delays no charger behind it", async () => {
  const depot = await aDepot()
    .withVehicles(4)
    .withControl({ releaseRamp: { current: 22 } })
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("09:00:01");
  depot.lends("bay-02");
  await depot.until("09:10");
  const released = depot.commands().filter((words) => words.endsWith("release"));
  expect(released).toEqual(["bay-01 release", "bay-03 release", "bay-04 release"]);
});
