import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

const UNIT = new URL("../../systemd/setpointd.service", import.meta.url).pathname;
const unit = readFileSync(UNIT, "utf8");

const analyze = (...args: readonly string[]) =>
  spawnSync("systemd-analyze", [...args, UNIT], { encoding: "utf8" });

/** Not on macOS or in a bare container: there the text of the unit has to do. */
const canAnalyze = analyze("security", "--offline=true").status !== null;

const names = (directive: string) =>
  [...unit.matchAll(new RegExp(`^${directive}=([^:]+):`, "gm"))].map((match) => match[1]);

/** On 0 (none) to 10 (all); a unit without hardening is at 9.6. */
const WORST_EXPOSURE = 1.5;

test.skipIf(!canAnalyze)("systemd finds the service little exposed: 1.5 or better", () => {
  const { stdout } = analyze("security", "--offline=true");
  const score = Number(/Overall exposure level for setpointd.service: ([\d.]+)/.exec(stdout)?.[1]);
  expect(score).toBeLessThanOrEqual(WORST_EXPOSURE);
});

test.skipIf(!canAnalyze)("systemd understands every line of the unit", () => {
  const { stdout, stderr } = analyze("verify");
  const complaints = `${stdout}${stderr}`.split("\n").filter((line) => line.includes("setpointd.service"));
  // The command is there once the package is.
  expect(complaints.filter((line) => !line.includes("/usr/bin/setpointd is not executable"))).toEqual([]);
});

test("a credential that the site does not use is no reason not to start: each has an empty stand-in", () => {
  expect(names("LoadCredential")).toEqual(["vtn-client-secret", "webhook-secret", "mqtt-password"]);
  expect(names("SetCredential")).toEqual(names("LoadCredential"));
});

test("V8 compiles as it runs, so its memory may not be denied that", () => {
  expect(unit).not.toMatch(/^MemoryDenyWriteExecute=/m);
});
