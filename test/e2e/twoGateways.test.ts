import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { ask, type Daemon } from "../support/aDaemon.ts";
import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { Postgres, postgresMissing } from "../support/postgres.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const HOUR = 3_600_000;
/** Longest time without a leader. */
const LED_WITHIN_MS = 15_000;

/** Commands to each charger in the order of arrival: none is older than the one before. */
function expectNoStaleCommand({ floor }: Site): void {
  for (const charger of ["bay-01", "bay-02", "bay-03", "bay-04"]) {
    const places = floor.sets(charger).map(({ set: { epoch, seq } }) => epoch * 1e6 + seq);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  }
}

/** The record holds each of these events once, and its chain is whole. */
async function expectRecord(daemon: Daemon, events: readonly string[]): Promise<void> {
  for (const event of events) {
    const rows = await daemon.view<{ kind: string }[]>(`/api/v1/audit?event=${event}`);
    expect([event, rows.filter(({ kind }) => kind === "event").length]).toEqual([event, 1]);
  }
  expect(await daemon.view("/api/v1/audit/check")).toMatchObject({ ok: true });
}

const lasting = (id: string, vehicle: string) => anEvent(id, { lastsMs: HOUR, vehicles: [vehicle] });

const aHoldOfTheSite = () => ({
  scope: { site: true },
  kind: "exempt",
  until: { at: new Date(Date.now() + HOUR).toISOString() },
  reason: "a trial",
});

const leads = (daemon: Daemon, times = 1): Promise<unknown> =>
  waitFor(() => daemon.lines.filter(({ msg }) => msg === "setpointd is up").length >= times, {
    timeoutMs: LED_WITHIN_MS,
  });

/** A stand-in answers people: who leads, and where. It refuses what only the leader can do. */
async function expectStandIn(standIn: Daemon, leader: Daemon, config: string): Promise<void> {
  const name = `${leader.pid} leads the site depot since `;
  await waitFor(async () => (await standIn.get("/")).text.includes(`href="${leader.operatorUrl}"`));
  expect((await standIn.get("/")).text).toMatch(/<h1>depot: stand-in of \S+ \d+<\/h1>/);
  const { leader: shown } = await leader.view<{ leader: Record<string, unknown> }>("/api/v1/status");
  expect(await standIn.view("/api/v1/status")).toMatchObject({
    ready: false,
    leader: { self: false, process: shown["process"], epoch: shown["epoch"], page: leader.operatorUrl },
  });
  expect(await standIn.get("/healthz")).toMatchObject({ status: 200, text: "standing by\n" });
  expect(await standIn.get("/readyz")).toMatchObject({ status: 503, text: "standing by\n" });
  expect((await standIn.get("/metrics")).text).toContain("setpointd_sites_led 0");
  const refused = await ask(`${standIn.operatorUrl}/api/v1/holds`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(aHoldOfTheSite()),
  });
  expect(refused.status).toBe(503);
  expect((refused.json as { detail: string }).detail).toContain(name);
  const status = await setpointd(["status", "-c", config]);
  expect(status).toMatchObject({ code: 0, stderr: "" });
  expect(status.stdout).toContain(name);
  for (const verb of [["release", "--all"], ["audit"], ["alarms"], ["commission", "bay-01"]]) {
    const said = await setpointd([...verb, "-c", config]);
    expect([verb, said.code]).toEqual([verb, 1]);
    expect(said.stderr).toContain(name);
  }
}

describe.skipIf(!mosquittoAvailable || postgresMissing() !== null)("two gateways on one database", () => {
  test("a leader that loses the site while it applies its changed file stands by with the new configuration", async () => {
    await using cluster = await Postgres.start();
    await using site = await aSite();
    writeFileSync(join(site.directory, "database-url"), cluster.url, { mode: 0o600 });
    const state = { folder: "./state", postgres: { url: { file: "database-url" }, lease: "3s" } };
    site.configure({ state });
    await using first = await site.run();
    await using second = await site.standIn("second");
    await first.deliver(lasting("EV-1", "veh-1"));
    await site.floor.nth("bay-01", 1);
    site.configure({ state, chargers: [{ id: "bay-01", current: { min: 6, max: 10 } }], vehicles: [] });
    const why = ["--force", "--reason", "one bay is left", "-c", site.config];
    const asked = setpointd(["apply", ...why]);
    // Its lease ends before it can start again.
    await waitFor(() => first.line("the configuration is changed"), { everyMs: 1 });
    first.signal("SIGSTOP");
    await leads(second);
    first.signal("SIGCONT");
    const said = await asked;
    expect(said).toMatchObject({ code: 0, stderr: "" });
    expect(said.stdout).toMatch(/^stands by with configuration \w{12}: another process leads the site now$/m);
    // The other one has its own file.
    expect(await second.view<object[]>("/api/v1/chargers")).toHaveLength(4);
    await second.end("SIGKILL");
    await leads(first, 2);
    expect(await first.view<object[]>("/api/v1/chargers")).toHaveLength(1);
    const rows = await first.view<{ words: string }[]>("/api/v1/audit?newest=true&limit=200");
    expect(rows.some(({ words }) => words.includes("applies the configuration file"))).toBe(true);
    expectNoStaleCommand(site);
  });

  test("a leader that is killed, then one that is frozen and woken: the other leads, and no event is lost, doubled or stale", async () => {
    await using cluster = await Postgres.start();
    await using site = await aSite();
    writeFileSync(join(site.directory, "database-url"), cluster.url, { mode: 0o600 });
    site.configure({
      state: { folder: "./state", postgres: { url: { file: "database-url" }, lease: "3s" } },
    });
    const { floor } = site;
    await using first = await site.run();
    await using second = await site.standIn("second");

    const { leader } = await first.view<{ leader: { self: boolean; epoch: number } }>("/api/v1/status");
    expect(leader).toMatchObject({ self: true, epoch: expect.any(Number), process: expect.any(String) });
    expect((await first.get("/metrics")).text).toContain("setpointd_sites_led 1");

    await expectStandIn(second, first, join(site.directory, "second.yaml"));

    // A body that the stand-in cannot read is a hint: the leader asks the partner at once.
    site.partner.put(lasting("EV-0", "veh-of-another-site"));
    expect((await second.deliver({ type: "unknown" })).status).toBe(202);
    await waitFor(async () =>
      (await first.view<{ id: string }[]>("/api/v1/events")).some(({ id }) => id === "EV-0"),
    );

    // What the stand-in receives, the leader does.
    expect((await first.deliver(lasting("EV-1", "veh-1"))).status).toBe(202);
    expect((await second.deliver(lasting("EV-2", "veh-2"))).status).toBe(202);
    const before = await floor.nth("bay-01", 1);
    await floor.nth("bay-02", 1);

    // The leader is killed. A delivery meanwhile waits in the database.
    await first.end("SIGKILL");
    expect((await second.deliver(lasting("EV-3", "veh-3"))).status).toBe(202);
    await leads(second);
    await waitFor(async () =>
      /^setpointd_failover_seconds [\d.]+$/m.test((await second.get("/metrics")).text),
    );
    expect((await second.get("/metrics")).text).toContain("setpointd_lease_lost_total 0");
    await waitFor(async () =>
      (await second.view<{ key: string }[]>("/api/v1/alarms")).some(({ key }) => key === "leaseLost"),
    );
    expect((await floor.nth("bay-01", 2)).set).toStrictEqual(before.set);
    expect((await floor.nth("bay-03", 1)).set.epoch).toBeGreaterThan(before.set.epoch);

    // The leader is frozen past its lease, and woken while another process leads.
    await using third = await site.standIn("third");
    second.signal("SIGSTOP");
    await leads(third);
    expect((await third.deliver(lasting("EV-4", "veh-4"))).status).toBe(202);
    const after = await floor.nth("bay-04", 1);
    second.signal("SIGCONT");
    await waitFor(() => second.line("becomes a stand-in") && second.line("standing by"), {
      timeoutMs: LED_WITHIN_MS,
    });
    expect(third.line("another client uses our client id")).toBeUndefined();
    expectNoStaleCommand(site);
    await expectRecord(third, ["EV-1", "EV-2", "EV-3", "EV-4"]);

    // The record has the process of each term.
    const starts = await third.view<{ facts: { process?: string } | null }[]>("/api/v1/audit");
    const pids = starts.flatMap(({ facts }) => facts?.process?.split(" ").at(-1) ?? []);
    expect(pids).toEqual([first, second, third].map(({ pid }) => String(pid)));

    // An orderly stop hands over at once, and the woken process leads once more.
    await third.end("SIGTERM");
    await leads(second, 2);
    expect((await second.get("/metrics")).text).toContain("setpointd_lease_lost_total 1");
    expect((await floor.nth("bay-04", 2)).set).toStrictEqual(after.set);
    expectNoStaleCommand(site);
    await expectRecord(second, ["EV-1", "EV-2", "EV-3", "EV-4"]);
  });

  test("while the database is away, status and alarms say so, and what only the database knows is answered 503", async () => {
    await using cluster = await Postgres.start();
    await using site = await aSite();
    writeFileSync(join(site.directory, "database-url"), cluster.url, { mode: 0o600 });
    site.configure({
      state: { folder: "./state", postgres: { url: { file: "database-url" }, lease: "3s" } },
    });
    await using daemon = await site.run();
    await cluster.stop("immediate");
    await waitFor(async () =>
      (await daemon.view<{ problems: { kind: string }[] }>("/api/v1/status")).problems.some(
        ({ kind }) => kind === "database",
      ),
    );
    await waitFor(
      async () =>
        (await daemon.view<{ key: string; state: string }[]>("/api/v1/alarms")).some(
          ({ key, state }) => key === "database" && state === "open",
        ),
      { timeoutMs: LED_WITHIN_MS },
    );
    expect(await daemon.get("/api/v1/audit")).toMatchObject({ status: 503 });
    const { code, stdout } = await setpointd(["status", "-c", site.config]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("cannot be renewed in the database")]);
    for (const [method, path, body] of [
      ["POST", "holds", aHoldOfTheSite()],
      // Another process may lead, and may have opened it.
      ["DELETE", "holds/hold-1-1", { reason: "over" }],
      [
        "PUT",
        "mode",
        { mode: "observe", until: new Date(Date.now() + HOUR).toISOString(), reason: "a trial" },
      ],
    ] as const) {
      const refused = await ask(`${daemon.operatorUrl}/api/v1/${path}`, {
        method,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect([path, refused.status, refused.text]).toEqual([
        path,
        503,
        expect.stringContaining("the database cannot be reached"),
      ]);
    }
    for (const [verb, reason] of [
      ["handover", "the running daemon refuses (503): database: "],
      ["poll", "could not be stored: the database cannot be reached"],
      ["proof EV-1", "the running daemon refuses (503): database: "],
      ["release --all", "nothing is sent to a charger now: the database cannot be reached"],
    ] as const) {
      const said = await setpointd([...verb.split(" "), "-c", site.config]);
      expect([verb, said.code, said.stderr]).toEqual([verb, 1, expect.stringContaining(reason)]);
    }
    await cluster.start();
    await waitFor(
      async () => (await daemon.view<{ leader: { self: boolean } }>("/api/v1/status")).leader.self,
    );
  });
});
