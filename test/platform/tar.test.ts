import { execFileSync } from "node:child_process";

import { expect, test } from "vitest";

import { file, folder, tarGz } from "../../src/platform/tar.ts";

const SECONDS = 1_795_267_460;
const ENTRIES = [
  file("b/run", "#!/bin/sh\n", 0o755),
  file("a", Buffer.alloc(512)),
  folder("b/secrets", 0o700),
] as const;

const listed = (archive: Buffer): readonly string[] =>
  execFileSync("tar", ["-tvz", "--numeric-owner", "--full-time", "--utc"], {
    input: archive,
    encoding: "utf8",
  })
    .trim()
    .split("\n")
    .map((line) => line.replaceAll(/ +/g, " "));

test("tar reads every entry: sorted, root's, of the one moment, with its permissions", () => {
  expect(listed(tarGz(ENTRIES, SECONDS, "./"))).toEqual([
    "-rw-r--r-- 0/0 512 2026-11-21 13:24:20 ./a",
    "drwxr-xr-x 0/0 0 2026-11-21 13:24:20 ./b/",
    "-rwxr-xr-x 0/0 10 2026-11-21 13:24:20 ./b/run",
    "drwx------ 0/0 0 2026-11-21 13:24:20 ./b/secrets/",
  ]);
});

test("the same entries are the same bytes, whatever order they came in", () => {
  expect(tarGz(ENTRIES.toReversed(), SECONDS, "")).toEqual(tarGz(ENTRIES, SECONDS, ""));
});

test("a path that no ustar header holds is refused, not cut", () => {
  expect(() => tarGz([file("x".repeat(101), "")], SECONDS, "")).toThrow(/too long/);
});
