import { expect, test, vi } from "vitest";

import { aDepot } from "../support/aDepot.ts";

const SHORT = { events: "8d", withdrawn: "8d", audit: "8d", reports: "8d" };

const pruning = () => aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").withRetention(SHORT);

test("an ended event goes from memory and disk once it is old and the partner lists it no more", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("2026-12-05T00:00:00Z");
  expect(depot.knownEvents()).toEqual(["EV-1"]);
  depot.partner.events.clear();
  await depot.until("2026-12-07T00:00:00Z");
  expect(depot.knownEvents()).toEqual([]);
  await depot.restart();
  expect(depot.knownEvents()).toEqual([]);
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
}, 60_000);

test("an old revision of a pruned event is an ended event again, and no charger hears of it (S5)", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("09:30");
  depot.partner.events.clear();
  await depot.until("2026-12-02T00:00:00Z");
  expect(depot.knownEvents()).toEqual([]);
  depot.forget();
  await depot.deliver({ start: "08:00", amperes: 10 });
  await depot.passes(3_600_000);
  expect([depot.knownEvents(), depot.messages()]).toEqual([["EV-1"], []]);
}, 60_000);

test("a tombstone outlives the retries of a sender, then it goes", async () => {
  const depot = await pruning().running();
  await depot.withdraw("EV-9");
  await depot.until("2026-11-28T00:00:00Z");
  expect(depot.knownEvents()).toEqual(["EV-9"]);
  await depot.until("2026-12-01T00:00:00Z");
  expect(depot.knownEvents()).toEqual([]);
}, 60_000);

test("old rows of the record go in one commit with a checkpoint, and what is left verifies also after a restart (S8, S10)", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("2026-12-02T00:00:00Z");
  expect(depot.audit("checkpoint").at(-1)).toMatch(
    /^the oldest \d+ rows of the record, up to row \d+ of 2026-11-/,
  );
  expect(depot.audit("decision")).toEqual([]);
  expect(depot.verified()).toMatchObject({ ok: true });
  await depot.restart();
  expect(depot.verified()).toMatchObject({ ok: true });
}, 60_000);

test("a clock that is years ahead of the partner's prunes nothing (F20)", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("09:30");
  depot.partner.events.clear();
  await depot.until("12:00");
  depot.clockAgrees = false;
  vi.setSystemTime(Date.parse("2036-11-21T12:00:00Z"));
  await depot.until("2036-11-23T12:00:00Z");
  expect(depot.knownEvents()).toEqual(["EV-1"]);
  expect(depot.audit("checkpoint")).toEqual([]);
  expect(depot.audit("decision")).toHaveLength(2);
}, 60_000);

test("a disk that is full when it is time to prune loses nothing, and the next day does it (F05)", async () => {
  const depot = await pruning().withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("09:30");
  depot.partner.events.clear();
  await depot.until("2026-11-29T00:00:00Z");
  depot.disk.full = true;
  await depot.until("2026-11-30T12:00:00Z");
  depot.disk.full = false;
  expect(depot.knownEvents()).toEqual(["EV-1"]);
  await depot.until("2026-12-02T12:00:00Z");
  expect(depot.knownEvents()).toEqual([]);
  expect(depot.verified()).toMatchObject({ ok: true });
}, 60_000);
