import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";

import { SITE_CHANGED } from "../../../src/domain/leadership.ts";
import { GENESIS } from "../../../src/store/chain.ts";
import { Commits } from "../../../src/store/postgres/commits.ts";
import { editedFile, type FleetSites, type StoredSite } from "../../../src/store/postgres/fleetSites.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { NOON, row } from "../sqlite/words.ts";
import { aFleetOf } from "./fleetRows.ts";
import { aCluster } from "./state.ts";

const put = (site: string, vehicles: readonly string[] = [], file = `{"site":"${site}"}`) => ({
  site,
  file,
  vehicles,
});

/** A site that can be used. */
async function readOne(sites: FleetSites, site: string): Promise<StoredSite> {
  const stored = (await sites.read([site])).get(site);
  if (typeof stored !== "object") throw new Error(stored ?? "no such site");
  return stored;
}

describe.skipIf(postgresMissing() !== null)("sites of a fleet", () => {
  const cluster = aCluster();

  test("sites are stored, listed with their vehicles and removed, and a removed one comes back with its keys", async () => {
    const { list, sites } = await aFleetOf(cluster());
    expect(await sites.put([put("a", ["bus-1", "bus-2"]), put("b")])).toBeNull();
    expect((await list.counts()).sites).toBe(2);
    expect(await list.list()).toMatchObject([
      { site: "a", leader: null, since: null, epoch: 0, vehicles: 2, rows: 0 },
      { site: "b", vehicles: 0 },
    ]);
    const before = await readOne(sites, "a");
    expect(before.file).toBe('{"site":"a"}');
    expect(await sites.remove("a")).toBe(true);
    expect(await sites.remove("a")).toBe(false);
    expect(await sites.remove("c")).toBe(false);
    expect([(await list.counts()).sites, await sites.read(["a"]), await sites.stateOf("a", NOON)]).toEqual([
      1,
      new Map(),
      null,
    ]);
    // Its vehicles are free.
    expect(await sites.put([put("b", ["bus-1"])])).toBeNull();
    expect(await sites.put([put("a")])).toBeNull();
    expect((await readOne(sites, "a")).siteKey).toEqual(before.siteKey);
    expect((await readOne(sites, "b")).siteKey).not.toEqual(before.siteKey);
  });

  test("a vehicle belongs to one site: of a put that takes one from another site nothing is stored", async () => {
    const { list, sites } = await aFleetOf(cluster());
    await sites.put([put("a", ["bus-1", "bus-2"])]);
    expect(await sites.put([put("b", ["bus-3"]), put("c", ["bus-2", "bus-4"])])).toEqual([
      { vehicle: "bus-2", site: "c", other: "a" },
    ]);
    expect(await list.list()).toMatchObject([{ site: "a", vehicles: 2 }]);
    // It moves within one put.
    expect(await sites.put([put("a", ["bus-1"]), put("b", ["bus-2"])])).toBeNull();
  });

  test("two puts at once do not give one vehicle to two sites", async () => {
    const { list, sites } = await aFleetOf(cluster());
    const answers = await Promise.all(["a", "b", "c"].map((site) => sites.put([put(site, ["bus-1"])])));
    expect(answers.filter((answer) => answer === null)).toHaveLength(1);
    expect(await list.list()).toHaveLength(1);
  });

  test("sites that two people remove at once get their revisions in the order of the commits, so that a process notices both", async () => {
    const { sites, lockedRow, process, sql } = await aFleetOf(cluster());
    const { work } = process("one");
    await sites.put([put("a"), put("b")]);
    let seen = (await work.snapshot()).revision;
    const noticed: string[] = [];
    const follow = async (): Promise<void> => {
      const { revision } = await work.snapshot();
      noticed.push(...(await work.changedSince(seen)).map(({ site }) => site));
      seen = revision;
    };
    // The first one has its revision, and waits before its commit.
    const lock = await lockedRow("SELECT id FROM fleet_site WHERE id = 'a' FOR UPDATE");
    const first = sites.remove("a");
    await lock.isAwaited();
    const second = sites.remove("b");
    const isBlocked = async (): Promise<boolean> =>
      (await sql("SELECT 1 FROM pg_locks WHERE NOT granted")).length > 1;
    await Promise.race([second, waitFor(isBlocked)]);
    await follow();
    await lock.release();
    expect(await Promise.all([first, second])).toEqual([true, true]);
    await follow();
    expect(noticed.toSorted()).toEqual(["a", "b"]);
  });

  test("the leader of a site that is removed stores nothing any more, and a site whose leader stored something since its state was read stays", async () => {
    const { sites, process, database } = await aFleetOf(cluster());
    const { work } = process("one");
    await sites.put([put("a"), put("b")]);
    const [lease, other] = await work.take(2);
    if (lease === undefined || other === undefined) throw new Error("no lease");
    const { siteKey } = await readOne(sites, "a");
    const leader = new Commits({ database, site: "a", siteKey }, lease, { head: GENESIS, number: 0 });
    const before = await sites.commitsOf("a");
    expect(await leader.commit([row("1")])).toMatchObject({ rows: [{ seq: 1 }] });
    expect(await sites.remove("a", before)).toBe(false);
    expect(await leader.commit([row("2")])).toMatchObject({ rows: [{ seq: 2 }] });
    expect(await sites.remove("a", await sites.commitsOf("a"))).toBe(true);
    expect(await leader.commit([row("3")])).toEqual({ ok: false, reason: SITE_CHANGED });
    expect(lease.terms).toEqual({ lost: 0 });
    await work.renew([lease, other]);
    expect([lease.state, other.state, await sites.commitsOf("a")]).toEqual(["lost", "leading", null]);
  });

  test("a commit that deletes deliveries of a site and its removal do not wait for each other", async () => {
    const { sites, process, sql, lockedRow } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a")]);
    await work.take(1);
    const { siteKey } = await readOne(sites, "a");
    const delivery = { source: "webhook", at: NOON, askedAt: NOON, complete: false, notices: [] } as const;
    await inbox.put([{ site: "a", siteKey, delivery }], [], []);
    // A commit locks the row of the site, and deletes deliveries next.
    const commit = await lockedRow("SELECT 1 FROM site WHERE id = 'a' FOR NO KEY UPDATE");
    const removing = sites.remove("a");
    await commit.isAwaited();
    await sql("DELETE FROM delivery");
    await commit.release();
    expect(await removing).toBe(true);
  });

  test("deliveries of the stand-in of a gateway are kept when its site, which was removed from the fleet, is put again", async () => {
    const { sites, sql } = await aFleetOf(cluster());
    await sites.put([put("a")]);
    await sites.remove("a");
    const received = "INSERT INTO delivery (site, body, mac) VALUES ('a', '{}', '')";
    const left = async () => (await sql("SELECT 1 FROM delivery")).length;
    await sql(received);
    await sites.put([put("a")]);
    expect(await left()).toBe(0);
    await sites.remove("a");
    await sql("UPDATE site SET leader = 'gateway', lease_until = clock_timestamp() + interval '1 min'");
    await sql(received);
    await sites.put([put("a")]);
    expect(await left()).toBe(1);
  });

  test("a put that takes long holds up no renewal of a lease, and waits for none", async () => {
    const { sites, lockedRow, process } = await aFleetOf(cluster());
    const { work } = process("one");
    await sites.put([put("a"), put("b")]);
    const leases = await work.take(2);
    const isRenewed = await lockedRow("SELECT 1 FROM site WHERE id = 'b' FOR NO KEY UPDATE");
    expect(await sites.put([put("a", [], "1"), put("b", [], "1")])).toBeNull();
    await isRenewed.release();
    // The put has read the rows of both sites, and waits.
    const lock = await lockedRow("SELECT 1 FROM fleet_site WHERE id = 'b' FOR UPDATE");
    const putting = sites.put([put("a", [], "2"), put("b", [], "2")]);
    await lock.isAwaited();
    await work.renew(leases);
    await lock.release();
    expect(await putting).toBeNull();
    expect(leases.map(({ state }) => state)).toEqual(["leading", "leading"]);
  });

  test("a process notices each file that changed and each site that was removed, and no other", async () => {
    const { sites, process } = await aFleetOf(cluster());
    const { work } = process("one");
    await sites.put([put("a"), put("b"), put("c")]);
    const { revision } = await work.snapshot();
    expect(await work.changedSince(revision)).toEqual([]);
    await sites.put([put("a"), put("b", [], "{}")]);
    await sites.remove("c");
    expect(await work.changedSince(revision)).toEqual([
      { site: "b", isRemoved: false },
      { site: "c", isRemoved: true },
    ]);
    expect(await work.changedSince((await work.snapshot()).revision)).toEqual([]);
    expect((await work.snapshot()).sites).toBe(2);
  });

  test.each([
    ["its text", "file = '{}'"],
    ["its seal", "mac = 'x'"],
  ])(
    "a file that another program edited (%s) is not used, other sites are, and a put repairs it",
    async (_, edit) => {
      const { sites, sql } = await aFleetOf(cluster());
      await sites.put([put("a"), put("b")]);
      const { siteKey } = await readOne(sites, "a");
      await sql(`UPDATE fleet_site SET ${edit} WHERE id = 'a'`);
      expect(await readOne(sites, "a")).toMatchObject({ file: null, siteKey });
      expect(await readOne(sites, "b")).toMatchObject({ file: '{"site":"b"}' });
      // The state is authenticated by its own.
      expect(await sites.stateOf("a", NOON)).toMatchObject({ commands: [], events: [] });
      expect(await sites.put([put("a")])).toBeNull();
      expect(await readOne(sites, "a")).toMatchObject({ file: '{"site":"a"}', siteKey });
      expect(editedFile("a")).toContain("put it again");
    },
  );

  test("a site whose keys cannot be read is named, and the others are read", async () => {
    const { sites, sql } = await aFleetOf(cluster());
    await sites.put([put("a"), put("b")]);
    await sql("UPDATE site SET keys = (SELECT keys FROM site WHERE id = 'b') WHERE id = 'a'");
    const read = await sites.read(["a", "b"]);
    expect(read.get("a")).toContain("keys of the site a were changed");
    expect(read.get("b")).toMatchObject({ file: '{"site":"b"}' });
    expect(await sites.stateOf("a", NOON)).toBe(read.get("a"));
    expect(await sites.put([put("a", [], "{}")])).toBe(read.get("a"));
  });

  test("a site of a single gateway joins a fleet once its keys are in the database", async () => {
    const { list, sites, sql } = await aFleetOf(cluster());
    await sites.put([put("a")]);
    await sql("UPDATE site SET keys = NULL");
    expect(await sites.put([put("b"), put("a")])).toContain(
      "the keys of the site a are files of a gateway: start setpointd run with state.postgres.siteKeys there once",
    );
    expect((await list.counts()).sites).toBe(1);
  });

  test("while the keys of many sites are encrypted again, the leases of the others are renewed", async () => {
    const operatorKeys = [randomBytes(32)];
    const { sites, lockedRow, process } = await aFleetOf(cluster(), operatorKeys);
    const { work } = process("one");
    await sites.put([put("a"), put("b"), put("c")]);
    const leases = await work.take(3);
    operatorKeys.unshift(randomBytes(32));
    const lock = await lockedRow("SELECT 1 FROM site WHERE id = 'b' FOR UPDATE");
    const again = sites.encryptAgain();
    await lock.isAwaited();
    await work.renew(leases.filter(({ site }) => site !== "b"));
    await lock.release();
    expect(await again).toBe(3);
  });

  test("after a start with a newer key of the operator the older one is not needed, not even for a removed site", async () => {
    const [old, newest] = [randomBytes(32), randomBytes(32)];
    const operatorKeys = [old];
    const { sites, sql } = await aFleetOf(cluster(), operatorKeys);
    await sites.put([put("a"), put("b"), put("damaged")]);
    await sites.remove("b");
    await sql("UPDATE site SET keys = 'v1 x' WHERE id = 'damaged'");
    const { siteKey } = await readOne(sites, "a");
    expect(await sites.encryptAgain()).toBe(0);
    operatorKeys.unshift(newest);
    expect(await sites.encryptAgain()).toBe(2);
    expect(await sites.encryptAgain()).toBe(0);
    operatorKeys.pop();
    expect(await readOne(sites, "a")).toMatchObject({ siteKey });
    expect(await sites.put([put("b")])).toBeNull();
    expect(await readOne(sites, "b")).toMatchObject({ file: '{"site":"b"}' });
  });

  test("a key of the operator that fits no site is named before a process begins, one that fits some is not", async () => {
    const operatorKeys = [randomBytes(32)];
    const { sites } = await aFleetOf(cluster(), operatorKeys);
    expect(await sites.encryptAgain()).toBe(0);
    await sites.put([put("a")]);
    operatorKeys.splice(0, 1, randomBytes(32));
    expect(await sites.encryptAgain()).toContain("encrypted with another key of the operator");
    await sites.put([put("b")]);
    expect(await sites.encryptAgain()).toBe(0);
  });

  test("the keys of a single site are encrypted again, and that is stored before the start goes on", async () => {
    const operatorKeys = [randomBytes(32)];
    const { sites, lockedRow } = await aFleetOf(cluster(), operatorKeys);
    await sites.put([put("a")]);
    operatorKeys.unshift(randomBytes(32));
    const lock = await lockedRow("SELECT id FROM site FOR UPDATE");
    let isOver = false;
    const encrypting = sites.encryptAgain().then((count) => ((isOver = true), count));
    await lock.isAwaited();
    expect(isOver).toBe(false);
    await lock.release();
    expect(await encrypting).toBe(1);
    operatorKeys.pop();
    expect(await readOne(sites, "a")).toMatchObject({ file: '{"site":"a"}' });
  });
});
