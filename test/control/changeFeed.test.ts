import { expect, test } from "vitest";

import { ChangeFeed } from "../../src/control/changeFeed.ts";
import { chargerId, eventId } from "../../src/domain/units.ts";

test("a charger that changes twice before its state is published is published once, in the order of first changes", () => {
  const feed = new ChangeFeed();
  const [first, second] = [chargerId("bay-01"), chargerId("bay-02")];
  for (const charger of [first, second, first]) feed.chargerChanged(charger);
  const unread = feed.forPublishedState;
  expect([...unread]).toEqual([first, second]);
  unread.remove(first);
  expect([...unread]).toEqual([second]);
  feed.chargerChanged(first);
  expect([...unread]).toEqual([second, first]);
});

test("reports and the published state read in their own time: one takes nothing from the other", () => {
  const feed = new ChangeFeed();
  feed.eventChanged(eventId("EV-1"));
  feed.chargerChanged(chargerId("bay-01"));
  expect(feed.forReports.takeAll()).toEqual(["EV-1"]);
  expect(feed.forReports.takeAll()).toEqual([]);
  expect([...feed.forPublishedState]).toEqual(["bay-01"]);
  feed.forReports.addAll([eventId("EV-2"), eventId("EV-3")]);
  expect(feed.forReports.takeAll()).toEqual(["EV-2", "EV-3"]);
});
