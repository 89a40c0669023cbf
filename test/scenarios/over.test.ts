import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

const USAGE = { payloadType: "USAGE", readingType: "DIRECT_READ" };
const EVENT = { id: "EV-1", start: "08:00", minutes: 10, amperes: 10, revision: 2 };

/** A depot whose one event ended half an hour ago. */
async function afterwards() {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").withEvent(EVENT).running();
  await depot.until("08:40");
  expect(depot.inMemory()).toEqual(["EV-1 over"]);
  depot.forget();
  return depot;
}

test("an event that is over is a summary in memory, also after a restart, and whole again on disk for who asks", async () => {
  const depot = await afterwards();
  await depot.restart();
  await depot.until("08:45");
  expect(depot.inMemory()).toEqual(["EV-1 over"]);
  expect(depot.knownEvents()).toEqual(["EV-1"]);
  expect(depot.commands()).toEqual([]);
});

test("a repeat of an event that is over is a repeat, and an older revision is stale, without a read of the disk", async () => {
  const depot = await afterwards();
  const rows = depot.audit("event").length;
  expect(await depot.post(depot.partner.events.get("EV-1"))).toMatchObject({ ingested: { repeats: 1 } });
  const old = {
    ...depot.partner.events.get("EV-1"),
    modificationDateTime: "2026-11-20T00:00:00Z",
    name: "old",
  };
  expect(await depot.post(old)).toMatchObject({ ingested: { accepted: 0, repeats: 1 } });
  expect([depot.audit("event").length, depot.inMemory()]).toEqual([rows, ["EV-1 over"]]);
});

test("a newer revision opens an event again that was over, before and after a restart", async () => {
  const depot = await afterwards();
  expect(await depot.deliver({ ...EVENT, minutes: 60, amperes: 12, revision: 3 })).toMatchObject({
    ingested: { accepted: 1 },
  });
  expect(depot.inMemory()).toEqual(["EV-1 live"]);
  expect(depot.audit("event").at(-1)).toContain("changed");
  await depot.until("09:20");
  expect(depot.commands()).toEqual(["bay-01 12 A", "bay-01 release"]);
  await depot.restart();
  await depot.deliver({ ...EVENT, start: "09:00", minutes: 60, amperes: 14, revision: 4 });
  await depot.until("09:25");
  expect(depot.commands()).toEqual(["bay-01 12 A", "bay-01 release", "bay-01 14 A"]);
});

test("an event that is over can be withdrawn, and its tombstone is over in its turn", async () => {
  const depot = await afterwards();
  const event = depot.partner.events.get("EV-1");
  depot.partner.events.clear();
  await depot.withdraw("EV-1");
  await depot.until("09:00");
  expect(depot.inMemory()).toEqual(["EV-1 over"]);
  expect(depot.audit("event").at(-1)).toContain("withdrawn");
  expect(await depot.post(event)).toMatchObject({ ingested: { accepted: 0, repeats: 1 } });
  expect(depot.inMemory()).toEqual(["EV-1 over"]);
});

test("windows that were missed while nothing ran are recorded, and the event is over then", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  await depot.deliver({ ...EVENT, start: "09:00" });
  await depot.stop();
  await depot.until("12:00");
  depot.start();
  await depot.passes(60_000);
  expect(depot.audit("missed")).toHaveLength(1);
  expect(depot.inMemory()).toEqual(["EV-1 over"]);
});

test("a report that is owed of an event that is over is made, also after a restart (L3)", async () => {
  const depot = await aDepot().withVehicles(1).reporting({ settleDelay: "20m" }).pollingEvery("1h").running();
  await depot.deliver({ ...EVENT, reports: [USAGE] });
  await depot.until("08:25");
  expect([depot.inMemory(), depot.reports()]).toEqual([["EV-1 over"], [expect.stringContaining("planned")]]);
  await depot.restart();
  await depot.until("08:35");
  expect(depot.reports()).toEqual([expect.stringContaining("sent EV-1/0/0")]);
  await depot.restart();
  await depot.until("08:40");
  expect([depot.inMemory(), depot.reports()]).toEqual([
    ["EV-1 over"],
    [expect.stringContaining("sent EV-1/0/0")],
  ]);
});

test("a stored event that was changed on the disk is refused, and the rest goes on", async () => {
  const depot = await afterwards();
  await depot.stop();
  const database = new DatabaseSync(depot.database);
  database.exec("UPDATE event SET body = replace(body, '\"level\":10', '\"level\":32')");
  database.close();
  depot.start();
  expect(await depot.deliver({ ...EVENT, minutes: 90, revision: 3 })).toMatchObject({
    ingested: { rejected: 1 },
  });
  expect(depot.inMemory()).toEqual(["EV-1 over"]);
});
