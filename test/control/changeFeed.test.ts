import { expect, test } from "vitest";

import { AnnouncingMap, ChangeFeed } from "../../src/control/changeFeed.ts";
import { chargerId, eventId, vehicleId } from "../../src/domain/units.ts";

test("a charger that changes twice before its state is published is published once, in the order of first changes", () => {
  const feed = new ChangeFeed();
  const [first, second] = [chargerId("bay-01"), chargerId("bay-02")];
  for (const charger of [first, second, first]) feed.announce("charger", charger);
  const unread = feed.forPublishedState;
  expect([...unread]).toEqual([first, second]);
  unread.remove(first);
  expect([...unread]).toEqual([second]);
  feed.announce("charger", first);
  expect([...unread]).toEqual([second, first]);
});

test("reports and the published state read in their own time: one takes nothing from the other", () => {
  const feed = new ChangeFeed();
  feed.announce("event", eventId("EV-1"));
  feed.announce("charger", chargerId("bay-01"));
  expect(feed.forReports.takeAll()).toEqual(["EV-1"]);
  expect(feed.forReports.takeAll()).toEqual([]);
  expect([...feed.forPublishedState]).toEqual(["bay-01"]);
  for (const id of ["EV-2", "EV-3"]) feed.forReports.add(eventId(id));
  expect(feed.forReports.takeAll()).toEqual(["EV-2", "EV-3"]);
});

test("a live page is woken once for many changes, reads each thing once by its kind, and nothing once it is closed", () => {
  const feed = new ChangeFeed();
  let woken = 0;
  expect(feed.isRead("vehicle")).toBe(false);
  const page = feed.readAll(() => (woken += 1));
  expect(feed.isRead("vehicle")).toBe(true);
  for (const id of ["bay-01", "bay-02", "bay-01"]) feed.announce("charger", chargerId(id));
  expect(woken).toBe(1);
  feed.announce("alarm", "offline:bay-01");
  feed.announce("hold", "hold-1-1");
  feed.announce("event", eventId("EV-1"));
  feed.announce("vehicle", vehicleId("veh-1"));
  expect(woken).toBe(1);
  expect(page.takeAll()).toEqual([
    { kind: "charger", id: "bay-01" },
    { kind: "charger", id: "bay-02" },
    { kind: "vehicle", id: "veh-1" },
    { kind: "event", id: "EV-1" },
    { kind: "hold", id: "hold-1-1" },
    { kind: "alarm", id: "offline:bay-01" },
  ]);
  expect(page.takeAll()).toEqual([]);
  feed.announce("vehicle", vehicleId("veh-2"));
  expect([woken, page.takeAll()]).toEqual([2, [{ kind: "vehicle", id: "veh-2" }]]);
  page[Symbol.dispose]();
  for (const id of ["bay-03", "bay-04"]) feed.announce("charger", chargerId(id));
  expect([woken, page.takeAll(), feed.isRead("vehicle")]).toEqual([2, [], false]);
});

test("a map announces what is set, deleted and cleared, each by its key", () => {
  const announced: string[] = [];
  const map = new AnnouncingMap<string, number>((key) => announced.push(key));
  map.set("a", 1).set("b", 2).set("a", 3);
  map.delete("b");
  map.clear();
  expect([announced, map.size]).toEqual([["a", "b", "a", "b", "a"], 0]);
});

test("readings alone reach a live page, not the published state", () => {
  const feed = new ChangeFeed();
  using page = feed.readAll(() => {});
  feed.announceReadings(chargerId("bay-01"));
  expect([...feed.forPublishedState]).toEqual([]);
  expect(page.takeAll()).toEqual([{ kind: "charger", id: "bay-01" }]);
});
