import { expect, test } from "vitest";

import { aDepot } from "../../support/aDepot.ts";
import type { TestDepot } from "../../support/testDepot.ts";

/** v1 is at home on bay-01 and draws there; it is asked for 6 A from 08:00 to 09:00. */
async function atHome(amperes = 6): Promise<TestDepot> {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withCharger("bay-02")
    .withEvent({ start: "08:00", minutes: 60, amperes })
    .running();
  await depot.telemetry("bay-01", { state: "charging", currentsA: [6, 6, 6] });
  await depot.until("08:10");
  return depot;
}

/** What a bay says each ten seconds. */
async function saysFor(depot: TestDepot, seconds: number, said: Parameters<TestDepot["telemetry"]>[1]) {
  for (let second = 0; second < seconds; second += 10) {
    await depot.telemetry("bay-01", said);
    await depot.passes(9_990);
  }
}

const contradictions = (depot: TestDepot): readonly string[] =>
  depot
    .audit("outcome")
    .flatMap((words) => (words.includes(" keeps ") ? [words.replace(/ \S+ keeps/, " keeps")] : []));

test("a charger that claims another's vehicle frees no bay that still draws; that is recorded and logged", async () => {
  const depot = await atHome();
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1", powerW: 4000 });
  await saysFor(depot, 600, { state: "charging", currentsA: [32, 32, 32] });
  expect(depot.commands()).toEqual(["bay-01 6 A", "bay-02 6 A"]);
  expect(contradictions(depot)).toEqual([
    "bay-01 keeps 6 A: v1 is reported at bay-02, but bay-01 has not reported that it is unplugged",
  ]);
  expect(depot.warnings.filter((words) => words.includes("keeps 6 A"))).toHaveLength(1);
  await depot.until("09:00:01");
  expect(depot.commands().slice(2).toSorted()).toEqual(["bay-01 release", "bay-02 release"]);
});

test("the bay that a vehicle left is released after a minute in which it draws nothing", async () => {
  const depot = await atHome();
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await depot.telemetry("bay-01", { currentsA: [0.2, 0, 0] });
  await depot.passes(50_000);
  expect(depot.commands()).toEqual(["bay-01 6 A", "bay-02 6 A"]);
  await depot.passes(11_000);
  expect(depot.commands()).toEqual(["bay-01 6 A", "bay-02 6 A", "bay-01 release"]);
});

test("a paused bay that draws nothing keeps its limit", async () => {
  const depot = await atHome(0);
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await saysFor(depot, 300, { state: "connected", powerW: 0 });
  expect(depot.commands()).toEqual(["bay-01 pause", "bay-02 pause"]);
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.passes(1000);
  expect(depot.commands()).toEqual(["bay-01 pause", "bay-02 pause", "bay-01 release"]);
});

test("an event that comes while a bay keeps a limit is for both, and a restart frees neither", async () => {
  const depot = await atHome(10);
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await depot.deliver({ id: "EV-2", start: "08:20", minutes: 10, amperes: 6, priority: 0 });
  await depot.until("08:21");
  expect(depot.standing()).toEqual(["bay-01 6 A until 08:30:00.000", "bay-02 6 A until 08:30:00.000"]);
  await depot.restart();
  await saysFor(depot, 60, { state: "charging", currentsA: [6, 6, 6] });
  expect(depot.standing()).toHaveLength(2);
});

test.each([
  ["offline", (depot: TestDepot) => depot.online("bay-02", false)],
  ["silent", (depot: TestDepot) => depot.passes(0)],
])(
  "a charger that is %s keeps no claim against the vehicle's own: back home it is limited",
  async (_, goes) => {
    const depot = await aDepot()
      .withVehicle("v1", "bay-01")
      .withCharger("bay-02")
      .withEvent({ start: "08:00", minutes: 60, amperes: 6 })
      .running();
    await depot.until("07:40");
    await depot.telemetry("bay-02", { state: "charging", vehicle: "v1", currentsA: [16, 16, 16] });
    await depot.telemetry("bay-01", { state: "unplugged" });
    await goes(depot);
    await depot.until("07:58");
    await saysFor(depot, 120, { state: "charging", currentsA: [32, 32, 32] });
    await depot.until("08:10");
    expect(depot.standing()).toContain("bay-01 6 A until 09:00:00.000");
  },
);

test.each([
  [
    "an exemption of the site",
    (depot: TestDepot) =>
      depot.hold({
        scope: { site: true },
        kind: "exempt",
        until: { at: "2026-11-21T08:13:00Z" },
        reason: "late",
      }),
  ],
  [
    "an observe period",
    (depot: TestDepot) => depot.mode({ mode: "observe", reason: "work", until: "2026-11-21T08:13:00Z" }),
  ],
])("a bay that kept its limit has it again after %s, if it still draws", async (_, frees) => {
  const depot = await atHome();
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await saysFor(depot, 60, { state: "charging", currentsA: [6, 6, 6] });
  await frees(depot);
  await saysFor(depot, 90, { state: "charging", currentsA: [32, 32, 32] });
  expect(depot.standing()).toEqual([]);
  await saysFor(depot, 60, { state: "charging", currentsA: [32, 32, 32] });
  expect(depot.standing()).toEqual(["bay-01 6 A until 09:00:00.000", "bay-02 6 A until 09:00:00.000"]);
  await depot.until("09:01");
  await saysFor(depot, 60, { state: "charging", currentsA: [32, 32, 32] });
  expect(depot.standing()).toEqual([]);
});

test("an event for a vehicle that a silent charger named last limits both: it may be at either", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withCharger("bay-02")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 6 })
    .running();
  await depot.until("07:40");
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1", currentsA: [16, 16, 16] });
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.until("08:10");
  expect(depot.standing()).toEqual(["bay-01 6 A until 09:00:00.000", "bay-02 6 A until 09:00:00.000"]);
  await depot.deliver({ id: "EV-2", start: "08:20", minutes: 20, amperes: 8, priority: 0 });
  await depot.until("08:30");
  expect(depot.standing()).toEqual(["bay-01 8 A until 08:40:00.000", "bay-02 8 A until 08:40:00.000"]);
  await depot.until("09:01");
  expect(depot.standing()).toEqual([]);
});

test("a charger that returns and still has the vehicle gets it back, and was limited all the time", async () => {
  const depot = await atHome();
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.online("bay-02", false);
  await depot.until("08:20");
  expect(depot.standing()).toEqual(["bay-01 6 A until 09:00:00.000", "bay-02 6 A until 09:00:00.000"]);
  await depot.online("bay-02", true);
  await depot.telemetry("bay-02", { powerW: 4000 });
  await depot.passes(1000);
  expect(depot.standing()).toEqual(["bay-02 6 A until 09:00:00.000"]);
});

test("a charger that is online again is limited for the vehicle of its last report, before it reports anything", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withCharger("bay-02")
    .withEvent({ start: "08:00", minutes: 60, amperes: 6 })
    .running();
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await depot.until("07:59:50");
  await depot.online("bay-02", false);
  await depot.until("08:00:30");
  expect(depot.standing()).toEqual(["bay-01 6 A until 09:00:00.000"]);
  await depot.online("bay-02", true);
  await depot.passes(1000);
  expect(depot.standing()).toContain("bay-02 6 A until 09:00:00.000");
});

test("a dead charger whose claim is restored loses it once it counts as silent", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withCharger("bay-02")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 })
    .withEvent({ id: "EV-2", start: "08:30", minutes: 60, amperes: 6 })
    .running();
  await depot.telemetry("bay-01", { state: "unplugged" });
  await depot.telemetry("bay-02", { state: "charging", vehicle: "v1" });
  await depot.until("08:10");
  await depot.restart();
  await depot.until("08:11");
  await saysFor(depot, 1800, { state: "charging", currentsA: [32, 32, 32] });
  expect(depot.standing()).toContain("bay-01 6 A until 09:30:00.000");
});
