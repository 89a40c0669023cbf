import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";

import { eventsIn, isForAll, routesOf, shareFor, targetsIn } from "../../../src/daemon/fleet/routing.ts";
import { Entries, ListFeed } from "../../../src/daemon/fleet/partnerList.ts";
import type { Notice } from "../../../src/domain/delivery.ts";
import { eventId, instant, millis } from "../../../src/domain/units.ts";
import { anEvent } from "../../support/anEvent.ts";

const event = (id: string, ...vehicles: readonly string[]) =>
  anEvent({ id: eventId(id), targets: [{ type: "vehicle", values: vehicles }] });
const notice = (id: string, ...vehicles: readonly string[]): Notice => ({
  kind: "event",
  event: event(id, ...vehicles),
});
const ofVehicle = new Map([
  ["n1", "north"],
  ["n2", "north"],
  ["s1", "south"],
]);
const known = { ofVehicle, ofEvent: new Map<string, readonly string[]>(), all: ["north", "south", "west"] };
const valuesOf = (given: Notice | undefined): readonly string[] =>
  given?.kind === "event" ? given.event.targets.flatMap(({ values }) => values) : [];

describe("routing by vehicle", () => {
  test("each site gets its own vehicles, and one foreign target that keeps the event from being for all", () => {
    const { bySite, events, foreign } = routesOf([notice("E", "n1", "s1", "n2", "x")], known);
    expect([...bySite.keys()]).toEqual(["north", "south"]);
    expect(valuesOf(bySite.get("north")?.[0])).toEqual(["n1", "n2", "s1"]);
    expect(valuesOf(bySite.get("south")?.[0])).toEqual(["s1", "n1"]);
    expect(events).toEqual([
      { event: "E", site: "north" },
      { event: "E", site: "south" },
    ]);
    expect(foreign).toEqual([]);
  });

  test("an event for one site only is not changed", () => {
    const own = notice("E", "n1", "n2");
    expect(routesOf([own], known).bySite.get("north")?.[0]).toEqual(own);
  });

  test("an event without targets goes to every site as it is", () => {
    const all = notice("E");
    expect(isForAll(all)).toBe(true);
    expect([...routesOf([all], known).bySite]).toEqual(known.all.map((site) => [site, [all]]));
  });

  test("a site that had the event gets later revisions and the delete, also without a vehicle in it", () => {
    const had = { ...known, ofEvent: new Map([["E", ["south"]]]) };
    const { bySite, events } = routesOf([notice("E", "n1")], had);
    expect(valuesOf(bySite.get("south")?.[0])).toEqual(["n1"]);
    expect(events).toEqual([{ event: "E", site: "north" }]);
    const deleted: Notice = { kind: "deleted", id: eventId("E"), revision: null };
    expect([...routesOf([deleted], had).bySite]).toEqual([["south", [deleted]]]);
    expect(routesOf([deleted], known).foreign).toEqual([deleted]);
  });

  test("foreign vehicles and unreadable entries concern no site", () => {
    const rejected: Notice = { kind: "rejected", id: null, path: "[0]", reason: "no start", raw: "{}" };
    const { bySite, foreign } = routesOf([notice("E", "x"), rejected], known);
    expect([bySite.size, foreign.length]).toEqual([0, 2]);
    expect(eventsIn([notice("E"), rejected, { ...rejected, id: eventId("F") }])).toEqual(["E", "F"]);
    expect(targetsIn([notice("E", "a", "b"), notice("F", "b"), rejected])).toEqual(["a", "b"]);
  });

  test("a share has the same hash by webhook and by list, and another one with another vehicle", () => {
    const whole = event("E", "n1", "s1", "x");
    const routed = routesOf([{ kind: "event", event: whole }], known).bySite.get("north")?.[0];
    const share = shareFor(whole, (vehicle) => vehicle.startsWith("n"));
    expect(routed).toEqual({ kind: "event", event: share });
    expect(shareFor(event("E", "n1", "n2", "x"), (vehicle) => vehicle.startsWith("n")).hash).not.toBe(
      share.hash,
    );
  });
});

const neverAsked = async () => {
  throw new Error("not asked");
};

describe("the list for each site", () => {
  const at = instant(1);
  const answer = { kind: "read", at, askedAt: at, complete: true, skew: millis(0) } as const;
  const north = ["n1", "n2"];
  let now = 0;
  test("a site reads its own entries once, then the list is unchanged until its entries change", async () => {
    const feed = new ListFeed(() => now);
    const site = feed.siteOf(north, neverAsked);
    const waiting = site.list();
    feed.push(1, answer, [notice("E", "n1", "s1"), notice("F", "s1"), notice("G")]);
    const first = await waiting;
    if (first.kind !== "read") throw new Error(first.kind);
    expect(eventsIn(first.delivery.notices)).toEqual(["G", "E"]);
    // Not settled: it is read again.
    feed.push(2, answer, null);
    const second = await site.list();
    if (second.kind !== "read") throw new Error(second.kind);
    site.settled(first.delivery);
    site.settled(second.delivery);
    feed.push(3, answer, [notice("E", "n1", "s1"), notice("G")]);
    expect((await site.list()).kind).toBe("unchanged");
    feed.push(4, answer, [notice("E", "n1", "n2", "s1"), notice("G")]);
    expect((await site.list()).kind).toBe("read");
    feed.push(5, { kind: "failed", asked: true, reason: "away", status: null, retryAfter: null }, null);
    expect(await site.list()).toMatchObject({ kind: "failed", reason: "away" });
    expect(feed.number).toBe(5);
  });

  test("a site that starts later reads the last list at once; an unreadable entry counts as listed", async () => {
    const feed = new ListFeed(() => now);
    expect(feed.number).toBe(0);
    feed.push(1, answer, [
      { kind: "rejected", id: eventId("R"), path: "[0]", reason: "no start", raw: "{}" },
    ]);
    const read = await feed.siteOf(north, neverAsked).list();
    expect(read).toMatchObject({
      kind: "read",
      delivery: { notices: [], unchanged: { ids: ["R"], rejected: 0 } },
    });
    const empty = new ListFeed(() => now);
    empty.push(1, answer, null);
    expect(await empty.siteOf(north, neverAsked).list()).toMatchObject({
      kind: "read",
      delivery: { notices: [] },
    });
  });

  test("the same failure is answered once a minute, another one and the next list at once", async () => {
    const feed = new ListFeed(() => now);
    const { list } = feed.siteOf(north, neverAsked);
    const answers: string[] = [];
    const read = async (): Promise<void> => {
      for (;;) {
        const fetched = await list();
        answers.push(fetched.kind === "failed" ? fetched.reason : fetched.kind);
      }
    };
    void read();
    let number = 0;
    const push = async (reason: string | null): Promise<readonly string[]> => {
      number += 1;
      const failed = {
        kind: "failed",
        asked: true,
        reason: reason ?? "",
        status: 503,
        retryAfter: null,
      } as const;
      feed.push(number, reason === null ? answer : failed, null);
      // Answers are given within the microtasks of this turn.
      await nextTurn();
      return answers.splice(0);
    };
    expect(await push("503")).toEqual(["503"]);
    now += 59_000;
    expect(await push("503")).toEqual([]);
    now += 1_000;
    expect(await push("503")).toEqual(["503"]);
    expect(await push("no route")).toEqual(["no route"]);
    expect(await push(null)).toEqual(["read"]);
    expect(await push("no route")).toEqual(["no route"]);
  });

  test("a fetch by id is reduced to the site as well", async () => {
    const feed = new ListFeed(() => now);
    const gone = { kind: "gone", id: eventId("F") } as const;
    const fetched = {
      kind: "read",
      delivery: {
        source: "fetch",
        at,
        askedAt: at,
        complete: false,
        notices: [notice("E", "s1", "n1"), gone],
      },
      skew: null,
    } as const;
    const site = feed.siteOf(north, async (id) =>
      id === "E" ? fetched : { kind: "failed", asked: false, reason: "no", status: null, retryAfter: null },
    );
    const own = await site.event(eventId("E"));
    expect(own.kind === "read" ? own.delivery.notices.map(valuesOf) : []).toEqual([["n1", "s1"], []]);
    expect((await site.event(eventId("X"))).kind).toBe("failed");
    expect(new Entries([]).of(new Set(north))).toEqual([]);
  });
});
