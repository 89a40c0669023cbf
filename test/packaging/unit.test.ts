import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

const UNITS = ["setpointd.service", "setpointd-ocpp.service", "setpointd-fleet.service"];
const pathOf = (name: string) => new URL(`../../systemd/${name}`, import.meta.url).pathname;
const unit = readFileSync(pathOf("setpointd.service"), "utf8");

const analyze = (name: string, ...args: readonly string[]) =>
  spawnSync("systemd-analyze", [...args, pathOf(name)], { encoding: "utf8" });

/** Not on macOS or in a bare container: there the text of the unit has to do. */
const canAnalyze = analyze("setpointd.service", "security", "--offline=true").status !== null;

const names = (directive: string) =>
  [...unit.matchAll(new RegExp(`^${directive}=([^:]+):`, "gm"))].map((match) => match[1]);

/** On 0 (none) to 10 (all); a unit without hardening is at 9.6. */
const WORST_EXPOSURE = 1.5;

test.skipIf(!canAnalyze).each(UNITS)("systemd finds %s little exposed: 1.5 or better", (name) => {
  const { stdout } = analyze(name, "security", "--offline=true");
  const score = Number(/Overall exposure level for \S+\.service: ([\d.]+)/.exec(stdout)?.[1]);
  expect(score).toBeLessThanOrEqual(WORST_EXPOSURE);
});

test.skipIf(!canAnalyze).each(UNITS)("systemd understands every line of %s", (name) => {
  const { stdout, stderr } = analyze(name, "verify");
  const complaints = `${stdout}${stderr}`.split("\n").filter((line) => line.includes(name));
  // The command is there once the package is.
  expect(complaints.filter((line) => !line.includes("/usr/bin/setpointd is not executable"))).toEqual([]);
});

test("a credential that the site does not use is no reason not to start: each has an empty stand-in", () => {
  expect(names("LoadCredential")).toEqual([
    "vtn-client-secret",
    "webhook-secret",
    "mqtt-password",
    "database-url",
    "site-keys",
  ]);
  expect(names("SetCredential")).toEqual(names("LoadCredential"));
});

test.each(UNITS)("systemctl reload makes %s read its certificates again", (name) => {
  expect(readFileSync(pathOf(name), "utf8")).toContain(`ExecReload=/bin/sh -c 'kill -HUP "$MAINPID"'\n`);
});

test("V8 compiles as it runs, so its memory may not be denied that", () => {
  expect(unit).not.toMatch(/^MemoryDenyWriteExecute=/m);
});

test.each(UNITS)("compiled code of %s is in a folder that only its user reads", (name) => {
  const text = readFileSync(pathOf(name), "utf8");
  const folder = name.replace(".service", "");
  expect(text).toContain(`CacheDirectory=${folder}\nCacheDirectoryMode=0700\n`);
  expect(text).toContain(`NODE_COMPILE_CACHE=%C/${folder}\n`);
});

test.each(UNITS)(
  "%s starts beside the group of the package: systemd makes no user with the name of a group",
  (name) => {
    const groups = readFileSync(new URL("../../packaging/debian/sysusers.conf", import.meta.url), "utf8");
    const user = /^User=(.+)$/m.exec(readFileSync(pathOf(name), "utf8"))?.[1] ?? name.replace(".service", "");
    expect([...groups.matchAll(/^g (\S+)/gm)].map((match) => match[1])).toEqual(["setpointd"]);
    expect(user).not.toBe("setpointd");
  },
);
