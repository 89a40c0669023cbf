import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

test("a list of 300 events is ingested whole, and its vehicle is commanded once, by the event of the last part", async () => {
  const depot = await aDepot().withVehicle("veh-1", "bay-01").pollingEvery("1h").running();
  await depot.until("00:30");
  for (let number = 0; number < 300; number += 1) {
    const priority = number === 299 ? 0 : 1;
    depot.has({
      id: `EV-${number}`,
      start: "00:00",
      minutes: 180,
      amperes: number === 299 ? 10 : 16,
      priority,
    });
  }
  await depot.until("02:00");
  expect(depot.knownEvents()).toHaveLength(300);
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("only an event that two long lists lack is requested by its id and withdrawn", async () => {
  const depot = await aDepot().withVehicle("veh-1", "bay-01").pollingEvery("1h").running();
  for (let number = 0; number < 300; number += 1)
    depot.has({ id: `EV-${number}`, start: "20:00", minutes: 60, amperes: 16 });
  await depot.until("01:30");
  depot.partner.events.delete("EV-7");
  depot.forget();
  await depot.until("04:30");
  expect(depot.partner.asked.filter((line) => !line.endsWith("list")).map((line) => line.slice(13))).toEqual([
    "EV-7",
  ]);
  expect(depot.audit("event").filter((words) => words.includes("withdrawn"))).toHaveLength(1);
});
