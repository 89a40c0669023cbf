import { describe, expect, test } from "vitest";

import { eventsIn, isForAll, routesOf, shareFor, targetsIn } from "../../../src/daemon/fleet/routing.ts";
import type { Notice } from "../../../src/domain/delivery.ts";
import { eventId } from "../../../src/domain/units.ts";
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

  test("within one delivery, a site that gets a new event gets its delete and its later revisions as well", () => {
    const deleted: Notice = { kind: "deleted", id: eventId("E"), revision: null };
    const { bySite, events, foreign } = routesOf([notice("E", "n1"), notice("E", "s1"), deleted], known);
    expect(bySite.get("north")?.map(({ kind }) => kind)).toEqual(["event", "event", "deleted"]);
    expect(valuesOf(bySite.get("north")?.[1])).toEqual(["s1"]);
    expect(bySite.get("south")?.map(({ kind }) => kind)).toEqual(["event", "deleted"]);
    expect(events).toEqual([
      { event: "E", site: "north" },
      { event: "E", site: "south" },
    ]);
    expect(foreign).toEqual([]);
    // In a body a delete counts for what follows as well, where the event is an older one.
    const before = routesOf([deleted, notice("E", "n1")], known);
    expect(before.bySite.get("north")?.map(({ kind }) => kind)).toEqual(["deleted", "event"]);
    expect([before.bySite.size, before.foreign]).toEqual([1, []]);
    const unknown = notice("E", "x");
    expect(routesOf([deleted, unknown], known).foreign).toEqual([deleted, unknown]);
  });

  test("foreign vehicles and unreadable entries concern no site", () => {
    const rejected: Notice = { kind: "rejected", id: null, path: "[0]", reason: "no start", raw: "{}" };
    const { bySite, foreign } = routesOf([notice("E", "x"), rejected], known);
    expect([bySite.size, foreign.length]).toEqual([0, 2]);
    expect(eventsIn([notice("E"), rejected, { ...rejected, id: eventId("F") }])).toEqual(["E", "F"]);
    expect(targetsIn([notice("E", "a", "b"), notice("F", "b"), rejected])).toEqual(["a", "b"]);
  });

  test("an unreadable entry goes to the sites that have its event, and to those of vehicles that it names", () => {
    const raw = JSON.stringify({ note: 'a "quoted" text \\', targets: [{ values: ["x", "n1", "n2"] }] });
    const rejected: Notice = { kind: "rejected", id: eventId("E"), path: "[0]", reason: "no start", raw };
    const had = { ...known, ofEvent: new Map([["E", ["south"]]]) };
    const { bySite, events, foreign } = routesOf([rejected], had);
    expect(Object.fromEntries(bySite)).toEqual({ south: [rejected], north: [rejected] });
    expect([events, foreign]).toEqual([[], []]);
    expect(targetsIn([rejected])).toEqual(expect.arrayContaining(["x", "n1", "n2"]));
    // The text is cut within the id of a vehicle.
    const cut = { ...rejected, id: null, raw: raw.slice(0, raw.indexOf("n2") + 1) };
    expect(targetsIn([cut])).not.toContain("n");
    expect([...routesOf([cut], known).bySite.keys()]).toEqual(["north"]);
    expect(targetsIn([{ ...cut, raw: '["n1","a\\' }])).toEqual(["n1"]);
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
