import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stateDirectory, statePath } from "../../../src/config/sections/state.ts";
import { theMistake } from "../../support/aConfiguration.ts";

test("the state is in systemd's state directory, otherwise beside the configuration, unless its path is absolute", () => {
  expect(statePath("./state", { env: {}, directory: "/etc/setpointd" })).toBe("/etc/setpointd/state");
  const env = { STATE_DIRECTORY: "/var/lib/setpointd:/var/lib/other" };
  expect(statePath("./state", { env, directory: "/etc" })).toBe("/var/lib/setpointd/state");
  expect(statePath("/srv/state", { env, directory: "/etc" })).toBe("/srv/state");
});

test("a state that is a file, or below one, is explained; a missing one is created later", () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  try {
    writeFileSync(join(directory, "taken"), "");
    const taken = theMistake({ state: join(directory, "taken") });
    expect(taken).toMatchObject({ path: "state", found: `${directory}/taken, which is not a directory` });
    expect(taken.expected).toContain("a directory of its own");
    expect(theMistake({ state: join(directory, "taken/state") }).found).toContain("a file stands in the way");
    const reports: unknown[] = [];
    const doubts: unknown[] = [];
    stateDirectory(
      "new/state",
      { env: {}, directory },
      (finding) => reports.push(finding),
      (finding) => doubts.push(finding),
    );
    stateDirectory(
      ".",
      { env: {}, directory },
      (finding) => reports.push(finding),
      (finding) => doubts.push(finding),
    );
    expect(reports).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a state, key or record that others can read is warned about", () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  const doubts = (): readonly string[] => {
    const found: string[] = [];
    stateDirectory(
      "state",
      { env: {}, directory },
      () => undefined,
      (finding) => found.push(finding.found.replace(`${directory}/`, "")),
    );
    return found;
  };
  try {
    const state = join(directory, "state");
    mkdirSync(state, { mode: 0o700 });
    for (const name of ["site.key", "setpointd.db"]) writeFileSync(join(state, name), "", { mode: 0o600 });
    expect(doubts()).toEqual([]);
    chmodSync(state, 0o750);
    expect(doubts()).toEqual([]);
    chmodSync(state, 0o755);
    chmodSync(join(state, "site.key"), 0o640);
    chmodSync(join(state, "setpointd.db"), 0o644);
    expect(doubts()).toEqual([
      "state, which others can read (mode 0755)",
      "state/site.key, which others can read (mode 0640)",
      "state/setpointd.db, which others can read (mode 0644)",
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
