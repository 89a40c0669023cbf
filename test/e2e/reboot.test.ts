import pino from "pino";
import { describe, expect, test } from "vitest";

import type { Params } from "../../src/sim/models/model.ts";
import { MixedFloor } from "../../src/sim/mixedFloor.ts";
import { amperes, chargerId, instant } from "../../src/domain/units.ts";
import { ChargePoint, OcppProcess, pythonOcppAvailable } from "../support/aChargePoint.ts";
import type { Daemon } from "../support/aDaemon.ts";
import { chargersAt } from "../support/aPage.ts";
import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
const QUICK = { control: { refresh: "2s", verdict: { ramp: "1s" } } };
const SOON = { timeoutMs: 25_000 };

interface Row {
  readonly charger: string;
  readonly online: boolean | null;
  readonly verdict: string;
  readonly firmware: string | null;
  readonly restarts: { readonly counted: string; readonly count: number };
  readonly reboot: { readonly progress: string; readonly sentence: string } | null;
}

const rowOf = async (daemon: Daemon, charger = "bay-01"): Promise<Row | undefined> =>
  (await daemon.view<readonly Row[]>("/api/v1/chargers")).find((row) => row.charger === charger);

const reboot = (site: Site, ...more: readonly string[]) =>
  setpointd(["reboot", "bay-01", "-c", site.config, ...more]);

const record = async (site: Site): Promise<string> => (await setpointd(["audit", "-c", site.config])).stdout;

/** Marks of two starts that lie closer together are taken for one start on an inexact clock. */
const APART_MS = 3_000;

/** Waits until a reboot from now on counts as another start than the one that was before `started`. */
const untilAnotherStart = (started: number) => waitFor(() => Date.now() - started > APART_MS, SOON);

/** A charger of another make, as its documents describe it, with a vehicle that charges. */
const aMake = (site: Site, profile: string, params: Params): MixedFloor =>
  MixedFloor.start({
    url: site.broker.url,
    chargers: [
      {
        profile,
        params,
        traits: {
          id: chargerId("bay-01"),
          phases: 3,
          voltage: 230,
          minCurrent: amperes(6),
          maxCurrent: amperes(32),
          ownDefault: amperes(32),
          ramp: 64,
        },
        vehicle: { id: null, identity: null, maxCurrent: amperes(32), capacityWh: 300_000, soc: 40 },
      },
    ],
    now: () => instant(Date.now()),
    log: pino({ level: "silent" }),
  });

describe.skipIf(!mosquittoAvailable)("setpointd reboot", () => {
  test("a charger restarts, is back after some seconds, and obeys its level again", async () => {
    await using site = await aSite({ over: QUICK });
    await using chargers = chargersAt(site, 2);
    const started = Date.now();
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 8, vehicles: ["veh-1"] }));
    await waitFor(async () => (await rowOf(daemon))?.verdict === "followed", SOON);
    const shown = await reboot(site, "--preview");
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    expect(shown.stdout).toMatch(/veh-1 charges there now with 5\.\d kW: that is interrupted/);
    expect(shown.stdout).toContain("When it is back, it is sent its level again: 8 A.");
    expect(await reboot(site)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--reason is missing"),
    });
    await untilAnotherStart(started);
    const before = chargers.received(chargerId("bay-01")).length;
    const done = await reboot(site, "--reason", "it hangs");
    expect(done.stdout).toMatch(/bay-01 is back \d+ s after the reboot by /);
    expect(done).toMatchObject({ code: 0 });
    expect(chargers.model(chargerId("bay-01")).at).toBeGreaterThan(0);
    // The charger has forgotten its level, and gets it before the next refresh.
    await waitFor(() => chargers.received(chargerId("bay-01")).length > before, SOON);
    await waitFor(() => chargers.model(chargerId("bay-01")).order !== null, SOON);
    await waitFor(async () => (await rowOf(daemon))?.verdict === "followed", SOON);
    expect(await rowOf(daemon)).toMatchObject({
      online: true,
      firmware: "simulated 1.0",
      restarts: { counted: "starts", count: 1 },
      reboot: { progress: "back" },
    });
    expect(await rowOf(daemon, "bay-02")).toMatchObject({ restarts: { count: 0 }, reboot: null });
    const rows = await record(site);
    expect(rows).toMatch(/reboot of bay-01 by .*: it hangs/);
    expect(rows).toMatch(/bay-01 is back \d+ s after the reboot by/);
    const messages = site.floor.on("/chargers/bay-01/reboot");
    expect(messages).toMatchObject([{ retain: false }]);
    expect(JSON.parse(messages[0]?.text ?? "")).toEqual({
      v: 1,
      id: expect.stringMatching(/^reboot-\d+-1$/),
      at: expect.stringMatching(/Z$/),
    });
    // Nobody is there to be told.
    await chargers.at(chargerId("bay-02")).dropOff();
    await waitFor(async () => (await rowOf(daemon, "bay-02"))?.online === false, SOON);
    expect(await setpointd(["reboot", "bay-02", "-c", site.config, "--reason", "it hangs"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the charger is offline: a reboot cannot reach it"),
    });
    expect(await setpointd(["reboot", "bay-9", "-c", site.config, "--reason", "x"])).toMatchObject({
      code: 2,
    });
  });

  test.each<readonly [string, Readonly<Record<string, string | number>>, string]>([
    ["go-e-v2", { serial: "000001" }, "60.0"],
    ["openevse-override", { base: "openevse-a7d4" }, "5.1.2"],
  ])(
    "a charger of the make %s restarts by its own message, and is limited again",
    async (profile, given, firmware) => {
      const params: Params = new Map([["prefix", "go-eCharger"], ...Object.entries(given)]);
      const charger = { id: "bay-01", profile, params: given, current: { min: 6, max: 32 } };
      await using site = await aSite({
        over: { ...QUICK, chargers: [charger], vehicles: [{ id: "veh-1", charger: "bay-01" }] },
      });
      await using make = aMake(site, profile, params);
      await make.whenOnline();
      const started = Date.now();
      await using daemon = await site.run();
      await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 8, vehicles: ["veh-1"] }));
      await waitFor(async () => (await rowOf(daemon))?.verdict === "followed", SOON);
      await untilAnotherStart(started);
      const done = await reboot(site, "--reason", "it hangs");
      expect(done.stdout).toMatch(/bay-01 is back \d+ s after the reboot by /);
      await waitFor(() => make.chargers[0]?.model.drawn === 8, SOON);
      expect(await rowOf(daemon)).toMatchObject({ firmware, restarts: { count: 1 } });
    },
  );

  test("a make without such a message refuses, and says why", async () => {
    const charger = { id: "bay-01", profile: "wbec", params: { lp: 1 }, current: { min: 6, max: 16 } };
    await using site = await aSite({ over: { ...QUICK, chargers: [charger], vehicles: [] } });
    await using daemon = await site.run();
    const answer = await fetch(`${daemon.operatorUrl}/api/v1/chargers/bay-01/reboot`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ reason: "it hangs" }),
    });
    expect([answer.status, await answer.json()]).toMatchObject([
      409,
      { detail: "wbec cannot reboot: no message is known that reboots this make over MQTT" },
    ]);
    const shown = await reboot(site, "--preview");
    expect(shown.stdout).toContain("it cannot be rebooted now: wbec cannot reboot");
  });
});

describe.skipIf(!mosquittoAvailable || !pythonOcppAvailable)("setpointd reboot, with OCPP", () => {
  const OVER = {
    ...QUICK,
    chargers: [{ id: "bay-01", current: { min: 6, max: 32 } }],
    vehicles: [{ id: "veh-1", identities: [{ rfid: "04A2B3C4" }] }],
  };

  test.each([
    ["1.6", "Soft", "1.6-test"],
    ["2.0.1", "Immediate", "2.0.1-test"],
  ] as const)(
    "a charger with OCPP %s gets a Reset, boots, and is limited again",
    async (version, type, firmware) => {
      await using site = await aSite({ over: OVER });
      await using daemon = await site.run();
      await using bridge = await OcppProcess.start(site.broker.url);
      await using charger = ChargePoint.start(bridge.url, { version });
      await waitFor(() => charger.draws === 32);
      const started = Date.now();
      await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 16 }));
      await waitFor(() => charger.draws === 16);
      await waitFor(async () => (await rowOf(daemon))?.firmware === firmware);
      await untilAnotherStart(started);
      const done = await reboot(site, "--reason", "it hangs");
      expect(done.stdout).toMatch(/bay-01 is back \d+ s after the reboot by /);
      expect(charger.shown("reset")).toMatchObject([{ type }]);
      expect(charger.shown("booted")).toHaveLength(2);
      await waitFor(() => charger.draws === 16, SOON);
      await waitFor(async () => (await rowOf(daemon))?.verdict === "followed", SOON);
      expect(await rowOf(daemon)).toMatchObject({ restarts: { counted: "starts", count: 1 } });
    },
  );

  test("a charger that rejects the Reset is shown as one that refused", async () => {
    await using site = await aSite({ over: OVER });
    await using daemon = await site.run();
    await using bridge = await OcppProcess.start(site.broker.url);
    await using charger = ChargePoint.start(bridge.url, { mode: "refuse" });
    await waitFor(() => charger.draws === 32);
    await waitFor(async () => (await rowOf(daemon))?.online === true);
    const done = await reboot(site, "--reason", "it hangs");
    expect(done).toMatchObject({ code: 1, stdout: expect.stringContaining("bay-01 refused the reboot by") });
    expect(await record(site)).toMatch(/refused the reboot by .*: the charger answered Reset with Rejected/);
    expect(await rowOf(daemon)).toMatchObject({ reboot: { progress: "refused" }, restarts: { count: 0 } });
  });
});
