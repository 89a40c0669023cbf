import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

import { runProgram, shortOfSpace, tryDisk, tryTimeService } from "../../../src/cli/live/machine.ts";
import { type Finding, Trials } from "../../../src/cli/live/trials.ts";
import type { Config } from "../../../src/config/schema.ts";

function findings(run: (trials: Trials) => void): readonly Finding[] {
  const all: Finding[] = [];
  run(new Trials((finding) => all.push(finding)));
  return all;
}

const timeService = (shown: string | null): readonly Finding[] =>
  findings((trials) => tryTimeService(() => shown, trials));

test("a clock that no time server sets is wrong, and the remedy depends on the service", () => {
  expect(timeService("NTP=yes\nNTPSynchronized=yes\n")).toMatchObject([{ area: "clock", result: "ok" }]);
  expect(timeService("NTP=no\nNTPSynchronized=no\n")).toMatchObject([
    { result: "wrong", remedy: expect.stringContaining("timedatectl set-ntp true") },
  ]);
  expect(timeService("NTP=yes\nNTPSynchronized=no\n")).toMatchObject([
    { result: "wrong", remedy: expect.stringContaining("UDP port 123") },
  ]);
  expect(timeService(null)).toMatchObject([{ result: "skipped" }]);
});

test("a program that is not there, or fails, has no output", () => {
  expect(runProgram("setpointd-is-no-program", [])).toBeNull();
  expect(runProgram("false", [])).toBeNull();
  expect(runProgram("echo", ["a"])).toBe("a\n");
});

const retentionOf = (bytes: number) => ({ bytes }) as unknown as Config["retention"];

/** `bytes`: of retention. `database` null: the state is in the folder. */
function disk(
  state: string,
  bytes: number,
  denied: string | null = null,
  database: Config["database"] = null,
): readonly Finding[] {
  const config = { state, retention: retentionOf(bytes), database } as unknown as Config;
  return findings((trials) => tryDisk(config, denied, trials));
}

test("a disk that the kernel has mounted read-only is not taken for a folder of another user", () => {
  const [readOnly] = disk("/state", 1, "EROFS: read-only file system, access '/state'");
  expect(readOnly).toMatchObject({ result: "wrong", remedy: expect.stringContaining("mounted for writing") });
  const [denied] = disk("/state", 1, "EACCES: permission denied, access '/state'");
  expect(denied).toMatchObject({ result: "wrong", remedy: expect.stringContaining("mode 0700") });
});

test("the disk must have space for what the retention lets the state keep", () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-doctor-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const state = join(directory, "state");
  expect(disk(state, 100e6)).toMatchObject([
    { result: "ok", found: expect.stringContaining("is made at the first start") },
    { result: "ok", name: "disk space" },
  ]);
  mkdirSync(state);
  writeFileSync(join(state, "setpointd.db"), Buffer.alloc(2_000_000));
  const [there, space] = disk(state, 1e18);
  expect(there).toMatchObject({ result: "ok", found: `${state} is there and can be written` });
  expect(space).toMatchObject({ result: "wrong", found: expect.stringContaining("the state has 2 MB") });
  expect(space?.remedy).toMatch(/retention.bytes of at most \d/);
  expect(shortOfSpace({ state, retention: retentionOf(1e18), database: null })).toMatch(
    /are free on the disk of .*state, and the state has 2 MB and may grow to \d+.* GB \(retention.bytes\)/,
  );
  expect(shortOfSpace({ state, retention: retentionOf(100e6), database: null })).toBeNull();
  // What the retention keeps is then on the disk of the database.
  const database = {} as NonNullable<Config["database"]>;
  expect(shortOfSpace({ state, retention: retentionOf(1e18), database })).toBeNull();
  expect(disk(state, 1e18, null, database)[1]).toMatchObject({
    result: "ok",
    found: expect.stringContaining("the state is in the database"),
  });
  expect(disk(state, 100e6, "no right")).toMatchObject([{ result: "wrong", found: "no right" }]);
});
