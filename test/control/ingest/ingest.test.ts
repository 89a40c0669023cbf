import { expect, test } from "vitest";

import { ingestAtOnce } from "../../support/ingestAtOnce.ts";
import { aDepot } from "../../support/aDepot.ts";
import type { Delivery, UnchangedEntries } from "../../../src/domain/delivery.ts";
import { eventId } from "../../../src/domain/units.ts";
import { anEvent, at } from "../../support/anEvent.ts";
import { aPicture } from "../../support/aPicture.ts";

const acting = () =>
  aDepot().withVehicles(3).withEvent({ start: "08:00", minutes: 180, spread: 10, amperes: 10 }).running();

test("a webhook is answered with the counts of its events, after the commit", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const event = depot.has({ start: "08:00" });
  const counts = async (body: unknown) => {
    const answer = await depot.post(body);
    return answer.kind === "ingested" ? answer.ingested : answer;
  };
  expect(await counts(event)).toEqual({ accepted: 1, repeats: 0, rejected: 0 });
  expect(await counts(event)).toEqual({ accepted: 0, repeats: 1, rejected: 0 });
  expect(await counts([event, { ...event, ID: "EV-2", intervalPeriod: { start: "soon" } }])).toEqual({
    accepted: 0,
    repeats: 1,
    rejected: 1,
  });
});

test("an event that is delivered again, or in an older revision, writes nothing to the disk", () => {
  const depot = aPicture();
  const deliver = (event: ReturnType<typeof anEvent>) => {
    const now = at("04:40");
    const notices = [{ kind: "event", event }] as const;
    return ingestAtOnce(depot, [{ source: "webhook", at: now, askedAt: now, notices, complete: false }])
      .changes;
  };
  const event = anEvent({ revision: at("04:30") });
  expect(deliver(event)).not.toEqual([]);
  expect(deliver(event)).toEqual([]);
  expect(deliver(anEvent({ revision: at("04:20") }))).toEqual([]);
});

test("entries that are the same as in the last list are counted, and count as listed", () => {
  const depot = aPicture();
  const now = at("04:40");
  const [one, two] = [anEvent({ id: "EV-1" }), anEvent({ id: "EV-2" })];
  const list = (notices: Delivery["notices"], unchanged: UnchangedEntries) =>
    ingestAtOnce(depot, [{ source: "list", at: now, askedAt: now, notices, complete: true, unchanged }]);
  const both = [one, two].map((event) => ({ kind: "event", event }) as const);
  list(both, { ids: [], rejected: 0 });
  const ids = ["EV-1", "EV-2", "EV-5"].map(eventId);
  const again = list([{ kind: "event", event: anEvent({ id: "EV-3" }) }], { ids, rejected: 1 });
  expect(again.results).toEqual([{ accepted: 1, repeats: 2, rejected: 1 }]);
  // Two lists that lack an event have it fetched by its id.
  const without = { ids: ids.slice(1), rejected: 1 };
  expect(list([], without).fetchById).toEqual([]);
  expect(list([], without).fetchById).toEqual(["EV-1", "EV-3"]);
});

test("every item of a webhook's list is counted as accepted, repeat or rejected", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const event = depot.has({ start: "08:00" });
  const program = { objectType: "PROGRAM", operation: "UPDATE", object: { id: "P-1" } };
  const items = [event, event, [], 5, {}, "EV-2", { events: [] }, program, null];
  expect(await depot.post(items)).toMatchObject({ ingested: { accepted: 1, repeats: 2, rejected: 6 } });
  // An id alone is no event. It is fetched.
  expect(await depot.post(["EV-2", program])).toMatchObject({
    ingested: { accepted: 0, repeats: 1, rejected: 1 },
  });
  expect(await depot.post([[]])).toMatchObject({ ingested: { accepted: 0, repeats: 0, rejected: 1 } });
});

test("the same event by webhook and by poll, again and again, changes nothing (F50)", async () => {
  const depot = await acting();
  await depot.until("08:20");
  depot.forget();
  const rows = depot.audit("event", "decision").length;
  await depot.post(depot.partner.events.get("EV-1"));
  await depot.until("08:25");
  expect(depot.commands()).toEqual([]);
  expect(depot.messages()).toHaveLength(3 * 5);
  expect(depot.audit("event", "decision")).toHaveLength(rows);
});

test("the same start in another notation, repeated or edited, changes no offset in the middle of an event", async () => {
  const depot = await acting();
  await depot.until("08:20");
  depot.forget();
  const event = depot.partner.events.get("EV-1");
  const intervalPeriod = {
    start: "2026-11-21T10:00:00+02:00",
    duration: "03:00:00",
    randomizeStart: "00:10:00",
  };
  const repeated = await depot.post({ ...event, intervalPeriod });
  expect(repeated).toMatchObject({ ingested: { accepted: 0, repeats: 1 } });
  const edited = { ...event, intervalPeriod, modificationDateTime: "2026-11-21T08:20:00Z", name: "renamed" };
  expect(await depot.post(edited)).toMatchObject({ ingested: { accepted: 1 } });
  await depot.until("08:20:30");
  expect(depot.commands()).toEqual([]);
});

test("an event that is listed twice in one list counts as its later entry, with a warning (F51)", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const event = depot.has({ id: "EV-1", start: "00:00:20", amperes: 10 });
  const other = { ...event, payload: { payloadType: "CurrentLevel", targetCurrent: 16 } };
  // Each entry is counted: what another one of the body stands above is a repeat.
  expect(await depot.post([event, other])).toMatchObject({
    ingested: { accepted: 1, repeats: 1, rejected: 0 },
  });
  expect(await depot.post([other, other, other])).toMatchObject({ ingested: { accepted: 0, repeats: 3 } });
  await depot.until("00:00:30");
  expect(depot.commands()).toEqual(["bay-01 16 A"]);
  expect(depot.audit("event").filter((words) => words.includes("is listed twice"))).toHaveLength(1);
});

test("create, delete and create in one body gives the same as in three (F51)", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  const first = depot.has({ start: "08:00", amperes: 16 });
  const gone = { objectType: "EVENT", operation: "DELETE", object: { ID: "EV-1" } };
  const second = depot.has({ start: "08:00", amperes: 10, revision: 1 });
  expect(await depot.post([first, gone, second])).toMatchObject({
    ingested: { accepted: 3, repeats: 0, rejected: 0 },
  });
  await depot.until("08:00:30");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
  expect(depot.audit("event")).toHaveLength(3);
});

test("the same malformed entry in every poll is recorded once (F39)", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const good = depot.has({ id: "EV-1", start: "08:00", amperes: 10 });
  depot.partner.events.set("EV-2", { ...good, ID: "EV-2", intervalPeriod: { start: "soon" } });
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
  expect(depot.audit("rejected")).toHaveLength(1);
});

test("a change in the middle of an event sends each charger one message, and none where nothing changed for it (F52)", async () => {
  const depot = await acting();
  await depot.until("08:20:30");
  const change = { start: "08:00", minutes: 180, spread: 10, amperes: 16, revision: 1 };
  depot.forget();
  await depot.deliver(change);
  await depot.passes(2000);
  expect(
    depot
      .messages()
      .map((line) => line.slice(13))
      .toSorted(),
  ).toEqual(["bay-01 16 A", "bay-02 16 A", "bay-03 16 A"]);
  depot.forget();
  await depot.deliver({ ...change, revision: 2, name: "Renamed" });
  await depot.passes(2000);
  expect(depot.messages()).toEqual([]);
});

test("a vehicle that an edit removes from an event is released at its own moment, the others are sent nothing", async () => {
  const depot = await acting();
  await depot.until("08:20:30");
  depot.forget();
  await depot.deliver({
    start: "08:00",
    minutes: 180,
    spread: 10,
    amperes: 10,
    revision: 1,
    vehicles: ["v1", "v2"],
  });
  await depot.until("08:30:31");
  expect(depot.commands()).toEqual(["bay-03 release"]);
});

test("a withdrawal spreads the releases over at most ten minutes (F53)", async () => {
  const depot = await acting();
  await depot.until("09:00");
  depot.forget();
  await depot.withdraw("EV-1", 1);
  await depot.until("09:10:01");
  const releases = depot.timedCommands().filter((line) => line.endsWith("release"));
  expect(releases.map((line) => line.slice(13)).toSorted()).toEqual([
    "bay-01 release",
    "bay-02 release",
    "bay-03 release",
  ]);
  expect(new Set(releases.map((line) => line.slice(0, 12))).size).toBe(3);
  expect(depot.audit("event").at(-1)).toBe("event EV-1 was withdrawn (webhook)");
});

test("a single empty list withdraws nothing, nor do many while the event is found by its id (F40, F41)", async () => {
  const depot = await acting();
  await depot.until("08:30");
  const hidden = depot.partner.events.get("EV-1");
  depot.partner.events.clear();
  await depot.until("08:31");
  expect(depot.partner.asked.filter((line) => line.endsWith("EV-1"))).toEqual([]);
  if (hidden !== undefined) depot.partner.events.set("EV-1", hidden);
  depot.partner.unlisted.add("EV-1");
  await depot.until("08:40");
  expect(depot.partner.asked.some((line) => line.endsWith("EV-1"))).toBe(true);
  expect(depot.standing()).toHaveLength(3);
});

test("events that the lists lack for long leave requests for one that is really gone (F41, L4)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "00:30", minutes: 120, amperes: 10 })
    .pollingEvery("1s")
    .running();
  for (const id of ["EV-2", "EV-3", "EV-4", "EV-5", "EV-6", "EV-7"]) {
    await depot.deliver({ id, start: "20:00" });
    depot.partner.unlisted.add(id);
  }
  await depot.until("01:00");
  expect(depot.partner.asked.filter((line) => !line.endsWith("list")).length).toBeLessThan(6 * 12);
  depot.partner.events.delete("EV-1");
  depot.partner.events.delete("EV-2");
  await depot.until("01:00:05");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
  await depot.until("02:15");
  expect(depot.audit("event").at(-1)).toBe("event EV-2 was withdrawn (fetch)");
});

test("missing from two complete lists and 404 by its id is a withdrawal (F40)", async () => {
  const depot = await acting();
  await depot.until("08:30:30");
  depot.forget();
  depot.partner.events.clear();
  await depot.until("08:50");
  expect(depot.partner.asked.filter((line) => !line.endsWith("list"))).toHaveLength(1);
  expect(depot.commands().filter((words) => words.endsWith("release"))).toHaveLength(3);
  expect(depot.audit("event").at(-1)).toBe("event EV-1 was withdrawn (fetch)");
});

test("neither a failing list nor a 500 by id counts as absence (F40)", async () => {
  const depot = await acting();
  await depot.until("08:30");
  depot.partner.events.clear();
  depot.partner.answers = { status: 500 };
  await depot.until("10:00");
  expect(depot.standing()).toHaveLength(3);
});

test("a withdrawn event stays withdrawn for late copies of it, and comes back with a newer revision", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  const copy = depot.partner.events.get("EV-1");
  await depot.withdraw("EV-1", 0);
  await depot.post(copy);
  await depot.until("08:10");
  expect(depot.commands()).toEqual([]);
  await depot.deliver({ start: "08:00", amperes: 12, revision: 1 });
  await depot.until("08:20");
  expect(depot.commands()).toEqual(["bay-01 12 A"]);
});

test("a later list with a withdrawn event revives it; a list requested before does not", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  const event = depot.partner.events.get("EV-1");
  if (event === undefined) throw new Error("no event");
  depot.partner.takesMs = 20_000;
  await depot.until("07:55");
  while (!depot.partner.busy) await depot.passes(1000);
  await depot.withdraw("EV-1", 0);
  await depot.until("07:55:50");
  expect(depot.audit("event").at(-1)).toBe("event EV-1 was withdrawn (webhook)");
  depot.partner.events.set("EV-1", event);
  depot.has({ id: "EV-2", start: "20:00" });
  await depot.until("08:10");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

const DELETE = { objectType: "EVENT", operation: "DELETE" };

test("a second delete while a list request is in flight is final for that list", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  const event = depot.partner.events.get("EV-1");
  if (event === undefined) throw new Error("no event");
  await depot.until("07:58");
  const gone = { ...DELETE, object: event };
  await depot.post(gone);
  depot.partner.takesMs = 20_000;
  while (!depot.partner.busy) await depot.passes(1000);
  depot.partner.events.delete("EV-1");
  await depot.post(gone);
  await depot.until("08:10");
  expect(depot.commands()).toEqual([]);
});

test("a delete without its revision withdraws once a fetch by id, sent at once, finds nothing", async () => {
  const depot = await acting();
  await depot.until("08:30:30");
  depot.forget();
  expect(await depot.withdraw("EV-1")).toMatchObject({ ingested: { accepted: 1, repeats: 0, rejected: 0 } });
  await depot.passes(100);
  expect(depot.partner.asked.map((what) => what.split(" ")[1])).toEqual(["EV-1"]);
  expect(depot.audit("event").at(-1)).toBe("event EV-1 was withdrawn (fetch)");
  await depot.until("08:41");
  expect(depot.commands().filter((words) => words.endsWith("release"))).toHaveLength(3);
});

test("captured bytes of a delete release no bay, and cost at most one request a minute", async () => {
  const depot = await acting();
  await depot.until("08:30:30");
  depot.forget();
  for (let second = 0; second < 300; second += 1) {
    await depot.post({ ...DELETE, object: { ID: "EV-1" } });
    await depot.passes(1000);
  }
  const byId = depot.partner.asked.filter((what) => what.endsWith("EV-1"));
  expect(byId.length).toBeGreaterThanOrEqual(5);
  expect(byId.length).toBeLessThanOrEqual(6);
  expect(depot.standing()).toHaveLength(3);
  expect(depot.commands().filter((words) => words.endsWith("release"))).toEqual([]);
});

test("a redelivered delete without its revision does not withdraw an event that was created again", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const gone = { ...DELETE, object: { ID: "EV-1" } };
  await depot.deliver({ start: "08:00", amperes: 16 });
  depot.partner.events.clear();
  await depot.post(gone);
  await depot.passes(100);
  expect(depot.audit("event").at(-1)).toBe("event EV-1 was withdrawn (fetch)");
  await depot.deliver({ start: "08:00", amperes: 10, revision: 1 });
  await depot.post(gone);
  await depot.until("08:10");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("a delete that no request could settle is settled by the next list that lacks the event", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 120, amperes: 10 })
    .running();
  await depot.until("08:30:30");
  depot.partner.answers = { status: 500 };
  await depot.withdraw("EV-1");
  await depot.until("08:35");
  expect(depot.standing()).toHaveLength(1);
  depot.partner.answers = "well";
  depot.forget();
  while (!depot.audit("event").at(-1)?.includes("withdrawn")) await depot.passes(1000);
  expect(depot.partner.asked.map((what) => what.split(" ")[1])).toEqual(["list", "EV-1"]);
});

test("an event that arrives after its delete is fetched again: the answer in flight is older", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  await depot.until("00:10");
  const event = depot.has({ start: "08:00", amperes: 10 });
  depot.partner.events.clear();
  depot.partner.takesMs = 2000;
  depot.forget();
  await depot.post({ ...DELETE, object: { ID: "EV-1" } });
  await depot.passes(500);
  await depot.post(event);
  await depot.until("08:10");
  expect(depot.partner.asked.filter((what) => what.endsWith("EV-1"))).toHaveLength(2);
  expect(depot.commands()).toEqual([]);
});

test("a single 404 by id withdraws nothing while the lists hold the event, nor after one list that lacks it (F40)", async () => {
  const depot = await acting();
  await depot.until("08:30:30");
  const hidden = depot.partner.events.get("EV-1");
  if (hidden === undefined) throw new Error("no event");
  // A webhook that only names the event has it fetched by its id.
  const fetchedGone = async () => {
    depot.partner.events.clear();
    await depot.post({ eventId: "EV-1" });
    await depot.passes(200);
  };
  depot.forget();
  await fetchedGone();
  expect(depot.partner.asked.map((what) => what.split(" ")[1])).toEqual(["EV-1"]);
  while (!depot.partner.asked.some((what) => what.endsWith("list"))) await depot.passes(100);
  await depot.passes(1000);
  await fetchedGone();
  depot.partner.events.set("EV-1", hidden);
  await depot.until("08:50");
  expect(depot.partner.asked.filter((what) => what.endsWith("EV-1"))).toHaveLength(2);
  expect(depot.standing()).toHaveLength(3);
  expect(depot.audit("event").filter((words) => words.includes("withdrawn"))).toEqual([]);
});

test("same time and other content by webhook after a fetch is fetched by id at once (F51)", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  depot.has({ start: "08:00", amperes: 16 });
  await depot.until("01:10");
  depot.forget();
  await depot.deliver({ start: "08:00", amperes: 8 });
  await depot.passes(100);
  expect(depot.partner.asked).toEqual([expect.stringMatching(/^01:10:00\.0\d\d EV-1$/)]);
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 8 A"]);
});

test("an older revision that arrives late is not acted on (F51)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 16, revision: 2 })
    .running();
  await depot.until("08:10");
  const newest = depot.partner.events.get("EV-1");
  await depot.deliver({ start: "08:00", amperes: 8, revision: 1 });
  if (newest !== undefined) depot.partner.events.set("EV-1", newest);
  await depot.until("08:20");
  expect(depot.commands()).toEqual(["bay-01 16 A"]);
});

test("two webhooks that contradict each other are settled by a fetch of that event (F51)", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").pollingEvery("1h").running();
  await depot.until("00:10");
  await depot.deliver({ start: "08:00", amperes: 16 });
  depot.forget();
  await depot.deliver({ start: "08:00", amperes: 8 });
  await depot.passes(100);
  expect(depot.partner.asked).toEqual(["00:10:00.011 EV-1"]);
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 8 A"]);
});

test("an unknown payload type is recorded and never acted on (F55)", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const event = depot.has({ start: "08:00" });
  await depot.post({ ...event, payload: { payloadType: "Unknown", targetCurrent: 16 } });
  depot.partner.events.clear();
  await depot.until("08:01");
  expect(depot.messages()).toEqual([]);
  expect(depot.audit("event").join()).toContain(
    "payload type Unknown is not known, CurrentLevel and PowerLevel are: never acted on",
  );
});

test("an event whose date is wrong by years is edited all the same, at the latest with the next list", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const wrong = { start: "08:00", minutes: 180, amperes: 16, revision: 4_000_000_000 };
  await depot.deliver(wrong);
  await depot.until("08:10");
  expect(depot.standing()).toEqual(["bay-01 16 A until 11:00:00.000"]);
  expect(depot.audit("event").at(-1)).toContain("more than a day ahead");
  // The edit is in the list only.
  depot.has({ ...wrong, amperes: 10, revision: 2000 });
  await depot.until("08:12");
  expect(depot.standing()).toEqual(["bay-01 10 A until 11:00:00.000"]);
  // An edit by webhook is asked for by its id at once.
  await depot.deliver({ ...wrong, revision: 4_000_000_000 });
  await depot.until("08:14:30");
  await depot.deliver({ ...wrong, amperes: 8, revision: 2010 });
  await depot.passes(2000);
  expect(depot.standing()).toEqual(["bay-01 8 A until 11:00:00.000"]);
  // A delete that names the earlier date.
  await depot.deliver({ ...wrong, revision: 4_000_000_000 });
  await depot.passes(2000);
  await depot.withdraw("EV-1", 2020);
  await depot.passes(2000);
  expect(depot.standing()).toEqual([]);
});
