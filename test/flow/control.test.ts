import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

test("a restart keeps the future: stored dispatches start with no new delivery", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .restarted();
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("an event starts on time and the charger is let go at its end", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .running();
  await depot.until("10:00");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 10 A", "08:30:00.000 bay-01 release"]);
});
