import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

import { aDayBefore, lastLog, versions } from "../../../src/cli/support/collect.ts";
import { instant } from "../../../src/domain/units.ts";

const NOW = instant(Date.parse("2026-11-21T12:00:00Z"));

test("the log of a file has the last day, with the lines that belong to it", () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-bundle-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "log");
  const line = (hours: number): string => `{"level":30,"time":${NOW - hours * 3_600_000},"msg":"${hours} h"}`;
  writeFileSync(file, [line(30), "old trace", line(23), "trace", line(1)].join("\n"));
  const { content } = lastLog(file, aDayBefore(NOW));
  expect(content).toBe([line(23), "trace", line(1)].join("\n"));
  expect(lastLog(join(directory, "none"), aDayBefore(NOW)).content).toMatchObject({
    missing: expect.stringContaining("ENOENT"),
  });
});

test("the journal is asked for the unit since yesterday, and its absence is named", () => {
  const asked: string[] = [];
  const journal = lastLog(undefined, aDayBefore(NOW), (name, args) => {
    asked.push([name, ...args].join(" "));
    return "a line\n";
  });
  expect(journal.content).toBe("a line\n");
  expect(asked[0]).toMatch(/^journalctl --unit=setpointd.service --since=@1795176000 /);
  expect(lastLog(undefined, NOW, () => null).content).toMatchObject({
    missing: expect.stringContaining("journalctl is not there"),
  });
  expect(lastLog(undefined, NOW, () => "").content).toMatchObject({
    missing: expect.stringContaining("has nothing of setpointd.service"),
  });
});

test("versions name the program, its runtime, its libraries and the package", () => {
  const { content } = versions(() => "setpointd 0.1.0 installed");
  const read = JSON.parse(typeof content === "string" ? content : "") as Record<string, unknown>;
  expect(read).toMatchObject({
    setpointd: expect.stringMatching(/^\d/),
    node: { node: process.versions.node },
    libraries: { mqtt: expect.stringMatching(/^5/) },
    package: "setpointd 0.1.0 installed",
  });
});
