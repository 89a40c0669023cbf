import { describe, expect, onTestFinished, test } from "vitest";
import pino from "pino";

import { chargerId, instant } from "../../src/core/units.ts";
import type { MakeFaults } from "../../src/sim/madeCharger.ts";
import { MixedFloor } from "../../src/sim/mixedFloor.ts";
import { boundTo } from "../chargers/profile/aTrial.ts";
import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { launch, setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";
import { BUS, TRAITS } from "../sim/pairing.ts";

const SECOND = 1000;
const PREFIX = { prefix: "warp3/AbCd" };
const SECTIONS = {
  control: { verdict: { ramp: "2s" } },
  chargers: [
    { id: "bay-01", profile: "warp", params: PREFIX, current: { min: 6, max: 32 } },
    { id: "bay-02", current: { min: 6, max: 32 } },
  ],
  vehicles: [{ id: "veh-1", charger: "bay-01" }],
};

async function aWarpSite(faults: MakeFaults = {}) {
  const site = await aSite({ over: SECTIONS });
  onTestFinished(() => site[Symbol.asyncDispose]());
  const floor = MixedFloor.start({
    url: site.broker.url,
    now: () => instant(Date.now()),
    log: pino({ level: "silent" }),
    chargers: [
      {
        profile: "warp",
        params: boundTo("warp", PREFIX).values,
        traits: { ...TRAITS, id: chargerId("bay-01") },
        vehicle: BUS,
        faults,
      },
    ],
  });
  onTestFinished(() => floor[Symbol.asyncDispose]());
  await floor.whenOnline();
  const limit = (): number => floor.chargers[0]?.model.drawn ?? Number.NaN;
  return { site, limit };
}

const commission = (site: Site, ...args: readonly string[]) =>
  setpointd(["commission", "bay-01", "-c", site.config, ...args]);
const record = async (site: Site) => (await setpointd(["audit", "-c", site.config])).stdout;

describe.skipIf(!mosquittoAvailable)("commissioning a charger over its broker", () => {
  test(
    "a good one is tried at three levels, measured, freed, and the record tells",
    { timeout: 60 * SECOND },
    async () => {
      const { site, limit } = await aWarpSite();
      const { code, stdout, stderr } = await commission(site);
      expect([code, stdout.split("\n").slice(0, 2)]).toEqual([
        0,
        [
          "bay-01 (warp), never told anything by us before",
          expect.stringMatching(/^asked +confirmed +measured +followed$/),
        ],
      ]);
      expect(stdout).toMatch(
        /^32 A +after \d\.\d s +32\.0 A +yes\n19 A +after \d\.\d s +19\.0 A +yes\n6 A +after/m,
      );
      expect(stderr).toContain("bay-01: telling it 19 A");
      await waitFor(() => limit() === 32);
      expect(await record(site)).toContain(
        "commissioned bay-01: 32 A yes, 19 A yes, 6 A yes; left with: release",
      );
      expect((await setpointd(["audit", "verify", "-c", site.config])).code).toBe(0);
    },
  );

  test(
    "one that ignores what it is told fails, and says what it drew",
    { timeout: 90 * SECOND },
    async () => {
      const { site } = await aWarpSite({ ignoresSetpoints: true });
      const { code, stdout } = await commission(site);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^6 A +refused: not confirmed within 10 s.* 32\.0 A +NO$/m);
    },
  );

  test("Ctrl-C frees the charger before it ends", { timeout: 60 * SECOND }, async () => {
    const { site, limit } = await aWarpSite();
    const child = launch(["commission", "bay-01", "-c", site.config]);
    const said = { out: "", err: "" };
    child.stdout?.on("data", (chunk: Buffer) => (said.out += chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => (said.err += chunk.toString()));
    const ended = new Promise<number | null>((end) => child.once("close", end));
    await waitFor(() => said.err.includes("telling it 19 A"), { timeoutMs: 30 * SECOND });
    child.kill("SIGINT");
    expect(await ended).toBe(1);
    expect(said.out).toContain("cut short");
    await waitFor(() => limit() === 32);
    expect(await record(site)).toContain("cut short; left with: release");
  });

  test("it stays away from a charger that a daemon or an event has", { timeout: 90 * SECOND }, async () => {
    const { site, limit } = await aWarpSite();
    {
      await using daemon = await site.run();
      await daemon.deliver(anEvent("EV-1", { lastsMs: 600 * SECOND, amperes: 10 }));
      await waitFor(() => limit() === 10, { timeoutMs: 15 * SECOND });
      const refused = await commission(site, "--force");
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toContain("stop it, commission, start it again");
      await daemon.end("SIGTERM");
    }
    const held = await commission(site);
    expect([held.code, held.stdout]).toEqual([1, ""]);
    expect(held.stderr).toMatch(/EV-1 holds on bay-01 until .*; --force commissions it all the same/);
    expect(limit()).toBe(10);
    const forced = await commission(site, "--force");
    expect([forced.code, forced.stdout]).toEqual([0, expect.stringContaining("left with: 10 A")]);
    await waitFor(() => limit() === 10);
  });

  test("what cannot be tried is said with the remedy", { timeout: 60 * SECOND }, async () => {
    const { site } = await aWarpSite();
    const unknown = await setpointd(["commission", "bay-09", "-c", site.config]);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("bay-01, bay-02")]);
    site.configure({ ...SECTIONS, control: { mode: "observe" } });
    const observing = await commission(site);
    expect([observing.code, observing.stderr]).toEqual([1, expect.stringContaining("observe")]);
    site.configure({ ...SECTIONS, mqtt: { url: "mqtt://127.0.0.1:1" } });
    const alone = await commission(site);
    expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining("broker cannot be reached")]);
  });
});
