import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";

import { askDaemon } from "../../src/cli/daemonClient.ts";
import { Daemon } from "../support/aDaemon.ts";
import { aSite, anEvent, type Site, WEBHOOK_SECRET } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

const canMount = spawnSync("unshare", ["--mount", "true"]).status === 0;
const canLoop = canMount && spawnSync("mkfs.ext4", ["-V"]).status === 0;

/** A daemon whose state is on a disk of its own, which only it sees; `state` is the way in from here. */
async function onItsOwnDisk(site: Site, mount: string): Promise<{ daemon: Daemon; state: string }> {
  mkdirSync(site.state);
  const script = `${mount} ${site.state} && exec "$@"`;
  const within = ["unshare", "--mount", "sh", "-c", script, "sh"];
  const daemon = await Daemon.start(site.config, WEBHOOK_SECRET, {}, within);
  onTestFinished(() => daemon[Symbol.asyncDispose]());
  await waitFor(() => daemon.hasBroker(), { timeoutMs: 15_000 });
  return { daemon, state: `/proc/${daemon.pid}/root${site.state}` };
}

/** Takes all the room there is. */
function fill(path: string): void {
  const block = Buffer.alloc(64 * 1024, 1);
  for (const size of [block.length, 4096, 512, 1]) {
    try {
      for (;;) appendFileSync(path, block.subarray(0, size));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
    }
  }
}

/** Deliveries until one is refused: what fits into the room that is left is still taken. */
async function untilRefused(daemon: Daemon): Promise<number> {
  for (let n = 0; n < 200; n += 1) {
    const { status } = await daemon.deliver(anEvent(`EV-F${n}`, { startIn: 3600 * SECOND, lastsMs: SECOND }));
    if (status !== 202) return status;
  }
  return 202;
}

describe.skipIf(!mosquittoAvailable)("a disk that takes nothing more", () => {
  test("while it is full deliveries get 503, what runs goes on, and with room again everything works by itself (F05)", async (context) => {
    if (!canMount) return context.skip("a mount of its own needs root");
    await using site = await aSite({ over: { control: { refresh: "1s" } } });
    const { daemon, state } = await onItsOwnDisk(site, "mount -t tmpfs -o size=3m tmpfs");
    await daemon.deliver(site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND })));
    await site.floor.nth("bay-01", 1);

    fill(join(state, "ballast"));
    expect(await untilRefused(daemon)).toBe(503);
    const before = site.floor.sets("bay-01").length;
    await waitFor(() => site.floor.sets("bay-01").length >= before + 3, { timeoutMs: 15_000 });
    expect(new Set(site.floor.told("bay-01"))).toEqual(new Set(["16 A EV-1"]));
    expect((await daemon.get("/healthz")).status).toBe(200);
    const acknowledge = () =>
      fetch(`${daemon.operatorUrl}/api/v1/alarms/disk/acknowledge`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
    await waitFor(async () => (await acknowledge()).status === 503, { timeoutMs: 15_000 });
    expect((await acknowledge()).headers.get("content-type")).toMatch(/^application\/problem\+json/);

    rmSync(join(state, "ballast"));
    const more = anEvent("EV-2", { lastsMs: 60 * SECOND, vehicles: ["veh-2"] });
    await waitFor(async () => (await daemon.deliver(more)).status === 202, { timeoutMs: 15_000 });
    expect((await site.floor.nth("bay-02", 1)).set.event).toBe("EV-2");
    expect(await daemon.end("SIGTERM")).toBe(0);
  });

  test("chargers are released at the end of an event while it is full, healthz reports it, and the record catches up (F05)", async (context) => {
    if (!canMount) return context.skip("a mount of its own needs root");
    await using site = await aSite({ over: { control: { refresh: "1s" } } });
    const { daemon, state } = await onItsOwnDisk(site, "mount -t tmpfs -o size=3m tmpfs");
    await daemon.deliver(
      site.partner.put(anEvent("EV-1", { lastsMs: 12 * SECOND, amperes: 0, vehicles: ["veh-1"] })),
    );
    await daemon.deliver(site.partner.put(anEvent("EV-2", { lastsMs: 60 * SECOND, vehicles: ["veh-2"] })));
    await site.floor.nth("bay-01", 1);
    await site.floor.nth("bay-02", 1);
    expect((await daemon.get("/healthz")).text).toBe("controlling\n");

    fill(join(state, "ballast"));
    expect(await untilRefused(daemon)).toBe(503);
    expect((await daemon.get("/healthz")).text).toMatch(/^nothing new can be recorded .*full/);
    const answer = await askDaemon(state, "POST", "/release", { charger: "bay-02" });
    expect(answer).toMatchObject({
      body: { ok: true, words: expect.stringMatching(/^freed bay-02 .*; not on record yet/) },
    });
    await waitFor(() => site.floor.told("bay-02").at(-1) === "release EV-2");
    await waitFor(() => site.floor.told("bay-01").at(-1) === "release EV-1", { timeoutMs: 20_000 });
    const pauses = site.floor.told("bay-01").filter((told) => told.startsWith("pause"));
    await waitFor(() => site.floor.told("bay-01").filter((told) => told.startsWith("release")).length === 4);
    expect(site.floor.told("bay-01").filter((told) => told.startsWith("pause"))).toEqual(pauses);

    rmSync(join(state, "ballast"));
    const decided = async (event: string): Promise<number> =>
      (await daemon.view<{ kind: string; words: string }[]>(`/api/v1/audit?event=${event}`)).filter(
        ({ kind, words }) => kind === "decision" && words.includes("released"),
      ).length;
    await waitFor(async () => (await decided("EV-1")) === 1 && (await decided("EV-2")) === 1, {
      timeoutMs: 15_000,
    });
    await waitFor(async () => (await daemon.get("/healthz")).text === "controlling\n");
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect(site.floor.told("bay-02").at(-1)).toBe("release EV-2");
  });

  test("without a daemon an operator's release is sent on a full disk as well (F05)", async (context) => {
    if (!canMount) return context.skip("a mount of its own needs root");
    await using site = await aSite();
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await site.floor.nth("bay-01", 1);
    await daemon.end("SIGKILL");
    const { state } = site;
    const script = `cp -a ${state} ${state}.copy && mount -t tmpfs -o size=6m tmpfs ${state} && cp -a ${state}.copy/. ${state} &&
      dd if=/dev/zero of=${state}/ballast bs=64k status=none; dd if=/dev/zero of=${state}/crumbs bs=1 status=none; exec "$@"`;
    const within = ["unshare", "--mount", "sh", "-c", script, "sh"];
    const said = await setpointd(["release", "bay-01", "-c", site.config], { within });
    expect(said.stdout + said.stderr).toMatch(/^freed bay-01 .*; not on record: .*full/);
    expect(said.code).toBe(0);
    expect(site.floor.told("bay-01").at(-1)).toBe("release EV-1");
  });

  test("a start on a full disk releases at the end of the event, healthz reports it, and the record catches up (F05)", async (context) => {
    if (!canMount) return context.skip("a mount of its own needs root");
    await using site = await aSite({ over: { homeAssistant: { discovery: true } } });
    await using before = await site.run();
    await before.deliver(site.partner.put(anEvent("EV-1", { lastsMs: 25 * SECOND, vehicles: ["veh-1"] })));
    await before.deliver(site.partner.put(anEvent("EV-2", { lastsMs: 300 * SECOND, vehicles: ["veh-2"] })));
    await site.floor.nth("bay-01", 1);
    await site.floor.nth("bay-02", 1);
    await before.end("SIGKILL");
    const folder = site.state;
    const script = `cp -a ${folder} ${folder}.copy && mount -t tmpfs -o size=6m tmpfs ${folder} && cp -a ${folder}.copy/. ${folder} &&
      dd if=/dev/zero of=${folder}/ballast bs=64k status=none; dd if=/dev/zero of=${folder}/crumbs bs=1 status=none; exec "$@"`;
    await using daemon = await Daemon.start(site.config, WEBHOOK_SECRET, {}, [
      "unshare",
      "--mount",
      "sh",
      "-c",
      script,
      "sh",
    ]);
    const state = `/proc/${daemon.pid}/root${folder}`;
    const refused = anEvent("EV-3", { lastsMs: SECOND });
    await waitFor(async () => (await daemon.deliver(refused)).status === 503, { timeoutMs: 15_000 });
    await waitFor(() => site.floor.told("bay-01").at(-1) === "release EV-1", { timeoutMs: 40_000 });
    expect((await daemon.get("/healthz")).text).toMatch(/^nothing new can be recorded .*full/);
    expect(site.floor.told("bay-02").at(-1)).toBe("16 A EV-2");

    rmSync(join(state, "ballast"));
    const more = anEvent("EV-4", { lastsMs: 60 * SECOND, vehicles: ["veh-1"] });
    await waitFor(async () => (await daemon.deliver(more)).status === 202, { timeoutMs: 15_000 });
    await waitFor(() => site.floor.told("bay-01").at(-1) === "16 A EV-4", { timeoutMs: 15_000 });
    const rows = await daemon.view<{ words: string }[]>("/api/v1/audit?event=EV-1");
    expect(rows.filter(({ words }) => words.includes("released"))).toHaveLength(1);
    expect(await daemon.view("/api/v1/audit/check")).toMatchObject({ ok: true });
    expect(await daemon.end("SIGTERM")).toBe(0);
  });

  test("the room reserved for the record keeps it going when the disk fills up, and readings wait until there is room (F05)", async (context) => {
    if (!canMount) return context.skip("a mount of its own needs root");
    await using site = await aSite();
    const { daemon, state } = await onItsOwnDisk(site, "mount -t tmpfs -o size=32m tmpfs");
    const reserve = join(state, "reserve");
    const says = (powerW: number): Promise<void> =>
      site.floor.publish(
        "setpointd/depot/chargers/bay-01/telemetry",
        JSON.stringify({ at: new Date().toISOString(), state: "charging", powerW }),
      );
    await says(1_000);
    await waitFor(() => existsSync(reserve), { timeoutMs: 20_000 });

    fill(join(state, "filler"));
    const note = "x".repeat(20_000);
    for (let n = 0; n < 20; n += 1) {
      const event = anEvent(`EV-${n}`, { lastsMs: 60 * SECOND, name: note, vehicles: ["veh-1"] });
      expect((await daemon.deliver(event)).status).toBe(202);
    }
    await waitFor(() => daemon.line("the disk is full: its reserve is given to the record"));
    expect(existsSync(reserve)).toBe(false);
    await says(9_000);
    await waitFor(() => daemon.line("readings cannot be stored"), { timeoutMs: 20_000 });
    expect((await daemon.deliver(anEvent("EV-LAST", { lastsMs: 60 * SECOND }))).status).toBe(202);
    await site.floor.nth("bay-01", 1);

    rmSync(join(state, "filler"));
    await waitFor(() => existsSync(reserve), { timeoutMs: 20_000 });
    expect(await daemon.end("SIGTERM")).toBe(0);
  });

  test("when it turns read-only deliveries get 503, standing commands keep their leases, and the watchdog does not restart it (F06)", async (context) => {
    if (!canLoop) return context.skip("a loop device of its own needs root and mkfs.ext4");
    await using site = await aSite({ over: { control: { refresh: "1s" } } });
    const image = join(site.directory, "disk.img");
    writeFileSync(image, "");
    const made = spawnSync("sh", ["-c", `truncate -s 32M ${image} && mkfs.ext4 -q -F ${image}`]);
    if (made.status !== 0) return context.skip(`no file system: ${made.stderr.toString()}`);
    const { daemon } = await onItsOwnDisk(site, `mount -o loop,errors=remount-ro ${image}`);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await site.floor.nth("bay-01", 1);

    const loop = spawnSync("losetup", ["-j", image, "-n", "-O", "NAME"]).stdout.toString().trim();
    writeFileSync(`/sys/fs/ext4/${loop.replace("/dev/", "")}/trigger_fs_error`, "1");
    expect(await untilRefused(daemon)).toBe(503);
    const before = site.floor.sets("bay-01").length;
    await waitFor(() => site.floor.sets("bay-01").length >= before + 3, { timeoutMs: 15_000 });
    expect(new Set(site.floor.told("bay-01"))).toEqual(new Set(["16 A EV-1"]));
    expect((await daemon.get("/healthz")).status).toBe(200);
    await daemon.end("SIGKILL");
  });
});
