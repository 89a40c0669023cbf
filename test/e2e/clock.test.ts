import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";

import type { Daemon } from "../support/aDaemon.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const YEAR = 365 * 24 * 3600 * SECOND;

/** Where Debian's packages put it; without it a process cannot be told another time. */
const LIBRARY = ["x86_64", "aarch64"]
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));
const NEEDED = "libfaketime is not installed (apt-get install faketime)";

/** The wall clock is off by so much, the monotonic one is left alone. */
const clockOff = (ms: number): Readonly<Record<string, string>> => ({
  LD_PRELOAD: LIBRARY ?? "",
  FAKETIME: `${ms < 0 ? "-" : "+"}${Math.abs(Math.round(ms / SECOND))}`,
  DONT_FAKE_MONOTONIC: "1",
});

const recorded = async (daemon: Daemon, event: string, kind: string): Promise<boolean> =>
  (await daemon.view<{ kind: string }[]>(`/api/v1/audit?event=${event}`)).some((row) => row.kind === kind);

describe.skipIf(!mosquittoAvailable)("a wrong clock", () => {
  test("started 50 years behind its record it keeps what runs, ends it on time, and starts nothing new (F21, F22, S2)", async (context) => {
    if (LIBRARY === undefined) return context.skip(NEEDED);
    await using site = await aSite({ over: { control: { refresh: "1s" } } });
    const { floor, partner } = site;
    await using before = await site.run();
    const running = partner.put(anEvent("EV-1", { lastsMs: 20 * SECOND }));
    await before.deliver(running);
    const told = await floor.nth("bay-01", 1);
    await before.end("SIGKILL");

    await using daemon = await site.run(clockOff(-50 * YEAR));
    expect(daemon.line("behind our last record")?.level).toBe(50);
    await daemon.deliver(anEvent("EV-2", { lastsMs: 60 * SECOND, vehicles: ["veh-2"] }));
    const again = floor.sets("bay-01").at(-1);
    expect(again?.set.id).toBe(told.set.id);
    const release = await waitFor(() => floor.sets("bay-01").find(({ set }) => set.kind === "release"), {
      timeoutMs: 40 * SECOND,
    });
    expect(release.at).toBeGreaterThanOrEqual(Date.parse(running.intervalPeriod.start) + 20 * SECOND);
    expect(floor.told("bay-02")).toEqual([]);
  });

  test("started ten years ahead it records what it missed, fires nothing late and prunes nothing (F20)", async (context) => {
    if (LIBRARY === undefined) return context.skip(NEEDED);
    await using site = await aSite();
    await using before = await site.run();
    await before.deliver(site.partner.put(anEvent("EV-1", { startIn: 60 * SECOND, lastsMs: 60 * SECOND })));
    await before.end("SIGKILL");
    await using daemon = await site.run(clockOff(10 * YEAR));
    await waitFor(() => recorded(daemon, "EV-1", "missed"), { timeoutMs: 15 * SECOND });
    expect(site.floor.told("bay-01")).toEqual([]);
    expect(await recorded(daemon, "EV-1", "event")).toBe(true);
  });

  test("without a record, at 1970, what starts in our days waits, and the daemon is up all the same (F22)", async (context) => {
    if (LIBRARY === undefined) return context.skip(NEEDED);
    await using site = await aSite();
    await using daemon = await site.run(clockOff(-Date.now() + 100 * SECOND));
    await daemon.deliver(site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND })));
    expect((await daemon.get("/readyz")).status).toBe(200);
    expect(await recorded(daemon, "EV-1", "event")).toBe(true);
    expect(site.floor.told("bay-01")).toEqual([]);
  });
});
