import { connectAsync } from "mqtt";
import pino from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import { chargerId, instant } from "../../src/domain/units.ts";
import type { ModelFaults } from "../../src/sim/simulatedModel.ts";
import { MixedFloor } from "../../src/sim/mixedFloor.ts";
import { boundTo } from "../chargers/profile/aTrial.ts";
import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { ask } from "../support/aDaemon.ts";
import { freePort } from "../support/freePort.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { launch, setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";
import { BUS, TRAITS } from "../sim/pairing.ts";

const SECOND = 1000;
const PATIENCE = { timeoutMs: 15 * SECOND };
const PREFIX = { prefix: "warp3/AbCd" };
const SECTIONS = {
  control: { verdict: { ramp: "2s" } },
  chargers: [
    { id: "bay-01", profile: "warp", params: PREFIX, current: { min: 6, max: 32 } },
    { id: "bay-02", current: { min: 6, max: 32 } },
  ],
  vehicles: [{ id: "veh-1", charger: "bay-01" }],
};

interface TrialAnswer {
  readonly run: {
    readonly endedAt: string | null;
    readonly steps: readonly { readonly message: string }[];
  } | null;
}

async function aWarpSite(faults: ModelFaults = {}) {
  const site = await aSite({ over: SECTIONS });
  onTestFinished(() => site[Symbol.asyncDispose]());
  return { site, ...(await aWarp(site.broker.url, faults)) };
}

/** One charger on this broker; `sets` is what somebody else told it. */
async function aWarp(url: string, faults: ModelFaults = {}) {
  const floor = MixedFloor.start({
    url,
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
  const setByHand = async (milliamperes: number): Promise<void> => {
    const hand = await connectAsync(url);
    const { prefix } = PREFIX;
    await hand.publishAsync(`${prefix}/evse/external_enabled_update`, "true", { qos: 1 });
    await hand.publishAsync(`${prefix}/evse/external_current_update`, String(milliamperes), { qos: 1 });
    await hand.endAsync();
    await waitFor(() => limit() === milliamperes / 1000, PATIENCE);
  };
  return { limit, setByHand };
}

/** `commission` as a process of its own, with what it has said so far. */
function commissioning(site: Site, ...args: readonly string[]) {
  const child = launch(["commission", "bay-01", "-c", site.config, ...args]);
  const said = { out: "", err: "" };
  child.stdout?.on("data", (chunk: Buffer) => (said.out += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (said.err += chunk.toString()));
  const ended = new Promise<number | null>((end) => child.once("close", end));
  const tells = (level: string) =>
    waitFor(() => said.err.includes(`sending ${level}`), { timeoutMs: 30 * SECOND });
  return { child, said, ended, tells };
}

const commission = (site: Site, ...args: readonly string[]) =>
  setpointd(["commission", "bay-01", "-c", site.config, ...args]);
const record = async (site: Site) => (await setpointd(["audit", "-c", site.config])).stdout;

/** Output of a trial of a good charger. */
const THREE_LEVELS = {
  stdout: expect.stringMatching(
    /^32 A +after \d\.\d s +3[12]\.\d A +yes\n19 A +after \d\.\d s +19\.\d A +yes\n6 A +after/m,
  ),
  stderr: expect.stringContaining("bay-01: sending 19 A"),
};

describe.skipIf(!mosquittoAvailable)("commissioning a charger over its broker", () => {
  test("a good charger is tried at three levels, measured, freed, and recorded", async () => {
    const { site, limit } = await aWarpSite();
    const { code, stdout, stderr } = await commission(site);
    expect([code, stdout.split("\n").slice(0, 2)]).toEqual([
      0,
      ["bay-01 (warp), free before", expect.stringMatching(/^asked +confirmed +measured +followed$/)],
    ]);
    expect({ stdout, stderr }).toEqual(THREE_LEVELS);
    await waitFor(() => limit() === 32, PATIENCE);
    expect(await record(site)).toContain(
      "commissioned bay-01: 32 A yes, 19 A yes, 6 A yes; left with: release",
    );
    expect((await setpointd(["audit", "verify", "-c", site.config])).code).toBe(0);
  });

  test("a charger that ignores its setpoints fails, and the result shows what it drew", async () => {
    const { site } = await aWarpSite({ ignoresSetpoints: true });
    const { code, stdout } = await commission(site);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^6 A +refused: not confirmed within 10 s.* 3[12]\.\d A +NO$/m);
  });

  test("Ctrl-C frees the charger before it ends", async () => {
    const { site, limit } = await aWarpSite();
    const { child, said, ended, tells } = commissioning(site);
    await tells("19 A");
    child.kill("SIGINT");
    expect(await ended).toBe(1);
    expect(said.out).toContain("cut short");
    await waitFor(() => limit() === 32, PATIENCE);
    expect(await record(site)).toContain("cut short; left with: release");
  });

  test("a charger that an event limits is not tried, unless forced", async () => {
    const { site, limit } = await aWarpSite();
    {
      await using daemon = await site.run();
      await daemon.deliver(anEvent("EV-1", { lastsMs: 600 * SECOND, amperes: 10 }));
      await waitFor(() => limit() === 10, PATIENCE);
      const refused = await commission(site);
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toMatch(/EV-1 holds on bay-01 until .*; --force tries it anyway/);
      await daemon.end("SIGTERM");
    }
    const held = await commission(site);
    expect([held.code, held.stdout]).toEqual([1, ""]);
    expect(held.stderr).toMatch(/EV-1 holds on bay-01 until .*; --force tries it anyway/);
    expect(limit()).toBe(10);
    const forced = await commission(site, "--force");
    expect([forced.code, forced.stdout]).toEqual([0, expect.stringContaining("left with: 10 A")]);
    await waitFor(() => limit() === 10, PATIENCE);
  });

  test("a limit set by another controller is restored", async () => {
    const { site, limit, setByHand } = await aWarpSite();
    await setByHand(13_000);
    const { code, stdout } = await commission(site);
    expect([code, stdout.split("\n")[0]]).toEqual([0, "bay-01 (warp), at 13 A before, not by us"]);
    expect(stdout).toContain("left with: 13 A");
    await waitFor(() => limit() === 13, PATIENCE);
  });

  test("a charger whose broker is inside setpointd is tried over that broker", async () => {
    await using site = await aSite({ over: SECTIONS });
    const port = await freePort();
    site.configure({ ...SECTIONS, mqtt: { embedded: { listen: `127.0.0.1:${port}` } } });
    const verb = commissioning(site);
    const { limit } = await aWarp(`mqtt://127.0.0.1:${port}`);
    expect([await verb.ended, verb.said.out]).toEqual([0, expect.stringMatching(/^6 A +after .* yes$/m)]);
    await waitFor(() => limit() === 32, PATIENCE);
    await using daemon = await site.start();
    await waitFor(() => daemon.hasBroker(), { timeoutMs: 15 * SECOND });
    const running = await commission(site);
    expect([running.code, running.stdout]).toEqual([0, expect.stringContaining("left with: release")]);
  });

  test("a charger that cannot be tried is reported with the remedy", async () => {
    const { site } = await aWarpSite();
    const unknown = await setpointd(["commission", "bay-09", "-c", site.config]);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("bay-01, bay-02")]);
    site.configure({ ...SECTIONS, control: { mode: "observe" } });
    const observing = await commission(site);
    expect([observing.code, observing.stderr]).toEqual([1, expect.stringContaining("observe")]);
    site.configure({ ...SECTIONS, mqtt: { url: "mqtt://127.0.0.1:1" } });
    const alone = await commission(site);
    const away =
      "the broker 127.0.0.1:1 cannot be reached (connect ECONNREFUSED 127.0.0.1:1); nothing was tried";
    expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining(away)]);
  });
});

describe.skipIf(!mosquittoAvailable)("commissioning a charger while setpointd runs", () => {
  test("a charger is tried by the daemon, which prints and records the same, and then controls it again", async () => {
    const { site, limit } = await aWarpSite();
    await using daemon = await site.run();
    const { code, stdout, stderr } = await commission(site);
    expect([code, stdout.split("\n")[0]]).toEqual([0, "bay-01 (warp), free before"]);
    expect({ stdout, stderr }).toEqual(THREE_LEVELS);
    await waitFor(() => limit() === 32, PATIENCE);
    expect(await record(site)).toContain(
      "commissioned bay-01: 32 A yes, 19 A yes, 6 A yes; left with: release",
    );
    await daemon.deliver(anEvent("EV-1", { lastsMs: 600 * SECOND, amperes: 10 }));
    await waitFor(() => limit() === 10, PATIENCE);
    expect((await setpointd(["audit", "verify", "-c", site.config])).code).toBe(0);
  });

  test("over the API a person tries it once however often the request is sent, sees the levels, and is on record; a second person is refused meanwhile, and may stop it", async () => {
    const { site, limit } = await aWarpSite();
    await using daemon = await site.run();
    const path = "/api/v1/chargers/bay-01/trial";
    const url = `${daemon.operatorUrl}${path}`;
    const start = (body: object, headers: Readonly<Record<string, string>> = {}) =>
      ask(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
    const seen = () => daemon.view<TrialAnswer>(path);
    expect(await seen()).toMatchObject({
      plan: { levels: [{ currentA: 32 }, { currentA: 19 }, { currentA: 6 }], waitS: 2 },
      hindrance: null,
      run: null,
    });
    const [request, key] = [{ reason: "new cable" }, { "idempotency-key": "key-1" }];
    const first = await start(request, key);
    expect(first).toMatchObject({ status: 202, json: { run: { by: "loopback", endedAt: null } } });
    expect(await start(request, key)).toMatchObject({ status: 202, json: first.json });
    const second = await start({ reason: "me too" });
    expect([second.status, second.text]).toEqual([
      409,
      expect.stringContaining("bay-01 is being commissioned already"),
    ]);
    const ended = await waitFor(async () => {
      const { run } = await seen();
      return run?.endedAt == null ? null : run;
    }, PATIENCE);
    expect(ended).toMatchObject({
      reason: "new cable",
      result: {
        good: true,
        complaint: null,
        levels: [
          { asked: "32 A", effect: "followed", trouble: null },
          { asked: "19 A", effect: "followed" },
          { asked: "6 A", effect: "followed" },
        ],
      },
    });
    expect(ended.steps.map(({ message }) => message)).toContain("sending 19 A");
    await waitFor(() => limit() === 32, PATIENCE);
    expect(await record(site)).toContain("begins, asked by loopback: new cable");
    expect((await ask(url, { method: "DELETE" })).status).toBe(409);

    await start({ reason: "again" });
    await waitFor(async () => (await seen()).run?.steps.some(({ message }) => message === "sending 19 A"));
    expect((await ask(url, { method: "DELETE" })).status).toBe(200);
    await waitFor(async () => (await seen()).run?.endedAt != null, PATIENCE);
    expect(await seen()).toMatchObject({
      run: { result: { good: false, sentence: expect.stringContaining("cut short; left with: release") } },
    });
    await daemon.deliver(anEvent("EV-1", { lastsMs: 600 * SECOND, amperes: 10 }));
    await waitFor(() => limit() === 10, PATIENCE);
    expect(await seen()).toMatchObject({ hindrance: expect.stringMatching(/^EV-1 holds on bay-01 until/) });
    expect((await start({ reason: "now" })).status).toBe(409);
  });

  test("an event that becomes due ends it at once", async () => {
    const { site, limit } = await aWarpSite();
    await using daemon = await site.run();
    const { said, ended, tells } = commissioning(site);
    await tells("19 A");
    await daemon.deliver(anEvent("EV-1", { lastsMs: 600 * SECOND, amperes: 10 }));
    await waitFor(() => limit() === 10, PATIENCE);
    expect([await ended, said.out]).toEqual([
      1,
      expect.stringContaining("cut short: EV-1 wants it, so control has it again"),
    ]);
    expect(limit()).toBe(10);
    expect(await record(site)).toContain("cut short: EV-1 wants it");
  });

  test.each(["SIGINT", "SIGKILL"] as const)(
    "%s to the verb leaves the charger as it was, at 13 A set by another controller",
    async (signal) => {
      const { site, limit, setByHand } = await aWarpSite();
      await setByHand(13_000);
      await using _ = await site.run();
      const { child, said, ended, tells } = commissioning(site);
      await tells("19 A");
      child.kill(signal);
      expect(await ended).toBe(signal === "SIGINT" ? 1 : null);
      if (signal === "SIGINT") expect(said.out).toContain("left with: 13 A");
      await waitFor(() => limit() === 13, PATIENCE);
      await waitFor(async () => (await record(site)).includes("cut short; left with: 13 A"), PATIENCE);
    },
  );

  test("a stop of the daemon leaves the charger as it was, and the verb reports the stop", async () => {
    const { site, limit } = await aWarpSite();
    await using daemon = await site.run();
    const { said, ended, tells } = commissioning(site);
    await tells("19 A");
    await daemon.end("SIGTERM");
    expect([await ended, said.out]).toEqual([1, expect.stringContaining("left with: release")]);
    await waitFor(() => limit() === 32, PATIENCE);
  });

  test("after a crash in the middle the next start frees it", async () => {
    const { site, limit } = await aWarpSite();
    await using daemon = await site.run();
    const { said, ended, tells } = commissioning(site);
    await tells("19 A");
    await waitFor(() => limit() === 19, PATIENCE);
    await daemon.end("SIGKILL");
    expect([await ended, said.err]).toEqual([
      1,
      expect.stringContaining("setpointd stopped during the trial"),
    ]);
    expect(limit()).toBe(19);
    await using _ = await site.run();
    await waitFor(() => limit() === 32, PATIENCE);
  });

  test("a bay without telemetry has followed nothing after a crash in the middle of its trial", async () => {
    await using site = await aSite({ over: SECTIONS });
    {
      await using daemon = await site.run();
      const { ended, said, tells } = commissioning(site);
      await tells("32 A");
      await waitFor(() => site.floor.on(`${PREFIX.prefix}/evse/external_current_update`).length > 0);
      await daemon.end("SIGKILL");
      expect([await ended, said.err]).toEqual([
        1,
        expect.stringContaining("setpointd stopped during the trial"),
      ]);
    }
    const from = site.floor.heard.length;
    await using daemon = await site.run();
    // The start frees it: it may stand under the last level of the trial.
    await waitFor(() => site.floor.heard.slice(from).some(({ topic }) => topic.startsWith(PREFIX.prefix)));
    const { chargers } = await daemon.view<{ chargers: { followed: number } }>("/api/v1/status");
    expect(chargers.followed).toBe(0);
    expect(await record(site)).not.toContain("followed");
  });

  test("the silence of a charger is tried, and refused where another depends on the same heartbeat", async () => {
    const { site } = await aWarpSite();
    const boxes = [0, 1].map((duo) => ({
      id: `box-${duo}`,
      profile: "openwb-secondary",
      params: { duo, parentIp: "10.0.0.5" },
      current: { min: 6, max: 32 },
    }));
    site.configure({ ...SECTIONS, chargers: [...SECTIONS.chargers, ...boxes] });
    await using _ = await site.run();
    const refused = await setpointd(["commission", "box-0", "--silence", "-c", site.config]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("box-1 is kept alive by the same message"),
    ]);
  });
});
