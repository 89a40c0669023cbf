import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exposedFile, exposedFolder, exposedSecret } from "../../../src/config/fields/secret.ts";

test("a file that others can read or change is named; a missing file exposes nothing", () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  const path = join(directory, "file");
  writeFileSync(path, "");
  const verdicts = (mode: number) => {
    chmodSync(path, mode);
    return [exposedSecret, exposedFile, exposedFolder].map(
      (of) => /can (\w+)/.exec(of(path) ?? "")?.[1] ?? null,
    );
  };
  try {
    expect(verdicts(0o600)).toEqual([null, null, null]);
    expect(verdicts(0o640)).toEqual([null, "read", null]);
    expect(verdicts(0o710)).toEqual([null, "read", null]);
    expect(verdicts(0o604)).toEqual(["read", "read", "read"]);
    expect(verdicts(0o620)).toEqual(["change", "change", "change"]);
    expect(exposedSecret(join(directory, "absent"))).toBeNull();
  } finally {
    rmSync(directory, { recursive: true });
  }
});
