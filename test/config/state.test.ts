import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stateDirectory, statePath } from "../../src/config/state.ts";
import { theMistake } from "../support/aConfiguration.ts";

test("the state is in systemd's state directory, else beside the configuration, else where it says", () => {
  expect(statePath("./state", { env: {}, directory: "/etc/setpointd" })).toBe("/etc/setpointd/state");
  const env = { STATE_DIRECTORY: "/var/lib/setpointd:/var/lib/other" };
  expect(statePath("./state", { env, directory: "/etc" })).toBe("/var/lib/setpointd/state");
  expect(statePath("/srv/state", { env, directory: "/etc" })).toBe("/srv/state");
});

test("a state that is a file, or below one, is explained; one that is not there yet is made later", () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  try {
    writeFileSync(join(directory, "taken"), "");
    const taken = theMistake({ state: join(directory, "taken") });
    expect(taken).toMatchObject({ path: "state", found: `${directory}/taken, which is not a directory` });
    expect(taken.expected).toContain("a directory of its own");
    expect(theMistake({ state: join(directory, "taken/state") }).found).toContain("a file stands in the way");
    const reports: unknown[] = [];
    stateDirectory("new/state", { env: {}, directory }, (finding) => reports.push(finding));
    stateDirectory(".", { env: {}, directory }, (finding) => reports.push(finding));
    expect(reports).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
