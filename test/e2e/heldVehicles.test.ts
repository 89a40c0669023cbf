import pino from "pino";
import { describe, expect, test } from "vitest";

import { amperes, chargerId, instant, millis } from "../../src/domain/units.ts";
import { SimulatedChargers } from "../../src/sim/chargers.ts";
import type { Daemon } from "../support/aDaemon.ts";
import { anEvent, aSite, type Site, startOf } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly ended: { readonly by: string; readonly why: string } | null;
  readonly others: readonly { readonly id: string }[];
  readonly effect: readonly { readonly charger: string; readonly verdict: string; readonly level: object }[];
}

interface Row {
  readonly at: string;
  readonly kind: string;
  readonly words: string;
}

const descriptor = (payloadType: string) => ({
  payloadType,
  readingType: "DIRECT_READ",
  aggregate: false,
  historical: true,
  frequency: 0,
  numIntervals: 0,
  repeat: 0,
  startInterval: 0,
});

/** Two native chargers that obey: bay-01 has a vehicle that charges, bay-02 one that is full. */
const chargersAt = (site: Site): SimulatedChargers =>
  SimulatedChargers.start({
    url: site.broker.url,
    prefix: "setpointd",
    site: "depot",
    chargers: [1, 2].map((number) => ({
      traits: {
        id: chargerId(`bay-0${number}`),
        phases: 3,
        voltage: 230,
        minCurrent: amperes(6),
        maxCurrent: amperes(32),
        ownDefault: amperes(32),
        ramp: 64,
      },
      vehicle: {
        id: null,
        identity: null,
        maxCurrent: amperes(32),
        capacityWh: 300_000,
        soc: number === 1 ? 40 : 100,
      },
    })),
    now: () => instant(Date.now()),
    log: pino({ level: "silent" }),
    telemetryEvery: millis(250),
  });

const held = () => aSite({ over: { report: { settleDelay: "1s" }, control: { verdict: { ramp: "1s" } } } });

async function post(daemon: Daemon, body: object, key: string): Promise<{ status: number; hold: Shown }> {
  const response = await fetch(`${daemon.operatorUrl}/api/v1/holds`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify(body),
  });
  return { status: response.status, hold: (await response.json()) as Shown };
}

const listed = async (daemon: Daemon, id: string): Promise<Shown | undefined> =>
  (await daemon.view<Shown[]>("/api/v1/holds")).find((hold) => hold.id === id);

interface Bound {
  readonly charger: string;
  readonly vehicle: string | null;
  readonly binding: { readonly vehicle: string; readonly reason: string } | null;
}

const row = async (daemon: Daemon) =>
  (await daemon.view<Bound[]>("/api/v1/chargers")).find(({ charger }) => charger === "bay-02");

describe.skipIf(!mosquittoAvailable)("a charger that cannot tell its vehicle", () => {
  test("the vehicle that a person names gets its setpoint there, survives kill -9, and is taken back", async () => {
    await using site = await held();
    await using chargers = chargersAt(site);
    await chargers.whenOnline();
    const event = site.partner.put(
      anEvent("EV-1", { amperes: 10, vehicles: ["veh-1"], lastsMs: 600 * SECOND }),
    );
    const verb = (...args: readonly string[]) => setpointd(["bind", "bay-02", ...args, "-c", site.config]);
    const binding = { vehicle: "veh-1", reason: "it stands there" };
    {
      await using daemon = await site.run();
      await daemon.deliver(event);
      await site.floor.nth("bay-01", 1);
      const bound = await waitFor(async () => {
        const tried = await verb("veh-1", "--reason", "it stands there");
        return tried.code === 0 ? tried : undefined;
      });
      expect(bound.stdout).toBe("veh-1 is assigned to bay-02, no longer to bay-01; bay-02 gets 10 A\n");
      await waitFor(() => site.floor.told("bay-02").at(-1) === "10 A EV-1");
      expect(await row(daemon)).toMatchObject({ vehicle: "veh-1", binding });
      expect(await verb("veh-1", "--reason", "again")).toMatchObject({
        code: 1,
        stderr: "veh-1 was not bound to bay-02: it is assigned there already: a person has said so\n",
      });
      await daemon.end("SIGKILL");
    }
    await using daemon = await site.run();
    await waitFor(async () => (await row(daemon))?.vehicle === "veh-1");
    expect(await row(daemon)).toMatchObject({ binding });
    expect(site.floor.told("bay-02")).not.toContain("release");
    expect(await verb("--take-back", "--reason", "it was the other one")).toMatchObject({
      code: 0,
      stderr: "",
    });
    await waitFor(() => site.floor.told("bay-02").at(-1)?.startsWith("release"));
    expect(await row(daemon)).toMatchObject({ vehicle: "veh-2", binding: null });
  });
});

describe.skipIf(!mosquittoAvailable)(
  "a held vehicle, with obeying chargers and a partner that asks for reports",
  () => {
    test("a hold changes the charger within a second, is measured as followed, survives kill -9, ends by itself, and is in proof and report", async () => {
      await using site = await held();
      await using chargers = chargersAt(site);
      await chargers.whenOnline();
      const wish = {
        amperes: 10,
        vehicles: ["veh-1"],
        reportDescriptors: [descriptor("USAGE"), descriptor("OPERATING_STATE")],
      };
      const event = site.partner.put(anEvent("EV-1", { ...wish, lastsMs: 600 * SECOND }));
      const common = {
        scope: { charger: "bay-01" },
        kind: "level",
        level: { currentA: 16 },
        reason: "leaves early",
      };
      const begun = Date.now();
      let id: string;
      let until: Date;
      let body: object;
      {
        await using daemon = await site.run();
        // The hold has to outlast another start, which takes long on a busy machine.
        until = new Date(Date.now() + 10 * SECOND + 3 * (Date.now() - begun));
        body = { ...common, until: { at: until.toISOString() } };
        await daemon.deliver(event);
        await site.floor.nth("bay-01", 1);
        const postedAt = Date.now();
        const first = await post(daemon, body, "key-1");
        expect([first.status, first.hold]).toMatchObject([
          201,
          {
            state: "open",
            others: [],
            effect: [{ charger: "bay-01", level: { currentA: 16 }, overrules: ["EV-1"] }],
          },
        ]);
        ({ id } = first.hold);
        const changed = await site.floor.nth("bay-01", 2);
        expect(changed.at - postedAt).toBeLessThan(SECOND);
        expect(site.floor.told("bay-01")[1]).toBe("16 A null");
        const again = await post(daemon, body, "key-1");
        expect([again.status, again.hold.id]).toEqual([201, id]);
        await waitFor(async () => (await listed(daemon, id))?.effect[0]?.verdict === "followed");
        await daemon.end("SIGKILL");
      }
      await using daemon = await site.run();
      expect(await listed(daemon, id)).toMatchObject({
        state: "open",
        by: "loopback",
        reason: "leaves early",
      });
      const repeated = await post(daemon, body, "key-1");
      expect([repeated.status, repeated.hold.id]).toEqual([201, id]);
      const taken = await post(daemon, { ...body, reason: "another" }, "key-1");
      expect(taken.status).toBe(409);
      const second = await post(daemon, { ...body, level: { currentA: 12 }, reason: "less" }, "key-2");
      expect(second.hold.others.map((other) => other.id)).toEqual([id]);
      await waitFor(() => site.floor.told("bay-01").includes("12 A null"));
      const stop = await setpointd([
        "hold",
        "end",
        second.hold.id,
        "--reason",
        "a mistake",
        "-c",
        site.config,
      ]);
      expect(stop).toMatchObject({ code: 0, stderr: "" });
      await waitFor(() => site.floor.told("bay-01").at(-1) === "16 A null");

      await waitFor(async () => (await listed(daemon, id))?.state === "ended", { timeoutMs: 120_000 });
      expect((await listed(daemon, id))?.ended).toMatchObject({ by: "setpointd", why: "its time has come" });
      await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1");
      const rows = await daemon.view<Row[]>("/api/v1/audit?charger=bay-01");
      const end = rows.find(({ words }) => words.includes(`hold ${id}`) && words.includes("ended"));
      expect(Math.abs(Date.parse(end?.at ?? "") - until.getTime())).toBeLessThan(SECOND);
      expect(
        rows.some(({ words }) => words.includes(`hold ${id}`) && words.includes("EV-1 does not apply")),
      ).toBe(true);
      // The partner ends the event now: its reports are due.
      const start = startOf(event);
      const shorter = { ...wish, startIn: start - Date.now(), lastsMs: Date.now() + 2 * SECOND - start };
      await daemon.deliver(site.partner.put(anEvent("EV-1", shorter)));

      const sent = await waitFor(
        () => (site.partner.reports.accepted.length >= 2 ? site.partner.reports.accepted : undefined),
        { timeoutMs: 60_000 },
      );
      expect(JSON.stringify(sent.map((report) => report.body))).toContain("opted out by the site");
      const proof = await setpointd(["proof", "EV-1", "-c", site.config]);
      expect(proof.stdout).toContain(id);
      expect(proof.stdout).toContain("opted out by the site");
      const over = await daemon.view<Row[]>("/api/v1/audit?event=EV-1");
      expect(over.some(({ words }) => words.includes(`hold ${id}`))).toBe(true);
    });

    test("vehicles that the site takes out of an event are reported as opted out, running or idle, with the cause", async () => {
      await using site = await held();
      await using chargers = chargersAt(site);
      await chargers.whenOnline();
      await using daemon = await site.run();
      const event = site.partner.put(
        anEvent("EV-1", {
          lastsMs: 6 * SECOND,
          amperes: 10,
          vehicles: ["veh-1", "veh-2"],
          reportDescriptors: [descriptor("OPERATING_STATE")],
        }),
      );
      await daemon.deliver(event);
      await site.floor.nth("bay-02", 1);
      const opened = await post(
        daemon,
        { scope: { site: true }, kind: "exempt", until: { events: true }, reason: "all leave early" },
        "key-1",
      );
      expect(opened.status).toBe(201);
      const [report] = await waitFor(
        () => (site.partner.reports.accepted.length > 0 ? site.partner.reports.accepted : undefined),
        { timeoutMs: 30_000 },
      );
      if (report === undefined) throw new Error("no report");
      const { resources } = report.body as {
        resources: { resourceName: string; intervals: { payloads: object[] }[] }[];
      };
      const states = resources.map(({ resourceName, intervals }) => [resourceName, intervals[0]?.payloads]);
      expect(states).toEqual([
        [
          "veh-1",
          expect.arrayContaining([
            { type: "OPERATING_STATE", values: ["RUNNING_OPTED_OUT"] },
            { type: "CAUSE", values: ["opted out by the site"] },
          ]),
        ],
        [
          "veh-2",
          expect.arrayContaining([
            { type: "OPERATING_STATE", values: ["IDLE_OPTED_OUT"] },
            { type: "CAUSE", values: ["opted out by the site"] },
          ]),
        ],
      ]);
    });
  },
);
