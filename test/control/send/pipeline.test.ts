import { expect, test } from "vitest";

import { aDepot } from "../../support/aDepot.ts";

test("each charger's state is published, and again after the broker was away (F85)", async () => {
  const depot = await aDepot()
    .withVehicles(2)
    .withEvent({ start: "08:00", amperes: 10, vehicles: ["v1"] })
    .publishingStates()
    .startingAt("07:59")
    .running();
  const latest = (charger: string) =>
    JSON.parse(depot.floor.states.findLast((state) => state.charger === charger)?.payload ?? "null");
  await depot.until("08:00:05");
  expect(latest("bay-01")).toMatchObject({
    vehicle: "v1",
    asked: { kind: "current", value: 10, unit: "A", event: "EV-1" },
    allowed: { kind: "current", value: 10, unit: "A" },
    verdict: "accepted",
    until: "2026-11-21T09:00:00.000Z",
  });
  expect(latest("bay-02")).toMatchObject({ vehicle: "v2", asked: null, allowed: null, verdict: "none" });
  depot.brokerGoes();
  await depot.telemetry("bay-02", { state: "charging", powerW: 7000 });
  await depot.passes(5000);
  depot.floor.states.length = 0;
  depot.brokerReturns();
  await depot.passes(3000);
  expect(latest("bay-01")).toMatchObject({ vehicle: "v1" });
  expect(latest("bay-02")).toMatchObject({ measured: { powerW: 7000 } });
});

test("a state shows at once that another vehicle is plugged in", async () => {
  const depot = await aDepot().withVehicles(2).withVehicle("v3", null).publishingStates().running();
  await depot.telemetry("bay-01", { state: "charging" });
  await depot.passes(3000);
  await depot.telemetry("bay-01", { state: "charging", vehicle: "v3" });
  await depot.passes(3000);
  expect(JSON.parse(depot.floor.states.at(-1)?.payload ?? "null")).toMatchObject({
    charger: "bay-01",
    vehicle: "v3",
  });
});

test("a charger that sends messages all the time has its published state renewed twice a minute", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").publishingStates().running();
  await depot.until("08:00");
  const before = depot.floor.states.length;
  for (let n = 0; n < 120; n += 1) {
    await depot.telemetry("bay-01", { powerW: n });
    await depot.passes(5_000);
  }
  const renewed = depot.floor.states.length - before;
  expect(renewed).toBeGreaterThanOrEqual(19);
  expect(renewed).toBeLessThanOrEqual(21);
});

test("after a restart a state still gives the reason of its command", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10, vehicles: ["v1"] })
    .publishingStates()
    .startingAt("07:59")
    .running();
  const latest = () => JSON.parse(depot.floor.states.at(-1)?.payload ?? "null");
  await depot.until("08:00:05");
  const before = latest();
  expect(before.reason).toMatchObject({ cause: "event", winner: { event: "EV-1" } });
  depot.floor.states.length = 0;
  await depot.restart();
  await depot.passes(3000);
  expect(latest()).toMatchObject({ command: before.command, reason: before.reason });
});
