import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { stateDirectory, statePath } from "../../../src/config/sections/state.ts";
import { configured, theMistake } from "../../support/aConfiguration.ts";

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

test("a key of the operator is 32 bytes in base64, and a wrong one is explained without its text", () => {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  try {
    const key = (text: string): { readonly file: string } => {
      const file = join(directory, `key-${text.length}`);
      writeFileSync(file, text, { mode: 0o600 });
      return { file };
    };
    writeFileSync(join(directory, "url"), "postgres://depot:a-long-password@10.0.0.5/setpointd", {
      mode: 0o600,
    });
    const withKeys = (...siteKeys: readonly object[]) => ({
      state: { postgres: { url: { file: join(directory, "url") }, siteKeys } },
    });
    const right = key(`${randomBytes(32).toString("base64")}\n`);
    const { database } = configured(withKeys(right));
    expect(database?.siteKeys?.().map(({ length }) => length)).toEqual([32]);
    expect(theMistake(withKeys(right, key("a password that a person thought of")))).toMatchObject({
      path: "state.postgres.siteKeys[1]",
      found: expect.stringMatching(/which is not 32 bytes in base64, as openssl rand -base64 32 makes them$/),
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

/** Section of a state in a database with this address. */
const withAddress = (text: string) => {
  const file = join(mkdtempSync(join(tmpdir(), "setpointd-")), "url");
  writeFileSync(file, text, { mode: 0o600 });
  onTestFinished(() => rmSync(dirname(file), { recursive: true }));
  return { state: { postgres: { url: { file } } } };
};

test("an address of a database that cannot be read is explained without its text", () => {
  expect(configured(withAddress("postgres://depot:a%2Fb@10.0.0.5/setpointd")).database).not.toBeNull();
  for (const text of [
    "postgres://depot@10.0.0.5,10.0.0.6/setpointd",
    "postgres://depot:a/b#c@10.0.0.5/setpointd",
  ])
    expect(theMistake(withAddress(text)).found).toMatch(
      /url, whose address has several hosts, or a character such as/,
    );
  expect(theMistake(withAddress("host=10.0.0.5 dbname=setpointd")).found).toMatch(
    /that begins with postgres:/,
  );
  expect(theMistake(withAddress("postgres://depot@10.0.0.5")).found).toMatch(
    /names no database after the host$/,
  );
});
