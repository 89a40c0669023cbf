import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { SITE_CHANGED } from "../../../src/domain/leadership.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { FleetWork } from "../../../src/store/postgres/fleetWork.ts";
import { Gate } from "../../support/aGate.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { commandRecord, NOON } from "../sqlite/words.ts";
import { aFleetOf } from "./fleetRows.ts";
import { aCluster } from "./state.ts";

const put = (site: string) => ({ site, file: `{"site":"${site}"}`, vehicles: [] });
const DELETION = { kind: "deleted", id: eventId("EV-1"), revision: instant(NOON) } as const;
const DELIVERY = {
  source: "webhook",
  at: instant(NOON),
  askedAt: instant(NOON),
  notices: [],
  complete: false,
} as const;
const LAPSED = "UPDATE site SET lease_until = clock_timestamp() - interval '1 ms'";

describe.skipIf(postgresMissing() !== null)("processes of a fleet", () => {
  const cluster = aCluster();

  test("a site has one leader at a time, with a higher epoch for each; a removed site has none", async () => {
    const { list, process, sites, sql } = await aFleetOf(cluster());
    const [one, two] = [process("one").work, process("two").work];
    await sites.put(["a", "b", "c", "d"].map(put));
    await sites.remove("d");
    const first = await one.take(2);
    expect(first.map(({ site }) => site).toSorted()).toEqual(["a", "b"]);
    expect((await two.take(5)).map(({ site }) => site)).toEqual(["c"]);
    expect(await two.take(5)).toEqual([]);
    await sql(`${LAPSED} WHERE id = 'a'`);
    const [again] = await two.take(5);
    expect(again?.site).toBe("a");
    expect(again?.epoch).toBeGreaterThan(first.find(({ site }) => site === "a")?.epoch ?? 0);
    expect((await list.list()).map(({ site, leader }) => [site, leader])).toEqual([
      ["a", "two"],
      ["b", "one"],
      ["c", "two"],
    ]);
    await sql(`${LAPSED} WHERE id = 'b'`);
    expect((await list.list())[1]).toMatchObject({ site: "b", leader: null, since: null });
  });

  test("of free sites those whose chargers are under a limit have a leader first", async () => {
    const { process, sites, sql } = await aFleetOf(cluster());
    await sites.put(["a", "b", "c", "d", "e"].map(put));
    const { command, ...rest } = commandRecord("bay-01", 1);
    const released = { ...command, desired: { kind: "release" } };
    const insert = (site: string, record: object) =>
      sql(
        "INSERT INTO body (site, kind, id, open, body, mac) VALUES ($1, 'command', 'bay-01', false, $2, '')",
        [site, JSON.stringify(record)],
      );
    await insert("b", { command: released, ...rest, replaces: command.desired });
    await insert("c", { command, ...rest, replaces: released.desired });
    await insert("e", { command: { ...command, desired: { kind: "pause" } }, ...rest });
    const { work } = process("one");
    const taken = async (most: number) => (await work.take(most)).map(({ site }) => site);
    expect([await taken(1), (await taken(2)).toSorted(), (await taken(2)).toSorted()]).toEqual([
      ["c"],
      ["a", "e"],
      ["b", "d"],
    ]);
    await sql("UPDATE site SET lease_until = clock_timestamp(), leader = NULL");
    expect((await taken(5)).slice(0, 2).toSorted()).toEqual(["c", "e"]);
  });

  test("after the clock of the database was set back, sites of processes that ended have a leader at once", async () => {
    const { list, process, sites, sql } = await aFleetOf(cluster());
    await sites.put(["a", "b", "c"].map(put));
    const [one, two] = [process("one"), process("two").work];
    const leases = await one.work.take(2);
    await leases[0]?.release();
    await one.work.alive({ most: 10, room: 0, page: null });
    await two.alive({ most: 10, room: 0, page: null });
    await one.inbox.polls();
    // The process "one" was killed, and the clock is an hour behind since.
    await sql("UPDATE site SET lease_until = lease_until + interval '1 hour'");
    await sql("UPDATE fleet_process SET seen = seen + interval '1 hour' WHERE process = 'one'");
    await sql("UPDATE fleet_poller SET until = until + interval '1 hour'");
    expect((await two.snapshot()).processes.map(({ process: name }) => name)).toEqual(["two"]);
    expect((await two.take(5)).map(({ site }) => site).toSorted()).toEqual(["a", "b", "c"]);
    expect(await process("two").inbox.polls()).not.toBeNull();
    expect((await list.counts()).unled).toBe(0);
  });

  test("processes that take sites at the same moment get different ones", async () => {
    const { process, sites } = await aFleetOf(cluster());
    await sites.put(["a", "b", "c", "d", "e", "f"].map(put));
    const taken = await Promise.all(["one", "two", "three"].map((name) => process(name).work.take(2)));
    const all = taken.flat().map(({ site }) => site);
    expect(new Set(all).size).toBe(all.length);
  });

  test("the lease of a site that was removed or changed ends, and does not count as lost to another process", async () => {
    const { sites, process } = await aFleetOf(cluster());
    await sites.put([put("a"), put("b")]);
    const { work } = process("one");
    const leases = await work.take(2);
    const reasons: string[] = [];
    for (const lease of leases) lease.onLost = (reason) => void reasons.push(reason);
    await sites.remove("a");
    await sites.put([{ ...put("b"), file: '{"chargers":[]}', commits: 0 }]);
    // The next leader has it before this one knows.
    await process("two").work.take(1);
    await work.renew(leases);
    expect(leases.map(({ state, terms }) => [state, terms])).toEqual([
      ["lost", { lost: 0 }],
      ["lost", { lost: 0 }],
    ]);
    expect(reasons).toEqual([SITE_CHANGED, SITE_CHANGED]);
  });

  test("one statement renews all leases from the moment it was sent; those that another process has are lost", async () => {
    let clock = 0;
    const { process, sites, sql } = await aFleetOf(cluster());
    const { work } = process("one", 30_000, () => clock);
    await sites.put(["a", "b", "c"].map(put));
    const leases = await work.take(3);
    const lost: string[] = [];
    for (const lease of leases) lease.onLost = (reason) => lost.push(`${lease.site}: ${reason}`);
    const states = () =>
      Object.fromEntries(
        leases.map(({ site, state }) => [site, state] as const).toSorted(([a], [b]) => (a < b ? -1 : 1)),
      );
    clock = 20_000;
    await sql("UPDATE fleet_site SET put_at = put_at - interval '20 s'");
    expect(states()).toEqual({ a: "in doubt", b: "in doubt", c: "in doubt" });
    await sql(`${LAPSED} WHERE id = 'b'`);
    await process("two").work.take(1);
    await sql("UPDATE site SET leader = NULL WHERE id = 'c'");
    await sql("UPDATE site SET lease_until = clock_timestamp() + interval '1 s' WHERE id = 'a'");
    await work.renew(leases);
    expect(states()).toEqual({ a: "leading", b: "lost", c: "lost" });
    expect(lost.toSorted()).toEqual([
      "b: another process leads this site now",
      "c: another process leads this site now",
    ]);
    clock = 39_999;
    expect(states()).toMatchObject({ a: "leading" });
    clock = 40_000;
    expect(states()).toMatchObject({ a: "in doubt" });
    // Renewed in the database as well.
    const renewed = "lease_until > clock_timestamp() + interval '20 s' AS renewed";
    expect(await sql(`SELECT ${renewed} FROM site WHERE id = 'a'`)).toEqual([{ renewed: true }]);
  });

  test("a process that gets no answers keeps its sites for no more than one renewal, and renews again with the first answer", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const { sites, sql, schema } = await aFleetOf(cluster());
    await sites.put(["a", "b"].map(put));
    const url = () => cluster().url.replace(/:\d+\//, `:${gate.port}/`);
    const log = pino({ level: "silent" });
    await using database = new Database({ url, schema, patience: 500, log });
    const work = new FleetWork(database, { process: "one", length: 30_000 }, () => performance.now());
    const leases = await work.take(2);
    // Several idle connections: a statement on each still reaches the server.
    await Promise.all([1, 2, 3, 4, 5, 6].map(() => work.snapshot()));
    const end = async () => String((await sql("SELECT max(lease_until)::text AS end FROM site"))[0]?.["end"]);
    const before = await end();
    gate.hold("out");
    await expect(work.renew(leases)).rejects.toThrow("timeout");
    const once = await end();
    expect(once).not.toBe(before);
    for (let turn = 0; turn < 3; turn += 1) await expect(work.renew(leases)).rejects.toThrow("timeout");
    expect(await end()).toBe(once);
    gate.free();
    await work.renew(leases);
    expect(await end()).not.toBe(once);
  });

  test("the fleet is shared among the processes that are alive, with the number of sites that each leads and may lead", async () => {
    const { process, sites, sql } = await aFleetOf(cluster());
    const [one, two] = [process("one", 3_000).work, process("two", 3_000).work];
    await sites.put(["a", "b", "c"].map(put));
    await one.alive({ most: 10, room: 8, page: null });
    await two.alive({ most: 20, room: 8, page: null });
    await two.alive({ most: 30, room: 8, page: null });
    await one.take(2);
    expect(await one.snapshot()).toMatchObject({
      sites: 3,
      number: 0,
      wanted: 0,
      processes: [
        { process: "one", most: 10, led: 2, room: 8 },
        { process: "two", most: 30, led: 0, room: 8 },
      ],
    });
    await process("one").inbox.wantList();
    await sql(`${LAPSED} WHERE id = 'a'`);
    // Two thirds of a lease.
    await sql("UPDATE fleet_process SET seen = clock_timestamp() - interval '2100 ms' WHERE process = 'two'");
    expect(await one.snapshot()).toMatchObject({ wanted: 1, processes: [{ process: "one", led: 1 }] });
    await one.leave();
    expect((await two.snapshot()).processes).toEqual([]);
    await two.alive({ most: 30, room: 8, page: null });
    while ((await two.snapshot()).processes.length > 0) await sleep(50);
  });

  test("a process that ends gives up the polling before its connection closes, so that the next one polls at once", async () => {
    const { process, lockedRow } = await aFleetOf(cluster());
    const [one, two] = [process("one"), process("two")];
    expect(await one.inbox.polls()).not.toBeNull();
    expect(await two.inbox.polls()).toBeNull();
    const lock = await lockedRow("SELECT one FROM fleet_poller FOR UPDATE");
    let isOver = false;
    const leaving = one.work.leave().then(() => (isOver = true));
    await lock.isAwaited();
    expect(isOver).toBe(false);
    await lock.release();
    await leaving;
    expect(await two.inbox.polls()).not.toBeNull();
  });

  test("while events take long to prune, deletes and processes that are over are forgotten", async () => {
    const { process, sites, sql, lockedRow } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([{ site: "a", file: "{}", vehicles: [] }]);
    await inbox.put([], [{ event: "EV-old", site: "a" }], [DELETION]);
    await work.alive({ most: 10, room: 8, page: null });
    await sql("UPDATE fleet_event SET at = at - interval '25 hours'");
    await sql("UPDATE fleet_deleted SET at = at - interval '31 days'");
    await sql("UPDATE fleet_process SET seen = seen - interval '25 hours'");
    const row = await lockedRow("SELECT 1 FROM fleet_event FOR UPDATE");
    const pruned = work.prune();
    await row.isAwaited();
    expect((await inbox.deleted(["EV-1"])).size).toBe(0);
    expect(await sql("SELECT process FROM fleet_process")).toEqual([]);
    await row.release();
    await pruned;
    expect((await inbox.sitesOf([], ["EV-old"])).ofEvent.size).toBe(0);
  });

  test("what is over is forgotten: events that no site has, deletes and processes, each after its time", async () => {
    const { process, sites, sql } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([{ site: "a", file: "{}", vehicles: [] }]);
    await inbox.put(
      [],
      [
        { event: "EV-old", site: "a" },
        { event: "EV-kept", site: "a" },
      ],
      [DELETION],
    );
    await work.alive({ most: 10, room: 8, page: null });
    await sql(
      "INSERT INTO body (site, kind, id, open, body, mac) VALUES ('a', 'event', 'EV-kept', true, '', '')",
    );
    const known = async () => ({
      events: [...(await inbox.sitesOf([], ["EV-old", "EV-kept"])).ofEvent.keys()].toSorted(),
      deletes: (await inbox.deleted(["EV-1"])).size,
      processes: (await sql("SELECT process FROM fleet_process")).length,
    });
    const aged = async (table: string, column: string, age: string) =>
      sql(`UPDATE ${table} SET ${column} = clock_timestamp() - interval '${age}'`);
    await aged("fleet_event", "at", "23 hours");
    await aged("fleet_deleted", "at", "29 days");
    await aged("fleet_process", "seen", "23 hours");
    await work.prune();
    expect(await known()).toEqual({ events: ["EV-kept", "EV-old"], deletes: 1, processes: 1 });
    await aged("fleet_event", "at", "25 hours");
    await aged("fleet_deleted", "at", "31 days");
    await aged("fleet_process", "seen", "25 hours");
    await work.prune();
    expect(await known()).toEqual({ events: ["EV-kept"], deletes: 0, processes: 0 });
  });

  test("a webhook waits for no pruning of other events, and the pruning ends with its process", async () => {
    const { process, sites, sql, lockedRow } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a")]);
    await sql(
      `INSERT INTO fleet_event SELECT 'EV-' || lpad(n::text, 5, '0'), 'a', clock_timestamp() - interval '25 hours'
       FROM generate_series(1, 2500) AS n`,
    );
    const rows = async () => Number((await sql("SELECT count(*) AS rows FROM fleet_event"))[0]?.["rows"]);
    await work.prune(AbortSignal.abort());
    expect(await rows()).toBe(2_500);
    const row = await lockedRow("SELECT 1 FROM fleet_event WHERE event = 'EV-02500' FOR UPDATE");
    const pruned = work.prune();
    await row.isAwaited();
    await inbox.put([], [{ event: "EV-00001", site: "a" }], []);
    await row.release();
    await pruned;
    expect(await rows()).toBe(1);
  });

  test("a site keeps its events while a delivery waits for it: a later delete must find the site", async () => {
    const { process, sites, sql } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a"), put("b")]);
    await inbox.put(
      [{ site: "a", siteKey: randomBytes(32), delivery: DELIVERY }],
      ["a", "b"].map((site) => ({ event: "EV-1", site })),
      [],
    );
    await sql("UPDATE fleet_event SET at = at - interval '25 hours'");
    await work.prune();
    expect((await inbox.sitesOf([], ["EV-1"])).ofEvent).toEqual(new Map([["EV-1", ["a"]]]));
  });

  test("a lease of this process that ended is not taken by it again: its site would run twice", async () => {
    const { process, sites, sql } = await aFleetOf(cluster());
    const { work } = process("one");
    await sites.put(["a", "b"].map(put));
    const [own] = await work.take(1);
    await sql(LAPSED);
    expect((await work.take(5, ["a"])).map(({ site }) => site)).toEqual(["b"]);
    if (own === undefined) throw new Error("no lease");
    await work.renew([own]);
    expect(own.state).toBe("leading");
  });
});
