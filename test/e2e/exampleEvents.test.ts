import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

import { setpointd } from "../support/setpointd.ts";

const shown = (path: string): string => fileURLToPath(new URL(`../../config/${path}`, import.meta.url));

test("plan shows the example's events on the example's depot, before there is any secret", async () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  try {
    const config = join(directory, "config.yaml");
    cpSync(shown("example.yaml"), config);
    const args = ["-c", config, "--events", shown("example-events.json"), "--at", "2026-11-21T12:00:00Z"];
    const { code, stdout, stderr } = await setpointd(["plan", ...args]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.trim().split("\n")).toEqual([
      "times in Europe/Oslo",
      expect.stringMatching(
        /^13:00:00 {2}\d\d:\d\d:\d\d {2}bay-01 \(Bus 214\) to 16 A .*EXAMPLE-1 priority 5$/,
      ),
      expect.stringMatching(/to 7\.4 kW .*EXAMPLE-2 priority 1, offset .* of 600 s; overrules EXAMPLE-1$/),
      expect.stringMatching(/ {2}14:00:00 {2}.*to 16 A .*EXAMPLE-1 priority 5$/),
      expect.stringMatching(/^2031-01-15 17:00:00 .*paused until .*EXAMPLE-3 priority 3; 0 A asked: pause$/),
    ]);
    // Any other verb still needs its secrets.
    const checked = await setpointd(["check", "-c", config]);
    expect([checked.code, checked.stderr]).toEqual([
      2,
      expect.stringContaining("webhook-secret, which does not exist"),
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
