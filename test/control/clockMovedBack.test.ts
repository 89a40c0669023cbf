import { expect, test, vi } from "vitest";

import { aDepot } from "../support/aDepot.ts";
import type { TestDepot } from "../support/testDepot.ts";

/** The clock is set back by so long, and that is noticed. */
async function setBack(depot: TestDepot, minutes: number): Promise<void> {
  vi.setSystemTime(Date.now() - minutes * 60_000);
  await depot.passes(65_000);
}

test("F21: a vehicle that moves after the clock was set back is followed, whatever the other charger reported before", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withVehicle("v1", null)
    .withSilentChargers()
    .running();
  await depot.deliver({ start: "07:00", minutes: 180, amperes: 10 });
  await depot.until("08:30");
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v1" });
  await setBack(depot, 60);
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  // A claim frees no bay: the one that was left keeps its limit until it says that nobody is plugged in (DESIGN 5.5).
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-02 10 A"]);
  await depot.telemetry("bay-01", { state: "unplugged" });
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-02 10 A", "bay-01 release"]);
});

test("F21: a charger that does not follow is detected after the clock was set back, too", async () => {
  const depot = await aDepot().withVehicles(1).withSilentChargers().running();
  await depot.deliver({ start: "07:00", minutes: 180, amperes: 10 });
  await depot.until("08:29:50");
  await depot.deliver({ start: "07:00", minutes: 180, amperes: 8, revision: 1 });
  await setBack(depot, 60);
  for (let n = 0; n < 2; n += 1) {
    await depot.passes(60_000);
    await depot.telemetry("bay-01", { state: "charging", limitA: 16 });
  }
  expect(depot.audit("outcome").at(-1)).toContain("not followed: setpoint 8 A, reports a limit of 16 A");
});

test("F21: a charger that comes back after the clock was set back is sent its command", async () => {
  const depot = await aDepot().withVehicles(1).withSilentChargers().equippedWith({ refresh: null }).running();
  await depot.deliver({ start: "07:00", minutes: 180, amperes: 10 });
  await depot.until("08:10");
  await depot.online("bay-01", true);
  await depot.telemetry("bay-01", { state: "charging", currentsA: [9], voltagesV: [230] });
  await setBack(depot, 60);
  depot.forget();
  await depot.online("bay-01", false);
  await depot.online("bay-01", true);
  expect(depot.messages()).toHaveLength(1);
});

test("F21: an unplug from before a hold does not end it after the clock was set back", async () => {
  const depot = await aDepot().withVehicles(1).withSilentChargers().running();
  await depot.until("08:00");
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.passes(60_000);
  await depot.telemetry("bay-01", { state: "charging" });
  const level = { kind: "level", level: { currentA: 8 }, reason: "leaves early" } as const;
  await depot.hold({ scope: { charger: "bay-01" }, ...level, until: { unplugged: true } });
  await depot.passes(60_000);
  await setBack(depot, 60);
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.passes(60_000);
  // The second one is a refresh.
  expect(depot.commands()).toEqual(["bay-01 8 A", "bay-01 8 A"]);
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.passes(1_000);
  expect(depot.commands().slice(2)).toEqual(["bay-01 release"]);
});

test("F21: a release does not wait for one that now lies in the future", async () => {
  const depot = await aDepot()
    .withVehicles(2)
    .withControl({ releaseRamp: { current: 10 } })
    .running();
  await depot.deliver({ id: "EV-A", start: "06:00", minutes: 135, amperes: 10, vehicles: ["v1"] });
  await depot.deliver({ id: "EV-B", start: "06:00", minutes: 90, amperes: 10, vehicles: ["v2"] });
  await depot.until("07:20");
  vi.setSystemTime(Date.parse("2026-11-21T08:20:00Z"));
  await depot.passes(5000);
  await setBack(depot, 60);
  depot.forget();
  await depot.until("08:14");
  expect(depot.timedCommands()).toEqual(["07:30:00.000 bay-02 release"]);
});

/** bay-01, the home of v1, draws and names nobody; bay-02 claims v1. Both report each minute. */
async function claimedElsewhere(depot: TestDepot, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    await depot.telemetry("bay-01", { state: "charging", currentsA: [10, 10, 10] });
    await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
    await depot.passes(60_000);
  }
}

const twoBays = () => aDepot().withVehicle("v1", "bay-01").withCharger("bay-02");

test("F21: a bay that keeps a limit for a vehicle claimed elsewhere has it again once the clock is right again", async () => {
  const depot = await twoBays()
    .withEvent({ id: "EV-0", start: "07:00", minutes: 30, amperes: 8 })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 180, amperes: 10 })
    .running();
  await depot.until("08:30");
  await claimedElsewhere(depot, 10);
  expect(depot.standing()).toEqual(["bay-01 10 A until 11:00:00.000", "bay-02 10 A until 11:00:00.000"]);
  // By this clock EV-0 is in force once more, and over before the clock is right.
  await setBack(depot, 75);
  await claimedElsewhere(depot, 1);
  expect(depot.standing()).toEqual(["bay-01 8 A until 07:30:00.000", "bay-02 8 A until 07:30:00.000"]);
  await claimedElsewhere(depot, 10);
  expect(depot.standing()).toEqual([]);
  vi.setSystemTime(Date.parse("2026-11-21T09:00:00Z"));
  await claimedElsewhere(depot, 2);
  expect(depot.standing()).toEqual(["bay-01 10 A until 11:00:00.000", "bay-02 10 A until 11:00:00.000"]);
});

test("F21: a kept limit that ends in its time, after a clock was set back, does not come back with the next event", async () => {
  const depot = await twoBays()
    .withEvent({ id: "EV-1", start: "07:30", minutes: 60, amperes: 10 })
    .withEvent({ id: "EV-2", start: "08:45", minutes: 30, amperes: 8 })
    .running();
  await depot.until("08:10");
  await claimedElsewhere(depot, 2);
  await setBack(depot, 20);
  await claimedElsewhere(depot, 60);
  expect(depot.standing()).toEqual(["bay-02 8 A until 09:15:00.000"]);
});

test.each([
  ["while it runs", (depot: TestDepot) => setBack(depot, 60)],
  ["before a start", (depot: TestDepot) => restartedBack(depot, 60)],
])(
  "F21: an unplug ends its hold although the clock was set back %s to before the hold was opened",
  async (_, isSetBack) => {
    const depot = await aDepot()
      .withVehicle("v1", "bay-01")
      .withEvent({ start: "07:00", minutes: 180, amperes: 10 })
      .running();
    await depot.until("08:00");
    await depot.telemetry("bay-01", { state: "charging", currentsA: [10, 10, 10] });
    await depot.hold({
      scope: { charger: "bay-01" },
      kind: "level",
      level: { currentA: 20 },
      until: { unplugged: true },
      reason: "late",
    });
    await isSetBack(depot);
    await depot.telemetry("bay-01", { state: "charging", currentsA: [20, 20, 20] });
    await depot.passes(1000);
    expect(depot.standing()).toEqual([expect.stringContaining("bay-01 20 A until")]);
    await depot.telemetry("bay-01", { state: "unplugged" });
    await depot.telemetry("bay-01", { state: "charging", currentsA: [10, 10, 10] });
    await depot.passes(1000);
    expect(depot.standing()).toEqual(["bay-01 10 A until 10:00:00.000"]);
  },
);

/** The clock is set back while nothing runs. */
async function restartedBack(depot: TestDepot, minutes: number): Promise<void> {
  await depot.stop();
  vi.setSystemTime(Date.now() - minutes * 60_000);
  depot.start();
  await depot.passes(6 * 60_000);
}

test("F21: a vehicle that moves after a start with the clock set back is followed", async () => {
  const depot = await aDepot()
    .withCharger("bay-01")
    .withCharger("bay-02")
    .withVehicle("v1", null)
    .withSilentChargers()
    .running();
  await depot.deliver({ start: "07:00", minutes: 180, amperes: 10 });
  await depot.until("08:30");
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v1" });
  await restartedBack(depot, 60);
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-02 10 A"]);
});

test("F21: a charger that does not follow is detected after a start with the clock set back, too", async () => {
  const depot = await aDepot().withVehicles(1).withSilentChargers().running();
  await depot.deliver({ start: "07:00", minutes: 180, amperes: 10 });
  await depot.until("08:29:50");
  await depot.deliver({ start: "07:00", minutes: 180, amperes: 8, revision: 1 });
  await restartedBack(depot, 60);
  for (let n = 0; n < 2; n += 1) {
    await depot.passes(60_000);
    await depot.telemetry("bay-01", { state: "charging", limitA: 16 });
  }
  expect(depot.audit("outcome").at(-1)).toContain("not followed: setpoint 8 A, reports a limit of 16 A");
});

test("F21: a level keeps its lease while its successor cannot be stored, also after the clock was set back (F05)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-A", start: "07:00", minutes: 180, amperes: 10, priority: 2 })
    .withEvent({ id: "EV-B", start: "07:55", minutes: 30, amperes: 16, priority: 1 })
    .running();
  await depot.until("08:30");
  depot.disk.full = true;
  depot.forget();
  await setBack(depot, 30);
  await depot.passes(4 * 60_000);
  expect(depot.messages().length).toBeGreaterThanOrEqual(4);
});

/** The clock is right again. */
async function clockIsRight(depot: TestDepot, time: string): Promise<void> {
  vi.setSystemTime(Date.parse(`2026-11-21T${time}:00Z`));
  await claimedElsewhere(depot, 2);
}

test.each([
  ["a level", 75, 10, "10 A until 11:00:00.000"],
  ["a level", 50, 10, "10 A until 11:00:00.000"],
  ["a pause", 75, 0, "pause"],
  ["a pause", 56 * 365 * 1440, 0, "pause"],
])(
  "F21: a restart while the clock is behind loses no kept limit: %s, %s min",
  async (_, behind, amperes, standing) => {
    const both = [`bay-01 ${standing}`, `bay-02 ${standing}`];
    const depot = await twoBays().withEvent({ id: "EV-1", start: "08:00", minutes: 180, amperes }).running();
    await depot.until("08:30");
    await claimedElsewhere(depot, 10);
    expect(depot.standing()).toEqual(both);
    await setBack(depot, behind);
    await claimedElsewhere(depot, 1);
    expect(depot.standing()).toEqual([]);
    await depot.restart();
    await claimedElsewhere(depot, 1);
    await depot.restart();
    await claimedElsewhere(depot, 1);
    await clockIsRight(depot, "09:00");
    expect(depot.standing()).toEqual(both);
  },
);

test("F21: a restart while an earlier event is in force once more, by a wrong clock, loses no kept limit", async () => {
  const depot = await twoBays()
    .withEvent({ id: "EV-0", start: "07:00", minutes: 30, amperes: 8 })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 180, amperes: 10 })
    .running();
  await depot.until("08:30");
  await claimedElsewhere(depot, 10);
  await setBack(depot, 75);
  await claimedElsewhere(depot, 1);
  await depot.restart();
  await claimedElsewhere(depot, 1);
  expect(depot.standing()).toEqual(["bay-01 8 A until 07:30:00.000", "bay-02 8 A until 07:30:00.000"]);
  await claimedElsewhere(depot, 10);
  expect(depot.standing()).toEqual([]);
  await depot.restart();
  await clockIsRight(depot, "09:00");
  expect(depot.standing()).toEqual(["bay-01 10 A until 11:00:00.000", "bay-02 10 A until 11:00:00.000"]);
});

test.each([75, 56 * 365 * 1440])(
  "F21: a start with the clock %s min behind loses no kept limit that was in force at the stop",
  async (behind) => {
    const depot = await twoBays()
      .withEvent({ id: "EV-1", start: "08:00", minutes: 180, amperes: 10 })
      .running();
    await depot.until("08:30");
    await claimedElsewhere(depot, 10);
    await restartedBack(depot, behind);
    await claimedElsewhere(depot, 2);
    expect(depot.standing()).toEqual([]);
    await clockIsRight(depot, "09:00");
    expect(depot.standing()).toEqual(["bay-01 10 A until 11:00:00.000", "bay-02 10 A until 11:00:00.000"]);
  },
);

test("F21: a bay that reported unplugged while the clock was wrong keeps no limit after a restart", async () => {
  const depot = await twoBays()
    .withEvent({ id: "EV-1", start: "08:00", minutes: 180, amperes: 10 })
    .running();
  await depot.until("08:30");
  await claimedElsewhere(depot, 10);
  await setBack(depot, 75);
  await claimedElsewhere(depot, 1);
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.restart();
  vi.setSystemTime(Date.parse("2026-11-21T09:00:00Z"));
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await depot.passes(60_000);
  expect(depot.standing()).toEqual(["bay-02 10 A until 11:00:00.000"]);
});

test("F21: a hold that was opened while the clock was ahead for seconds lasts no longer than a day in real time", async () => {
  const depot = await aDepot().withVehicles(2).running();
  await depot.until("08:00");
  vi.setSystemTime(Date.now() + 25 * 3_600_000);
  const level = { kind: "level", level: { currentA: 10 }, reason: "leaves early" };
  const until = new Date(Date.now() + 23 * 3_600_000).toISOString();
  await depot.hold({ ...level, scope: { vehicle: "v1" }, until: { at: until } });
  await depot.hold({ ...level, scope: { vehicle: "v2" }, until: { unplugged: true } });
  await depot.passes(2000);
  vi.setSystemTime(Date.now() - 25 * 3_600_000);
  await depot.passes(23.9 * 3_600_000);
  expect(depot.commands().filter((command) => command.endsWith("release"))).toEqual([]);
  await depot.passes(0.2 * 3_600_000);
  expect(depot.commands().slice(-2)).toEqual(["bay-01 release", "bay-02 release"]);
  expect(depot.audit("daemon").filter((words) => words.includes("was set"))).toHaveLength(2);
});

test("F21: an event that arrives while the clock is ahead for seconds runs by the clock that is right again", async () => {
  const depot = await aDepot().withVehicles(1).running();
  await depot.until("08:00");
  vi.setSystemTime(Date.now() + 3_600_000);
  await depot.deliver({ start: "08:10", minutes: 30, amperes: 10 });
  await depot.passes(2000);
  vi.setSystemTime(Date.now() - 3_600_000);
  await depot.until("08:45");
  expect(depot.timedCommands()).toEqual(["08:10:00.000 bay-01 10 A", "08:40:00.000 bay-01 release"]);
});
