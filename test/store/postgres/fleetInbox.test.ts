import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";

import type { Delivery, Notice } from "../../../src/domain/delivery.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { KNOWN_VERSION, migrate } from "../../../src/store/postgres/schema.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { NOON } from "../sqlite/words.ts";
import { aFleetOf } from "./fleetRows.ts";
import { aCluster } from "./state.ts";

const siteKey = randomBytes(32);
const delivery = (number: number): Delivery => ({
  source: "webhook",
  at: instant(NOON + number),
  askedAt: instant(NOON + number),
  notices: [],
  complete: false,
});
const deletion = (id: string, seconds: number): Notice & { readonly kind: "deleted" } => ({
  kind: "deleted",
  id: eventId(id),
  revision: instant(NOON + seconds * 1_000),
});

/** Another delivery that stores this event of the site `a`. */
const storing = (event: string): string =>
  `INSERT INTO fleet_event VALUES ('${event}', 'a', clock_timestamp())`;

describe.skipIf(postgresMissing() !== null)("messages of the partner to a fleet", () => {
  const cluster = aCluster();

  test("one process polls the partner; another does so once it has not renewed in time, or has left", async () => {
    const { process, sql } = await aFleetOf(cluster());
    const [one, two] = [process("one"), process("two")];
    const polls = async ({ inbox }: Pick<typeof one, "inbox">): Promise<boolean> =>
      (await inbox.polls()) !== null;
    expect([await polls(one), await polls(two), await polls(one)]).toEqual([true, false, true]);
    await sql("UPDATE fleet_poller SET until = clock_timestamp() - interval '1 ms'");
    expect([await polls(two), await polls(one)]).toEqual([true, false]);
    await two.work.leave();
    expect(await polls(one)).toBe(true);
  });

  test("with a lease of one second a process still polls alone: it renews its claim once a second at best", async () => {
    const { process, sql } = await aFleetOf(cluster());
    expect(await process("one", 1_000).inbox.polls()).not.toBeNull();
    await sql("UPDATE fleet_poller SET until = until - interval '3 s'");
    expect(await process("two", 1_000).inbox.polls()).toBeNull();
  });

  test("a list that is the stored one is not stored again, whichever process stored it", async () => {
    const { process, sql } = await aFleetOf(cluster());
    const [one, two] = [process("one").inbox, process("two").inbox];
    const isPolledBy = (name: string) => sql("UPDATE fleet_poller SET process = $1", [name]);
    expect(await one.list(-1)).toBeNull();
    await isPolledBy("one");
    await one.store("first", '["A"]');
    expect(await two.list(-1)).toEqual({ number: 1, answer: "first", bodyNumber: 1, body: '["A"]' });
    await one.store("again", '["A"]');
    expect(await two.list(1)).toEqual({ number: 2, answer: "again", bodyNumber: 1, body: null });
    await isPolledBy("two");
    await two.store("other", '["A","B"]');
    await two.store("failed", null);
    expect(await one.list(1)).toEqual({ number: 4, answer: "failed", bodyNumber: 3, body: '["A","B"]' });
    // A process that polls no more stores nothing.
    await one.store("late", "[]");
    expect(await one.list(1)).toMatchObject({ answer: "failed" });
    // Its own last list is not the stored one.
    await isPolledBy("one");
    await one.store("back", '["A"]');
    expect(await two.list(3)).toEqual({ number: 5, answer: "back", bodyNumber: 5, body: '["A"]' });
  });

  test("before the first list there is an answer without entries", async () => {
    const { process, sql } = await aFleetOf(cluster());
    const { inbox } = process("one");
    await sql("UPDATE fleet_poller SET process = 'one'");
    await inbox.store("failed", null);
    expect(await inbox.list(-1)).toEqual({ number: 1, answer: "failed", bodyNumber: 0, body: null });
  });

  test.each([
    ["its text", "body = '[]'"],
    ["its text, to nothing", "body = ''"],
    ["its seal", "mac = 'x'"],
  ])("a list that another program edited (%s) is not read, and stored anew", async (_, edit) => {
    const { process, sql } = await aFleetOf(cluster());
    const { inbox } = process("one");
    await sql("UPDATE fleet_poller SET process = 'one'");
    await inbox.store("first", '["A"]');
    await sql(`UPDATE fleet_poller SET ${edit}`);
    expect(await inbox.list(-1)).toBeNull();
    await inbox.store("second", '["A"]');
    expect(await inbox.list(-1)).toEqual({ number: 2, answer: "second", bodyNumber: 2, body: '["A"]' });
  });

  test("a list that was stored under the key before can be read, one under a foreign key cannot", async () => {
    const [old, newest] = [randomBytes(32), randomBytes(32)];
    const { process, sql } = await aFleetOf(cluster(), [newest, old]);
    const { inbox } = process("one");
    await sql("UPDATE fleet_poller SET process = 'one'");
    const stored = await aFleetOf(cluster(), [old]);
    await stored.sql("UPDATE fleet_poller SET process = 'one'");
    await stored.process("one").inbox.store("first", "[]");
    const [{ mac = null } = {}] = await stored.sql("SELECT mac FROM fleet_poller");
    await inbox.store("first", "[]");
    await sql("UPDATE fleet_poller SET mac = $1", [mac]);
    expect(await inbox.list(-1)).toMatchObject({ body: "[]" });
    const foreign = await aFleetOf(cluster());
    await foreign.sql(
      "UPDATE fleet_poller SET process = 'one', number = 1, body_number = 1, body = '[]', mac = $1",
      [mac],
    );
    expect(await foreign.process("one").inbox.list(-1)).toBeNull();
  });

  test("a delivery waits for the process that leads its site, oldest first, until it is dropped", async () => {
    const { process, sites, sql } = await aFleetOf(cluster());
    const [one, two] = [process("one"), process("two")];
    await sites.put([
      { site: "a", file: "{}", vehicles: ["bus-1"] },
      { site: "b", file: "{}", vehicles: [] },
    ]);
    await one.inbox.put(
      [1, 2, 3].map((number) => ({ site: "a", siteKey, delivery: delivery(number) })),
      [{ event: "EV-1", site: "a" }],
      [],
    );
    expect(await one.inbox.waiting([], 10)).toEqual([]);
    expect((await two.work.take(1)).map(({ site }) => site)).toEqual(["a"]);
    await one.work.take(1);
    expect(await one.inbox.waiting([], 10)).toEqual([]);
    const waiting = await two.inbox.waiting([], 10);
    const [first = 0, second = 0, third = 0] = waiting.map(({ id }) => id);
    const read = await two.inbox.bodies([third, first, second]);
    expect(read.map(({ site, body }) => [site, JSON.parse(body)])).toEqual(
      [1, 2, 3].map((number) => ["a", delivery(number)]),
    );
    expect(waiting).toEqual(read.map(({ id, site, body }) => ({ id, site, bytes: Buffer.byteLength(body) })));
    expect((await two.inbox.waiting([first], 1)).map(({ id }) => id)).toEqual([second]);
    expect((await two.inbox.waiting([], 10, { after: second })).map(({ id }) => id)).toEqual([third]);
    expect(await two.inbox.waiting([], 10, { but: ["a"] })).toEqual([]);
    await two.inbox.drop(second);
    expect((await two.inbox.waiting([], 10)).map(({ id }) => id)).toEqual([first, third]);
    await sql("UPDATE site SET lease_until = clock_timestamp() - interval '1 ms'");
    expect(await two.inbox.waiting([], 10)).toEqual([]);
  });

  test("a delivery finds the sites of its vehicles and of events that were delivered before", async () => {
    const { process, sites } = await aFleetOf(cluster());
    const { inbox } = process("one");
    await sites.put([
      { site: "a", file: "{}", vehicles: ["bus-1", "bus-2"] },
      { site: "b", file: "{}", vehicles: ["bus-3"] },
    ]);
    const had = [
      { event: "EV-1", site: "a" },
      { event: "EV-1", site: "b" },
      { event: "EV-2", site: "b" },
    ];
    await inbox.put([], had, []);
    await inbox.put([], had, []);
    expect(await inbox.sitesOf(["bus-2", "bus-3", "bus-9"], ["EV-1", "EV-9"])).toEqual({
      ofVehicle: new Map([
        ["bus-2", "a"],
        ["bus-3", "b"],
      ]),
      ofEvent: new Map([["EV-1", ["a", "b"]]]),
    });
    expect([...(await inbox.all())].toSorted()).toEqual(["a", "b"]);
    await sites.remove("b");
    expect(await inbox.all()).toEqual(["a"]);
    expect(await inbox.sitesOf(["bus-3"], ["EV-1", "EV-2"])).toEqual({
      ofVehicle: new Map(),
      ofEvent: new Map([["EV-1", ["a"]]]),
    });
  });

  test("deliveries of a site go with it: put again, it does not get them", async () => {
    const { process, sites } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    const site = { site: "a", file: "{}", vehicles: [] };
    await sites.put([site, { ...site, site: "b" }]);
    await work.take(2);
    const both = ["a", "b"].map((each) => ({ site: each, siteKey, delivery: delivery(1) }));
    await inbox.put(both, [], []);
    await sites.remove("a");
    await sites.put([site]);
    expect((await inbox.waiting([], 10)).map((each) => each.site)).toEqual(["b"]);
    expect(await sites.remove("unknown")).toBe(false);
  });

  test("a schema from before the index of stored events gets it, and keeps its rows", async () => {
    const { process, sites, database, schema, sql } = await aFleetOf(cluster());
    await sites.put([{ site: "a", file: "{}", vehicles: [] }]);
    await sql(
      "INSERT INTO body (site, kind, id, open, body, mac) VALUES ('a', 'event', 'EV-1', true, '', ''), ('a', 'hold', 'EV-2', true, '', '')",
    );
    await sql("DROP INDEX body_event_id");
    await sql("ALTER TABLE site DROP COLUMN restored");
    await sql("UPDATE version SET number = 6");
    expect(await migrate(database, schema)).toBeNull();
    expect(await sql("SELECT number, to_regclass('body_event_id')::text AS index FROM version")).toEqual([
      { number: KNOWN_VERSION, index: "body_event_id" },
    ]);
    const { ofEvent } = await process("one").inbox.sitesOf([], ["EV-1", "EV-2"]);
    expect(ofEvent).toEqual(new Map([["EV-1", ["a"]]]));
  });

  test("a delete that arrives before any site has its event is known when the event comes: that of the highest revision, in any order", async () => {
    const { process, sql } = await aFleetOf(cluster());
    const { inbox } = process("one");
    const unknown = (id: string) => ({ ...deletion(id, 0), revision: null });
    await inbox.put([], [], [deletion("EV-1", 1), unknown("EV-2"), deletion("EV-3", 1), deletion("EV-3", 2)]);
    await inbox.put([], [], [deletion("EV-1", 2), deletion("EV-2", 1), deletion("EV-3", 1)]);
    await sql("UPDATE fleet_deleted SET at = at - interval '1 h'");
    const since = await inbox.time();
    await inbox.put([], [], [deletion("EV-1", 1), unknown("EV-2")]);
    const highest = { "EV-1": deletion("EV-1", 2), "EV-2": deletion("EV-2", 1) };
    expect(Object.fromEntries(await inbox.deleted(["EV-1", "EV-2", "EV-3", "EV-4"]))).toEqual({
      ...highest,
      "EV-3": deletion("EV-3", 2),
    });
    // Those that arrived again since then.
    expect(Object.fromEntries(await inbox.deletedSince(since))).toEqual(highest);
  });

  test("a delivery is stored for all of its sites or for none", async () => {
    const { process, sites, sql } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put(["a", "b"].map((site) => ({ site, file: "{}", vehicles: [] })));
    await work.take(1);
    await sql("ALTER TABLE delivery ADD CONSTRAINT no_b CHECK (site <> 'b')");
    const both = ["a", "b"].map((site) => ({ site, siteKey, delivery: delivery(1) }));
    await expect(inbox.put(both, [{ event: "EV-1", site: "a" }], [deletion("EV-2", 1)])).rejects.toThrow(
      "no_b",
    );
    expect(await inbox.waiting([], 10)).toEqual([]);
    expect((await inbox.sitesOf([], ["EV-1"])).ofEvent).toEqual(new Map());
    expect(await inbox.deleted(["EV-2"])).toEqual(new Map());
  });

  test("two deliveries of the same new events in another order do not wait for each other in a circle", async () => {
    const { process, sites, sql, lockedRow } = await aFleetOf(cluster());
    const { inbox } = process("one");
    await sites.put([{ site: "a", file: "{}", vehicles: [] }]);
    const put = (...events: readonly string[]) =>
      inbox.put(
        [],
        events.map((event) => ({ event, site: "a" })),
        [],
      );
    // Each of them waits in the middle, for another delivery.
    const locks = [await lockedRow(storing("EV-M")), await lockedRow(storing("EV-N"))];
    const puts = Promise.all([put("EV-A", "EV-M", "EV-Z"), put("EV-Z", "EV-N", "EV-A")]);
    await waitFor(async () => (await sql("SELECT 1 FROM pg_locks WHERE NOT granted")).length === 2);
    await Promise.all(locks.map((lock) => lock.release()));
    await puts;
    expect((await inbox.sitesOf([], ["EV-A", "EV-M", "EV-N", "EV-Z"])).ofEvent.size).toBe(4);
  });

  test("a delivery that is stored while its site is removed does not come back with the site", async () => {
    const { process, sites, sql, lockedRow } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    const site = { site: "a", file: "{}", vehicles: [] };
    await sites.put([site]);
    const put = () =>
      inbox.put([{ site: "a", siteKey, delivery: delivery(1) }], [{ event: "EV-1", site: "a" }], []);
    const lock = await lockedRow(storing("EV-1"));
    const late = put();
    await lock.isAwaited();
    expect(await sites.remove("a")).toBe(true);
    await lock.release();
    await late;
    // Composed before the removal as well.
    await put();
    expect((await sql("SELECT 1 FROM delivery")).length).toBe(1);
    await sites.put([site]);
    await work.take(1);
    expect(await inbox.waiting([], 10)).toEqual([]);
    await put();
    expect(await inbox.waiting([], 10)).toHaveLength(1);
  });
});
