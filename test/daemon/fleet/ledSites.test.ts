import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import type { App } from "../../../src/daemon/daemon.ts";
import { LedSites, type LedSitesParts } from "../../../src/daemon/fleet/ledSites.ts";
import { FleetLoops } from "../../../src/daemon/fleet/loops.ts";
import { FleetPoller, ListFeed } from "../../../src/daemon/fleet/partnerList.ts";
import { reloadSites } from "../../../src/daemon/fleet/siteEdges.ts";
import { instant, type Millis, millis, minutes } from "../../../src/domain/units.ts";
import { macOf } from "../../../src/store/bodies.ts";
import { aFleetOf, type FleetOfTest } from "../../store/postgres/fleetRows.ts";
import { aCluster } from "../../store/postgres/state.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";

type Own = Parameters<LedSitesParts["start"]>[0];

const LEASE_MS = 3_000;
const put = (site: string, file = "{}") => ({ site, file, vehicles: [] });
const numbered = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `site-${String(index + 1).padStart(3, "0")}`);

/** A site that runs, without chargers. */
const running = (stop: () => Promise<void>): App => ({
  webhookPort: null,
  operatorPort: 0,
  brokerPort: null,
  reload: () => {},
  health: () => ({ fit: true, status: "" }),
  isBusy: () => false,
  isReady: () => true,
  note: () => {},
  state: () => ({ chargers: 0, live: 0, alarms: 0, worst: null }),
  lost: Promise.withResolvers<string>().promise,
  stopStep: () => "close the store",
  [Symbol.asyncDispose]: stop,
});

const nothing = async (): Promise<void> => {};

/** Starts as a site without work does. */
const startAtOnce = async ({ lease }: Own): Promise<App> => running(() => lease.release());

/** Parts of a process that a test may say: how its sites start and stop, and its partner. */
type Said = Partial<Pick<LedSitesParts, "start" | "startWithin" | "stopWithin">> & {
  readonly poller?: Pick<FleetPoller, "poll" | "read" | "end">;
  /** Length of a lease. The renewals are a third of it apart. */
  readonly lease?: Millis;
};

/** The sites of a process that neither renews its leases nor takes sites by itself. */
function someSites(
  fleet: FleetOfTest,
  name: string,
  {
    start = startAtOnce,
    startWithin = 60_000,
    stopWithin = 500,
    lease = millis(LEASE_MS),
  }: Omit<Said, "poller"> = {},
) {
  const lines: { readonly msg: string; readonly site?: string; readonly reason?: string; err?: Error }[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { work } = fleet.process(name, lease);
  const led = new Map<string, Own>();
  const sites = new LedSites({
    machine: { now: () => instant(Date.now()), monotonic: () => millis(performance.now()), log },
    database: fleet.database,
    sites: fleet.sites,
    work,
    led,
    start,
    startWithin,
    stopWithin,
  });
  return {
    sites,
    work,
    log,
    lines,
    /** Sites that run, by name. */
    led: (): readonly string[] =>
      [...led.values()].flatMap(({ site, app }) => (app === null ? [] : [site])).toSorted(),
  };
}

/** A process of the fleet whose sites start and stop as the test says. */
function aProcess(
  fleet: FleetOfTest,
  name: string,
  { poller = { poll: nothing, read: nothing, end: () => {} }, lease = millis(LEASE_MS), ...said }: Said = {},
) {
  const { sites, work, log, lines, led } = someSites(fleet, name, { ...said, lease });
  let turns = 0;
  const take = sites.take.bind(sites);
  sites.take = async (most) => {
    await take(most);
    turns += 1;
  };
  const loops = new FleetLoops({
    fleet: { database: { lease }, sitesAtMost: 10_000 },
    name,
    page: null,
    sites,
    work,
    pruning: work,
    poller,
    reader: { read: nothing },
    reports: { report: nothing },
    log,
  });
  loops.begin();
  onTestFinished(() => loops.end());
  return {
    lines,
    led,
    end: () => loops.end(),
    /** Turns of the balance that are over. */
    turns: () => turns,
  };
}

/** Stores a value with a right check that the program cannot read. */
async function storeUnreadable(fleet: FleetOfTest, site: string): Promise<void> {
  const stored = (await fleet.sites.read([site])).get(site);
  if (typeof stored !== "object") throw new Error(`no site ${site}`);
  await fleet.sql(
    "INSERT INTO body (site, kind, id, open, body, mac) VALUES ($1, 'hold', 'H-1', true, 'null', $2)",
    [site, macOf(stored.siteKey, "hold", "H-1", "null")],
  );
}

const leaderOf = async ({ list }: FleetOfTest, site: string): Promise<string | null> =>
  (await list.list()).find((row) => row.site === site)?.leader ?? null;

describe.skipIf(postgresMissing() !== null)("the sites of a process", () => {
  const cluster = aCluster();

  test("a site whose stop hangs delays no other site", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(["a", "b", "c"].map((site) => put(site)));
    const starts: string[] = [];
    const hanging = Promise.withResolvers<void>();
    const one = aProcess(fleet, "one", {
      start: async (own) => {
        starts.push(own.site);
        return own.site === "a" ? running(() => hanging.promise) : startAtOnce(own);
      },
      stopWithin: 60_000,
    });
    await waitFor(() => one.led().length === 3);
    // Every file changes, so every site starts again. Then a new site arrives.
    await fleet.sites.put(["a", "b", "c"].map((site) => put(site, '{"site":1}')));
    await waitFor(() => ["b", "c"].every((site) => starts.filter((each) => each === site).length === 2));
    await fleet.sites.put([put("d")]);
    await waitFor(() => one.led().includes("d"));
    expect(one.led()).toEqual(["b", "c", "d"]);
    hanging.resolve();
  });

  test("a stop that takes too long is logged, and its lease ends, so that the site is led again", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a")]);
    let hangs = true;
    const one = aProcess(fleet, "one", {
      start: async (own) => (hangs ? running(() => new Promise(() => {})) : startAtOnce(own)),
    });
    await waitFor(() => one.led().length === 1);
    const [before] = await fleet.list.list();
    hangs = false;
    await fleet.sites.put([put("a", '{"site":1}')]);
    const line = await waitFor(() => one.lines.find(({ msg }) => msg.includes("does not stop")));
    expect(line).toMatchObject({ site: "a", step: "close the store" });
    await waitFor(() => one.led().length === 1, { timeoutMs: 5 * LEASE_MS });
    const [after] = await fleet.list.list();
    expect(after?.epoch).toBeGreaterThan(before?.epoch ?? 0);
    // The lease that nobody renewed ended first: what hangs could still command the chargers.
    expect(Date.parse(after?.since ?? "") - Date.parse(before?.since ?? "")).toBeGreaterThan(LEASE_MS);
  });

  test("a site whose start hangs delays no other site", async () => {
    const fleet = await aFleetOf(cluster());
    const hanging = numbered(4);
    await fleet.sites.put(hanging.map((site) => put(site)));
    const one = aProcess(fleet, "one", {
      start: (own) => (hanging.includes(own.site) ? new Promise(() => {}) : startAtOnce(own)),
    });
    await waitFor(async () => (await leaderOf(fleet, "site-004")) === "one");
    await fleet.sites.put([put("z")]);
    await waitFor(() => one.led().includes("z"));
    expect(one.led()).toEqual(["z"]);
  });

  test("a start that takes too long is logged, its site is led again, and that start is stopped once it ends", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a")]);
    const late = Promise.withResolvers<App>();
    const stopped = Promise.withResolvers<string>();
    const hung: Own[] = [];
    const one = aProcess(fleet, "one", {
      start: (own) => {
        if (hung.length > 0) return startAtOnce(own);
        hung.push(own);
        return late.promise;
      },
      startWithin: 500,
    });
    const line = await waitFor(() => one.lines.find(({ msg }) => msg === "a site cannot be led"));
    expect(line).toMatchObject({ site: "a", reason: "its start did not end within 0.5 s" });
    await waitFor(() => one.led().includes("a"));
    const [own] = hung;
    late.resolve(running(async () => stopped.resolve(own?.lease.state ?? "")));
    // It could command no charger: the lease had been given back.
    expect(await stopped.promise).toBe("lost");
    expect(one.led()).toEqual(["a"]);
  });

  test("a site that is removed is stopped, and commands nothing from the moment when this is known", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a"), put("b")]);
    const stopped: [string, number][] = [];
    const one = aProcess(fleet, "one", {
      start: async ({ lease }) => running(async () => void stopped.push([lease.state, lease.terms.lost])),
    });
    await waitFor(() => one.led().length === 2);
    await fleet.sites.remove("a");
    await waitFor(() => stopped.length === 1);
    // An alert follows the count of lost leases.
    expect([stopped, one.led()]).toEqual([[["lost", 0]], ["b"]]);
  });

  test("a put that mends the file of a site ends the back-off of a bug in its start", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a")]);
    const files: (string | null)[] = [];
    const one = aProcess(fleet, "one", {
      start: async (own, { file }) => {
        files.push(file);
        if (file === "{}") throw new TypeError("out of the blue");
        return startAtOnce(own);
      },
    });
    await waitFor(() => one.lines.some(({ msg }) => msg.includes("a bug ended control")));
    await fleet.sites.put([put("a", '{"site":1}')]);
    // The back-off takes ten seconds.
    await waitFor(() => one.led().includes("a"), { timeoutMs: 8_000 });
    expect(files).toEqual(["{}", '{"site":1}']);
  });

  test("a bug at the end of a start that took too long is logged", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a")]);
    const late = Promise.withResolvers<App>();
    const one = someSites(fleet, "one", { start: () => late.promise, startWithin: 50 });
    onTestFinished(() => one.sites.end());
    await one.sites.take(1);
    await waitFor(() => one.lines.some(({ msg }) => msg === "a site cannot be led"));
    late.reject(new TypeError("out of the blue"));
    const line = await waitFor(() => one.lines.find(({ msg }) => msg.startsWith("a bug")));
    expect(line).toMatchObject({ site: "a", err: { message: "out of the blue" } });
  });

  test("a put that mends the file of a site with a bug counts also while that site still stops", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a")]);
    const stopping = Promise.withResolvers<void>();
    const one = aProcess(fleet, "one", {
      start: async (own, { file }) => {
        if (file !== "{}") return startAtOnce(own);
        own.failed.resolve(new TypeError("out of the blue"));
        return running(() => stopping.promise);
      },
      stopWithin: 60_000,
    });
    await waitFor(() => one.lines.some(({ msg }) => msg.includes("a bug ended control")));
    await fleet.sites.put([put("a", '{"site":1}')]);
    const turns = one.turns();
    await waitFor(() => one.turns() > turns + 1);
    stopping.resolve();
    // The back-off takes ten seconds.
    await waitFor(() => one.led().includes("a"), { timeoutMs: 8_000 });
  });

  test("a site that is being loaded when certificates are renewed reads them once it runs, and every other site at once", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a"), put("b")]);
    const loaded = Promise.withResolvers<void>();
    const begun: Own[] = [];
    const reloads: string[] = [];
    const one = aProcess(fleet, "one", {
      start: async (own) => {
        begun.push(own);
        if (own.site === "b") await loaded.promise;
        return { ...(await startAtOnce(own)), reload: () => void reloads.push(own.site) };
      },
    });
    await waitFor(() => begun.length === 2 && one.led().length === 1);
    await reloadSites(begun);
    expect(reloads).toEqual(["a"]);
    loaded.resolve();
    await waitFor(() => one.led().length === 2);
    expect(reloads).toEqual(["a", "b"]);
    await reloadSites(begun);
    expect(reloads.toSorted()).toEqual(["a", "a", "b", "b"]);
  });

  test("a process whose sites start slowly leaves the other sites to the others, and is given no more", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(numbered(400).map((site) => put(site)));
    const slow = aProcess(fleet, "slow", { start: () => new Promise(() => {}) });
    await waitFor(async () => (await fleet.list.list({ text: "slow" })).length > 0);
    const fast = aProcess(fleet, "fast");
    await waitFor(async () => (await fleet.list.list({ state: "unled" })).length === 0);
    const kept = (await fleet.list.list({ text: "slow" })).length;
    expect(kept).toBeLessThan(100);
    await waitFor(() => fast.led().length === 400 - kept);
    // They stay where they are: a site that is moved has no leader until it is loaded.
    expect(slow.led()).toEqual([]);
    expect(fast.lines.filter(({ msg }) => msg.includes("given to another"))).toEqual([]);
  });

  test("a process that joins is given half of the sites", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(numbered(200).map((site) => put(site)));
    const one = aProcess(fleet, "one");
    await waitFor(() => one.led().length === 200);
    const two = aProcess(fleet, "two");
    await waitFor(() => two.led().length === 100 && one.led().length === 100, { timeoutMs: 60_000 });
  });

  test("a process that stops its sites for longer than a lease keeps each of them until it is stopped", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(numbered(48).map((site) => put(site)));
    const atStop: string[] = [];
    const one = aProcess(fleet, "one", {
      start: async ({ lease }) =>
        running(async () => {
          // Sixteen stop at a time.
          await sleep(LEASE_MS / 2);
          atStop.push(lease.state);
          await lease.release();
        }),
      stopWithin: 60_000,
    });
    await waitFor(() => one.led().length === 48);
    const two = aProcess(fleet, "two");
    await one.end();
    expect(atStop).toEqual(numbered(48).map(() => "leading"));
    await waitFor(() => two.led().length === 48);
  });

  test("sites whose leases ended while the database was away go on, and none of them is started a second time", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(["a", "b"].map((site) => put(site)));
    const starts: string[] = [];
    const one = someSites(fleet, "one", {
      start: async (own) => {
        starts.push(own.site);
        return startAtOnce(own);
      },
    });
    await one.sites.take(10);
    await waitFor(() => one.led().length === 2);
    const epochs = async () => (await fleet.list.list()).map(({ epoch }) => epoch);
    const before = await epochs();
    // The database is back, and the turn of the balance comes before that of the renewal.
    await fleet.sql("UPDATE site SET lease_until = clock_timestamp() - interval '1 ms'");
    await fleet.sites.put([put("c")]);
    await one.sites.take(10);
    await waitFor(() => one.led().includes("c"));
    expect(starts.toSorted()).toEqual(["a", "b", "c"]);
    await one.work.renew(one.sites.leases);
    expect(one.sites.leases.map(({ state }) => state)).toEqual(["leading", "leading", "leading"]);
    expect((await epochs()).slice(0, 2)).toEqual(before);
    await one.sites.end();
    expect(one.led()).toEqual([]);
  });

  test("a bug in the start of a site harms no other site, and is logged as one", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(["a", "b"].map((site) => put(site)));
    const one = aProcess(fleet, "one", {
      start: async (own) => {
        if (own.site === "a") throw new TypeError("out of the blue");
        return startAtOnce(own);
      },
    });
    const line = await waitFor(() => one.lines.find(({ msg }) => msg.includes("a bug ended control")));
    expect(line).toMatchObject({ site: "a", err: { type: "TypeError", message: "out of the blue" } });
    await waitFor(() => one.led().includes("b"));
    await one.end();
    expect([one.led(), await leaderOf(fleet, "a")]).toEqual([[], null]);
  });

  test("a stored value that the program cannot read keeps its site without a leader, and no other", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(["a", "b", "c"].map((site) => put(site)));
    await storeUnreadable(fleet, "b");
    const one = aProcess(fleet, "one");
    await waitFor(() => one.led().length === 2);
    expect(one.led()).toEqual(["a", "c"]);
    const line = await waitFor(() => one.lines.find(({ msg }) => msg === "a site cannot be led"));
    expect(line).toMatchObject({ site: "b", err: { type: "TypeError" } });
    expect(line.reason).not.toContain("database:");
  });

  test("a bug in what the sites share is logged with its stack and not as an error of the database, and the work goes on", async () => {
    const fleet = await aFleetOf(cluster());
    let reads = 0;
    const read = async () => {
      reads += 1;
      if (reads === 1) throw new TypeError("out of the blue");
    };
    const one = aProcess(fleet, "one", { poller: { poll: nothing, read, end: () => {} } });
    await waitFor(() => reads > 1);
    const line = one.lines.find(({ msg }) => msg === "the list of the partner cannot be shared");
    expect(line).toMatchObject({ err: { type: "TypeError", stack: expect.any(String) } });
    expect(line).not.toHaveProperty("reason");
  });

  test("a process that ends waits for no list of a partner that hangs", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a")]);
    const { inbox } = fleet.process("one", LEASE_MS);
    const asked = Promise.withResolvers<void>();
    const hangs = new Promise<never>(() => {});
    const one = aProcess(fleet, "one", {
      poller: new FleetPoller({
        inbox,
        feed: new ListFeed(() => 0),
        partner: { list: () => (asked.resolve(), hangs), event: () => hangs },
        pollEvery: minutes(1),
        now: () => instant(Date.now()),
        monotonic: () => performance.now(),
        random: () => 0.5,
        log: pino({ level: "silent" }),
      }),
    });
    await asked.promise;
    await waitFor(() => one.led().length === 1);
    await one.end();
    expect(await leaderOf(fleet, "a")).toBeNull();
    // The next process polls at once.
    expect(await fleet.process("two").inbox.polls()).not.toBeNull();
  });

  test("a site whose start hangs delays none of those that are read one by one because of a bug", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(["a", "b", "c"].map((site) => put(site)));
    await storeUnreadable(fleet, "b");
    const one = aProcess(fleet, "one", {
      start: (own) => (own.site === "a" ? new Promise(() => {}) : startAtOnce(own)),
    });
    await waitFor(() => one.led().includes("c"));
    expect(one.led()).toEqual(["c"]);
  });

  test("a bug in the start of a site whose file changes meanwhile is logged, and the site is led again without a back-off", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put([put("a")]);
    const one = someSites(fleet, "one", {
      start: async ({ site }) => {
        one.sites.startAgain([site]);
        throw new TypeError("out of the blue");
      },
    });
    await one.sites.take(1);
    const line = await waitFor(() => one.lines.find(({ msg }) => msg.includes("a bug ended control")));
    expect(line).toMatchObject({ site: "a", err: { message: "out of the blue" } });
    // The back-off takes ten seconds.
    await waitFor(async () => (await leaderOf(fleet, "a")) === null, { timeoutMs: 8_000 });
    await one.sites.end();
  });

  test("processes whose renewals are late after an outage do not take the sites of each other", async () => {
    const fleet = await aFleetOf(cluster());
    await fleet.sites.put(numbered(4).map((site) => put(site)));
    const starts: string[] = [];
    const start = (own: Own) => {
      starts.push(own.site);
      return startAtOnce(own);
    };
    const processes = ["one", "two"].map((name) => aProcess(fleet, name, { start, lease: minutes(1) }));
    await waitFor(() => processes.every(({ led }) => led().length === 2));
    const turns = processes.map((each) => each.turns());
    const before = starts.length;
    await fleet.sql("UPDATE site SET lease_until = clock_timestamp() - interval '1 ms'");
    await waitFor(() => processes.every((each, index) => each.turns() > (turns[index] ?? 0) + 2));
    expect(starts.slice(before)).toEqual([]);
  });
});
