import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { deb } from "../../packaging/deb.ts";
import { file } from "../../src/platform/tar.ts";

const OPTIONS = {
  version: "1.2.3",
  architecture: "amd64",
  seconds: 1_795_267_460,
  entries: [file("usr/bin/setpointd", "#!/bin/sh\n", 0o755)],
  scripts: { postinst: "#!/bin/sh\n" },
};

const dpkg = (...args: readonly string[]): string => execFileSync("dpkg-deb", args, { encoding: "utf8" });

const hasDpkg = spawnSync("dpkg-deb", ["--version"]).status === 0;

test("the same input is the same package, byte for byte", () => {
  expect(deb(OPTIONS)).toEqual(deb(OPTIONS));
});

test.skipIf(!hasDpkg)("dpkg reads what it has to know, the scripts and the files", () => {
  const directory = mkdtempSync(join(tmpdir(), "deb-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "setpointd.deb");
  writeFileSync(path, deb(OPTIONS));
  expect(dpkg("--field", path, "Package", "Version", "Architecture").trim().split("\n")).toEqual([
    "Package: setpointd",
    "Version: 1.2.3",
    "Architecture: amd64",
  ]);
  expect(dpkg("--info", path, "postinst")).toBe("#!/bin/sh\n");
  expect(dpkg("--contents", path)).toMatch(/-rwxr-xr-x root\/root +10 .* \.\/usr\/bin\/setpointd/);
});
