import { readdirSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import type { Daemon } from "../support/aDaemon.ts";
import { anEvent, aSite } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
/** Far less than a unit or a shell has, and more than all listeners together may hold. */
const DESCRIPTORS = 640;

const sit = (count: number, open: () => Socket): readonly Socket[] =>
  Array.from({ length: count }, () => open().on("error", () => undefined));

const portOf = (url: string): number => Number(new URL(url).port);

const operatorPort = (daemon: Daemon): number => Number(daemon.line("setpointd is up")?.["operator"]);

describe.skipIf(!mosquittoAvailable || process.platform !== "linux")("a daemon among hostile clients", () => {
  test("connections to every listener leave file descriptors for the partner", async () => {
    await using site = await aSite({ pollEvery: "1s" });
    await using daemon = await site.run({}, ["prlimit", `--nofile=${DESCRIPTORS}`]);
    const idle = [
      ...sit(400, () => connect(portOf(daemon.webhookUrl), "127.0.0.1")),
      ...sit(800, () => connect(operatorPort(daemon), "127.0.0.1")),
      ...sit(200, () => connect(join(site.state, "control.sock"))),
    ];
    const before = site.partner.faults.requests.list;
    await waitFor(() => site.partner.faults.requests.list > before + 2, { timeoutMs: 20_000 });
    expect((await daemon.deliver(anEvent("EV-1", { lastsMs: MINUTE }))).status).toBe(202);
    expect((await daemon.view<{ partner: { ok: boolean } }>("/api/v1/status")).partner.ok).toBe(true);
    expect((await setpointd(["reports", "-c", site.config])).code).toBe(0);
    for (const socket of idle) socket.destroy();
  });

  test("only the daemon's own user reads its files, whatever the umask is", async () => {
    await using site = await aSite();
    await using daemon = await site.run({}, ["sh", "-c", 'umask 000; exec "$@"', "sh"]);
    await daemon.deliver(anEvent("EV-1", { lastsMs: MINUTE }));
    const names = readdirSync(site.state, { recursive: true, encoding: "utf8" });
    expect(names).toContain("setpointd.db");
    const open = names.filter((name) => {
      const status = statSync(join(site.state, name));
      return status.isFile() && (status.mode & 0o077) !== 0;
    });
    expect(open).toEqual([]);
  });

  test("an event's name with escape sequences shows them in no output", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const name = "storm\u001b]0;owned\u0007\u009b2J\u202e\nsecond line";
    const event = { ...anEvent("EV-1", { lastsMs: MINUTE }), name };
    expect((await daemon.deliver(event)).status).toBe(202);
    await site.floor.nth("bay-01", 1);
    const { stdout } = await setpointd(["audit", "-c", site.config]);
    const unsafe = /(?!\n)[\p{Cc}\p{Cf}]/u;
    expect(stdout).toContain("EV-1");
    expect(stdout).not.toMatch(unsafe);
    expect(stdout).not.toMatch(/^second line/m);
    await waitFor(() => daemon.output.includes("EV-1"));
    expect(daemon.output).not.toMatch(unsafe);
  });
});
