import { describe, expect, test } from "vitest";

import type { Daemon } from "../support/aDaemon.ts";
import { aFleet, siteFile } from "../support/aFleet.ts";
import { anEvent, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { postgresMissing } from "../support/postgres.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const HOUR = 3_600_000;
/** Longest time without a leader. */
const LED_WITHIN_MS = 15_000;

interface ListedSite {
  readonly site: string;
  readonly leader: string | null;
  readonly self: boolean;
  readonly ready: boolean | null;
}

const number = (index: number): string => String(index).padStart(2, "0");
const SITES = Array.from({ length: 20 }, (_, index) => `site-${number(index + 1)}`);

const sitesOf = (daemon: Daemon): Promise<readonly ListedSite[]> =>
  daemon.view<readonly ListedSite[]>("/api/v1/sites");

/** The number of sites that this process leads and that are ready. */
const ledBy = async (daemon: Daemon): Promise<number> =>
  (await sitesOf(daemon)).filter(({ self, ready }) => self && ready === true).length;

const forVehicles = (id: string, vehicles: readonly string[]) => anEvent(id, { lastsMs: HOUR, vehicles });

/** Steps of `doctor` without those about the machine that it runs on. */
async function diagnosed({ verb }: Awaited<ReturnType<typeof aFleet>>): Promise<readonly string[]> {
  const { stdout } = await verb("doctor", "--json");
  const { steps } = JSON.parse(stdout) as { steps: Record<"area" | "name" | "result" | "found", string>[] };
  return steps
    .filter(({ area }) => !["clock", "disk"].includes(area))
    .map(({ area, name, result, found }) => `${result} ${area} ${name}: ${found}`);
}

/** No command is older than the one before. */
function expectNoStaleCommand({ floor }: Site): void {
  for (const site of SITES) {
    const places = floor.sets(`${site}-a`).map(({ set: { epoch, seq } }) => epoch * 1e6 + seq);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  }
}

describe.skipIf(!mosquittoAvailable || postgresMissing() !== null)("a fleet on one database", () => {
  test("two processes share 20 sites; one is killed in the middle of an event, and the other leads all of them", async () => {
    const fleet = await aFleet();
    const { floor } = fleet.site;
    const stored = await fleet.put(...SITES.map((site) => siteFile(site)));
    expect([stored.code, stored.stderr]).toEqual([0, ""]);
    const first = await fleet.start(fleet.config);
    await waitFor(async () => (await ledBy(first)) === SITES.length);

    // A second process gets half of the idle sites.
    const second = await fleet.start(fleet.configure("second"));
    await waitFor(
      async () => (await ledBy(second)) >= 9 && (await ledBy(first)) + (await ledBy(second)) === 20,
    );

    // One delivery for several sites, to any process. Each site has its own vehicles only.
    const everyA = SITES.map((site) => `v-${site}-a`);
    const event = fleet.site.partner.put(forVehicles("EV-1", everyA));
    expect((await first.deliver(event)).status).toBe(202);
    await Promise.all(SITES.map((site) => floor.nth(`${site}-a`, 1)));
    const unknown = await second.deliver(forVehicles("EV-2", ["v-nowhere"]));
    expect([unknown.status, unknown.json]).toEqual([202, { accepted: 1, repeats: 0, rejected: 0 }]);
    expect(await waitFor(() => second.line("entries that concern no site"))).toMatchObject({
      events: ["EV-2"],
    });

    // A third process takes nothing: every site has an event.
    const third = await fleet.start(fleet.configure("third"));
    const before = new Map(SITES.map((site) => [site, floor.sets(`${site}-a`).length]));
    await first.end("SIGKILL");
    await waitFor(async () => (await ledBy(second)) + (await ledBy(third)) === SITES.length, {
      timeoutMs: 2 * LED_WITHIN_MS,
    });
    const own = new Set((await sitesOf(second)).filter(({ self }) => self).map(({ site }) => site));
    const moved = SITES.filter((site) => !own.has(site));
    // What holds is asserted again, with the number of the first command.
    for (const site of moved) {
      const all = await waitFor(() => {
        const sets = floor.sets(`${site}-a`);
        return sets.length > (before.get(site) ?? 0) ? sets : null;
      });
      expect(new Set(all.map(({ set: { id } }) => id)).size).toBe(1);
    }
    expectNoStaleCommand(fleet.site);

    // The delivery is on the record of each site once, and only with its own vehicle.
    const [one] = own;
    const rows = await second.view<{ kind: string }[]>(`/sites/${one}/api/v1/audit?event=EV-1`);
    expect(rows.filter(({ kind }) => kind === "event")).toHaveLength(1);
    expect(await second.view(`/sites/${one}/api/v1/audit/check`)).toMatchObject({ ok: true });
    expect((await second.get(`/sites/nowhere/api/v1/status`)).status).toBe(404);
    expect((await second.get("/metrics")).text).toMatch(/^setpointd_sites_led \d+$/m);
  });

  test("a bug that ends control of one site leaves the other sites led, and the site is led again after a back-off", async () => {
    const fleet = await aFleet();
    const { floor, partner } = fleet.site;
    // After the signal, the next look-up of this charger by control throws, once.
    const bug = `
      const { get } = Map.prototype;
      let isArmed = false;
      process.on("SIGUSR2", () => (isArmed = true));
      Map.prototype.get = function (key) {
        if (isArmed && key === "north-a" && new Error().stack.includes("/src/control/")) {
          isArmed = false;
          throw new Error("out of the blue");
        }
        return get.call(this, key);
      };`;
    const daemon = await fleet.start(fleet.config, {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(bug)}`,
    });
    expect((await fleet.put(siteFile("north"), siteFile("south"))).code).toBe(0);
    await waitFor(async () => (await ledBy(daemon)) === 2);
    expect((await daemon.deliver(partner.put(forVehicles("EV-1", ["v-north-a"])))).status).toBe(202);
    const before = await floor.nth("north-a", 1);

    daemon.signal("SIGUSR2");
    expect((await daemon.deliver(partner.put(forVehicles("EV-2", ["v-north-a", "v-south-a"])))).status).toBe(
      202,
    );
    expect(await waitFor(() => daemon.line("a bug ended control of a site"))).toMatchObject({
      site: "north",
      err: { message: expect.stringContaining("out of the blue") },
      failures: 1,
      againInS: 10,
    });
    // The other site has its command meanwhile.
    await floor.nth("south-a", 1);
    expect((await sitesOf(daemon)).filter(({ ready }) => ready === true).map(({ site }) => site)).toEqual([
      "south",
    ]);
    await waitFor(async () => (await ledBy(daemon)) === 2);
    const sets = await waitFor(() => {
      const found = floor.sets("north-a").map(({ set }) => set);
      return found.some(({ epoch }) => epoch > before.set.epoch) ? found : null;
    });
    const places = sets.map(({ epoch, seq }) => epoch * 1e6 + seq);
    expect(places).toEqual(places.toSorted((one, two) => one - two));
    // The delivery that arrived meanwhile waited for the next run.
    await waitFor(async () => {
      const rows = await daemon.view<{ kind: string }[]>("/sites/north/api/v1/audit?event=EV-2");
      return rows.filter(({ kind }) => kind === "event").length === 1;
    });
    expect(await daemon.view("/sites/north/api/v1/audit/check")).toMatchObject({ ok: true });
    expect(await daemon.end("SIGTERM")).toBe(0);
  });

  test("a bug in the start of a site is logged as a bug of that site, and the site is led after a back-off", async () => {
    const fleet = await aFleet();
    // The first time that this charger is restored throws.
    const bug = `
      const { set } = Map.prototype;
      let isArmed = true;
      Map.prototype.set = function (key, value) {
        if (isArmed && key === "north-a" && new Error().stack.includes("/src/daemon/site.ts")) {
          isArmed = false;
          throw new Error("out of the blue");
        }
        return set.call(this, key, value);
      };`;
    const daemon = await fleet.start(fleet.config, {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(bug)}`,
    });
    expect((await fleet.put(siteFile("north"), siteFile("south"))).code).toBe(0);
    expect(await waitFor(() => daemon.line("a bug ended control of a site"))).toMatchObject({
      site: "north",
      err: { message: "out of the blue", stack: expect.stringContaining("/src/daemon/site.ts") },
    });
    await waitFor(async () => (await ledBy(daemon)) === 1);
    await waitFor(async () => (await ledBy(daemon)) === 2);
    expect(daemon.lines.filter(({ reason }) => String(reason).startsWith("database: "))).toEqual([]);
    expect(await daemon.end("SIGTERM")).toBe(0);
  });

  test("an error that a timer or a promise of one site throws harms that site only; an error of no site ends the process", async () => {
    const fleet = await aFleet();
    // Each signal: an error in the next check of a lease, then one in a promise that it makes, then one of no site.
    const bug = `
      const { setInterval } = globalThis;
      let [signals, thrown] = [0, 0];
      process.on("SIGUSR2", () => {
        if (++signals === 3) throw new Error("of no site");
      });
      globalThis.setInterval = (check, ms, ...rest) =>
        setInterval(
          !new Error().stack.includes("/src/daemon/leading.ts")
            ? check
            : () => {
                if (thrown < signals) {
                  thrown++;
                  const error = new Error("number " + thrown);
                  if (thrown === 1) throw error;
                  void Promise.reject(error);
                }
                check();
              },
          ms,
          ...rest,
        );`;
    const daemon = await fleet.start(fleet.config, {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(bug)}`,
    });
    expect((await fleet.put(siteFile("north"), siteFile("south"))).code).toBe(0);
    await waitFor(async () => (await ledBy(daemon)) === 2);
    const ended = () => daemon.lines.filter(({ msg }) => msg.includes("a bug ended control of a site"));
    for (const count of [1, 2]) {
      daemon.signal("SIGUSR2");
      await waitFor(() => ended().length === count);
    }
    expect(ended().map(({ err }) => (err as Error).message)).toEqual(["number 1", "number 2"]);
    expect(new Set(ended().map(({ site }) => site))).toEqual(new Set(["north", "south"]));
    await waitFor(async () => (await ledBy(daemon)) === 2);
    const event = fleet.site.partner.put(forVehicles("EV-1", ["v-north-a", "v-south-a"]));
    expect((await daemon.deliver(event)).status).toBe(202);
    for (const site of ["north", "south"]) {
      await fleet.site.floor.nth(`${site}-a`, 1);
      expect(await daemon.view(`/sites/${site}/api/v1/audit/check`)).toMatchObject({ ok: true });
    }
    daemon.signal("SIGUSR2");
    await waitFor(() => daemon.line("a bug ends this process"));
    expect(await daemon.end("SIGTERM")).toBe(1);
  });

  test("while the database refuses this process, people get its reason, and no internal error", async () => {
    const fleet = await aFleet();
    expect((await fleet.put(siteFile("north"))).stderr).toBe("");
    const daemon = await fleet.start(fleet.config);
    await waitFor(async () => (await ledBy(daemon)) === 1);
    await fleet.query("ALTER SCHEMA setpointd RENAME TO away");
    for (const path of ["/api/v1/sites", "/sites/north/api/v1/audit"])
      expect([path, await daemon.get(path)]).toEqual([
        path,
        expect.objectContaining({
          status: 503,
          text: expect.stringContaining('"detail":"database: relation '),
        }),
      ]);
    await fleet.query("ALTER SCHEMA away RENAME TO setpointd");
    await waitFor(async () => (await ledBy(daemon)) === 1);
  });

  test("while the database is away, requests and verbs get that as the reason, and the sites are led again after its return", async () => {
    const fleet = await aFleet();
    const north = siteFile("north");
    expect((await fleet.put(north)).stderr).toBe("");
    const daemon = await fleet.start(fleet.config);
    await waitFor(async () => (await ledBy(daemon)) === 1);
    const epoch = async (): Promise<number> =>
      (await daemon.view<{ leader: { epoch: number } }>("/sites/north/api/v1/status")).leader.epoch;
    const before = await epoch();
    await fleet.cluster.stop("immediate");
    for (const path of ["/api/v1/sites", "/api/v1/fleet", "/sites/north/api/v1/audit"])
      expect([path, await daemon.get(path)]).toEqual([
        path,
        expect.objectContaining({ status: 503, text: expect.stringContaining('"detail":"database: ') }),
      ]);
    const metrics = await daemon.get("/metrics");
    expect([metrics.status, metrics.text.includes("setpointd_fleet_sites")]).toEqual([200, false]);
    const delivered = await daemon.deliver(forVehicles("EV-1", ["v-north-a"]));
    expect([delivered.status, delivered.text]).toEqual([503, expect.any(String)]);
    for (const verb of ["site list", "site show north", "site remove north", "audit", "check --live"]) {
      const said = await fleet.verb(...verb.split(" "));
      expect([verb, said.code, said.stderr]).toEqual([verb, 1, expect.stringContaining("database: ")]);
      expect([verb, said.stderr]).toEqual([verb, expect.not.stringContaining("    at ")]);
    }
    const put = await fleet.put(north);
    expect([put.code, put.stderr]).toEqual([1, expect.stringContaining("database: ")]);
    await fleet.cluster.start();
    await waitFor(async () => (await daemon.get("/api/v1/sites")).status === 200, {
      timeoutMs: LED_WITHIN_MS,
    });
    await waitFor(async () => (await ledBy(daemon)) === 1, { timeoutMs: 2 * LED_WITHIN_MS });
    await waitFor(async () => (await daemon.deliver(forVehicles("EV-1", ["v-north-a"]))).status === 202);
    // Nobody else took it, so it was not started again.
    expect(await epoch()).toBe(before);
    expect(daemon.lines.filter(({ msg }) => msg === "setpointd is up")).toHaveLength(1);
    expect(daemon.lines.filter(({ level }) => level >= 60)).toEqual([]);
  });

  test("doctor tries what a fleet needs, and reports sites without a leader and stored files that were edited", async () => {
    const fleet = await aFleet();
    expect((await fleet.put(siteFile("north"))).code).toBe(0);
    const daemon = await fleet.start(fleet.config);
    await waitFor(async () => (await ledBy(daemon)) === 1);
    const well = await diagnosed(fleet);
    expect(well.filter((line) => line.startsWith("wrong"))).toEqual([]);
    expect(well).toEqual(
      expect.arrayContaining([
        "ok database state.postgres: the database answers",
        expect.stringMatching(/^ok fleet \S+ \d+: leads 1 of at most \d+ sites$/),
        "ok fleet leaders: each of 1 sites has one",
        "ok fleet site files: 1 are right",
        expect.stringMatching(/^ok partner token: issued by/),
        expect.stringMatching(/^ok brokers mqtt: logged in/),
      ]),
    );
    expect(await fleet.verb("status")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is the configuration of a fleet: setpointd site list -c"),
    });
    expect(await daemon.end("SIGTERM")).toBe(0);
    await fleet.query("UPDATE fleet_site SET file = replace(file, '32', '63') WHERE id = 'north'");
    expect(await diagnosed(fleet)).toEqual(
      expect.arrayContaining([
        "wrong fleet processes: no process of the fleet is up",
        "wrong fleet leaders: no process leads 1 of 1 sites: north",
        expect.stringMatching(/^wrong fleet north: the stored file of the site north was edited/),
      ]),
    );
  });

  test("sites are put, changed and removed while the fleet runs, and a put is refused whole when anything is wrong", async () => {
    const fleet = await aFleet();
    const { floor, partner } = fleet.site;
    const daemon = await fleet.start(fleet.config);
    expect((await fleet.verb("site", "list")).stdout).toBe("no sites; setpointd site put FILE stores one\n");
    const wrongFleet = fleet.write("wrong.yaml", { sitesAtMost: 0, state: { folder: "./wrong" } });
    const mistaken = await setpointd(["check", "-c", wrongFleet]);
    expect([mistaken.code, mistaken.stderr]).toEqual([2, expect.stringContaining("sitesAtMost")]);
    expect((await fleet.put(siteFile("north"), siteFile("south"))).code).toBe(0);
    await waitFor(async () => (await ledBy(daemon)) === 2);
    const checked = await fleet.verb("check", "--live");
    expect([checked.code, checked.stdout]).toEqual([
      0,
      expect.stringContaining("sites: 2, processes that lead them: 1"),
    ]);

    const whole = await fleet.put({ ...siteFile("east"), vtn: {} });
    expect([whole.code, whole.stderr]).toEqual([
      2,
      expect.stringMatching(/looks like the configuration of one site/),
    ]);

    // A vehicle belongs to one site. The other file of the same put is not stored either.
    const taken = await fleet.put(siteFile("east"), {
      ...siteFile("west"),
      vehicles: [{ id: "v-north-a", charger: "west-a" }],
    });
    expect(taken.code).toBe(2);
    expect(taken.stderr).toContain("v-north-a, which the site north has too");
    const twice = await fleet.put(siteFile("east"), {
      ...siteFile("west"),
      vehicles: [{ id: "v-east-a", charger: "west-a" }],
    });
    expect(twice.stderr).toContain("v-east-a, which the site east has too");
    const wrong = await fleet.put(siteFile("east"), { ...siteFile("west"), vtn: {} });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("vtn")]);
    expect((await sitesOf(daemon)).map(({ site }) => site)).toEqual(["north", "south"]);

    // An event for a vehicle that no site has yet. The next put brings the vehicle, and the next list the event.
    const event = partner.put(forVehicles("EV-1", ["v-north-a", "v-south-c"]));
    expect((await daemon.deliver(event)).status).toBe(202);
    await floor.nth("north-a", 1);
    const more = siteFile("south", {
      chargers: ["a", "c"].map((each) => ({ id: `south-${each}`, current: { min: 6, max: 32 } })),
      vehicles: ["a", "c"].map((each) => ({ id: `v-south-${each}`, charger: `south-${each}` })),
    });
    expect((await fleet.put(more)).code).toBe(0);
    expect((await floor.nth("south-c", 1)).set).toMatchObject({ event: "EV-1", value: 16 });

    // What a running event needs stays in the file of its site.
    const less = await fleet.put(siteFile("south"));
    expect([less.code, less.stderr]).toEqual([
      2,
      expect.stringContaining("no south-c, which is limited now"),
    ]);
    expect(less.stderr).toContain("no v-south-c, a target of the event EV-1, which is not over");
    const kept = await fleet.verb("site", "remove", "south");
    expect([kept.code, kept.stderr]).toEqual([1, expect.stringContaining("south-c, which is limited now")]);

    // The end of the event, by any process; then the site can go.
    partner.withdraw("EV-1");
    const deleted = { objectType: "EVENT", operation: "DELETE", object: event };
    expect((await daemon.deliver(deleted)).status).toBe(202);
    await waitFor(() => floor.told("south-c").includes("release EV-1"));
    await waitFor(async () => (await fleet.verb("site", "remove", "south")).code === 0, { everyMs: 500 });
    await waitFor(async () => (await sitesOf(daemon)).length === 1);
    await waitFor(async () => /^setpointd_sites_led 1$/m.test((await daemon.get("/metrics")).text));
    expect((await daemon.get("/metrics")).text).toMatch(/^setpointd_fleet_sites 1$/m);
    expect((await fleet.verb("site", "show", "south")).code).toBe(1);
    expect((await fleet.verb("site", "show", "north")).stdout).toContain("id: north-a");
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect((await fleet.verb("site", "list")).stdout).toBe("north: 2 vehicles, no process leads it\n");
    expect((await fleet.verb("check", "--live")).stderr).toContain("no process leads north");
  });
});
