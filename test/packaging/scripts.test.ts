import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

const UNITS = ["setpointd", "setpointd-ocpp", "setpointd-fleet"];

/** A maintainer script on a machine below a folder, whose systemctl does as `systemctl` says. */
function aMachine(systemctl = "exit 0") {
  const root = mkdtempSync(join(tmpdir(), "setpointd-scripts-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const folder of ["bin", "run/systemd/system", "etc/setpointd"])
    mkdirSync(join(root, folder), { recursive: true });
  const tool = (name: string, text: string) =>
    writeFileSync(join(root, "bin", name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  tool("systemctl", systemctl);
  tool("systemd-sysusers", "exit 0");
  const run = (script: string, ...args: readonly string[]) => {
    const text = readFileSync(new URL(`../../packaging/debian/${script}`, import.meta.url), "utf8");
    const moved = text.replaceAll(/\/(?=(run|etc|var)\/)/g, `${root}/`);
    const env = { PATH: `${join(root, "bin")}:/usr/bin:/bin` };
    return spawnSync("sh", ["-c", moved, script, ...args], { encoding: "utf8", env });
  };
  return { root, run };
}

test("an upgrade to a program that does not start ends, and says where to look", () => {
  const { run } = aMachine('[ "$1" != try-restart ]');
  const { status, stderr } = run("postinst", "configure", "0.1.0");
  expect([status, stderr]).toEqual([0, expect.stringContaining("systemctl status 'setpointd*'")]);
  expect(run("postinst", "configure", "").stderr).toBe("");
  expect(aMachine().run("postinst", "configure", "0.1.0").stderr).toBe("");
});

test("a purge takes the state of every service, and a removal that of none", () => {
  const { root, run } = aMachine();
  const folders = [
    "etc/setpointd",
    ...UNITS.flatMap((name) =>
      ["var/lib/", "var/lib/private/", "var/cache/", "var/cache/private/"].map((parent) => parent + name),
    ),
  ].map((folder) => join(root, folder));
  for (const folder of folders) mkdirSync(folder, { recursive: true });
  expect(run("postrm", "remove").status).toBe(0);
  expect(folders.every((folder) => existsSync(folder))).toBe(true);
  expect(run("postrm", "purge").status).toBe(0);
  expect(folders.filter((folder) => existsSync(folder))).toEqual([]);
});
