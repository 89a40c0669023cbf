import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";

import { stringify } from "yaml";

import { least } from "../support/aConfiguration.ts";
import { setpointd } from "../support/setpointd.ts";
import { opened } from "../store/sqlite/state.ts";
import { row } from "../store/sqlite/words.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** A user that is nobody's. */
const DAEMON = 65_534;
const isRoot = process.getuid?.() === 0;

const verb = (config: string, ...args: readonly string[]) => setpointd([...args, "-c", config]);

/** Each test runs several processes. */
const PATIENCE = { timeout: 300_000 };
/** A container may not be allowed this; then verbs refuse links by name. */
const canMount = isRoot && spawnSync("unshare", ["--mount", "true"]).status === 0;

/**
 * A stopped daemon's state. `reach`: of the folder with state and configuration. `folder`: of the state in that one;
 * "private" may be entered by root only, as /var/lib/private.
 */
async function aState(reach: 0o755 | 0o700, folder: "." | "private" = ".") {
  const directory = mkdtempSync(join(tmpdir(), "owner-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  chmodSync(directory, reach);
  if (folder === "private") mkdirSync(join(directory, folder), { mode: 0o700 });
  const state = join(directory, folder, "state");
  const { store } = opened(state);
  store.write([row("a row")]);
  await store.durable();
  store[Symbol.dispose]();
  for (const name of readdirSync(state)) chownSync(join(state, name), DAEMON, DAEMON);
  chownSync(state, DAEMON, DAEMON);
  const roots = join(directory, "roots");
  mkdirSync(roots, { mode: 0o700 });
  const secret = join(roots, "shadow");
  writeFileSync(secret, "root:x:", { mode: 0o600 });
  const config = join(directory, "site.yaml");
  const vtn = {
    baseUrl: "https://api.partner.example",
    tokenUrl: "https://id.partner.example/connect/token",
    clientId: "depot",
    clientSecret: { file: "secret" },
  };
  writeFileSync(config, stringify({ ...least, vtn, state }));
  writeFileSync(join(directory, "secret"), "of-the-tests-0123456789", { mode: 0o600 });
  const isUntouched = (): boolean =>
    readFileSync(secret, "utf8") === "root:x:" &&
    statSync(secret).uid === 0 &&
    readdirSync(roots).length === 1;
  return { directory, state, secret, roots, config, isUntouched };
}

// Only root can give a folder to somebody else, and become that one.
describe.skipIf(!isRoot)("verbs that root runs on the daemon's state", PATIENCE, () => {
  test.for(["head", "epoch", "reserve", "proof.key", "lock"])(
    "%s as a link to a file of root's is neither written, read nor given away",
    async (name) => {
      const { config, state, secret, isUntouched } = await aState(0o755);
      rmSync(join(state, name), { force: true });
      symlinkSync(secret, join(state, name));
      const { stderr } = await setpointd(["audit", "-c", config]);
      expect(isUntouched(), stderr).toBe(true);
    },
  );

  test("leave files in the folder to the daemon's user", async () => {
    const { config, state } = await aState(0o755);
    const { code, stdout } = await setpointd(["audit", "-c", config]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("a row")]);
    expect(readdirSync(state).filter((name) => statSync(join(state, name)).uid !== DAEMON)).toEqual([]);
  });

  test("work where only root can reach the program, and refuse links in the folder by name", async () => {
    const { config, state, secret, directory, isUntouched } = await aState(0o755);
    const program = join(directory, "program");
    mkdirSync(program, { mode: 0o700 });
    for (const part of ["src", "config", "package.json"])
      cpSync(join(root, part), join(program, part), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(program, "node_modules"));
    const audit = () =>
      spawnSync(process.execPath, [join(program, "src/main.ts"), "audit", "-c", config], {
        encoding: "utf8",
      });
    const { status, stdout, stderr } = audit();
    expect([status, stdout, stderr]).toEqual([0, expect.stringContaining("a row"), ""]);
    rmSync(join(state, "head"));
    symlinkSync(secret, join(state, "head"));
    expect(audit().stderr).toContain("head is a link");
    expect(isUntouched()).toBe(true);
  });

  test("work where only root can reach the folder, and refuse links in it by name", async () => {
    const { config, state, secret, isUntouched } = await aState(0o700);
    expect((await setpointd(["audit", "-c", config])).code).toBe(0);
    for (const link of [symlinkSync, linkSync]) {
      rmSync(join(state, "head"));
      link(secret, join(state, "head"));
      const { code, stderr } = await setpointd(["audit", "-c", config]);
      expect([code, stderr]).toEqual([2, expect.stringContaining("head is a link")]);
      expect(isUntouched()).toBe(true);
    }
    const backup = await setpointd(["backup", join(state, "..", "copy.db"), "-c", config]);
    expect([backup.code, backup.stderr]).toEqual([1, expect.stringContaining("head is a link")]);
  });
});

// Without a mount namespace the folder cannot be entered by anybody but root.
describe.skipIf(!canMount)(
  "verbs that root runs on a state that only root can reach, as with DynamicUser=",
  PATIENCE,
  () => {
    test("they have the rights of its owner only, whose user has no name", async () => {
      const { config, state } = await aState(0o755, "private");
      const { code, stdout, stderr } = await verb(config, "audit");
      expect([code, stdout, stderr]).toEqual([0, expect.stringContaining("a row"), ""]);
      expect(readdirSync(state).filter((name) => statSync(join(state, name)).uid !== DAEMON)).toEqual([]);
      // Readable by root, and not by the owner of the folder.
      chownSync(join(state, "site.key"), 0, 0);
      const denied = await verb(config, "audit");
      expect([denied.code, denied.stderr]).toEqual([1, expect.stringMatching(/EACCES.*site\.key/)]);
    });

    test.for(["head", "epoch", "reserve", "proof.key", "site.key", "setpointd.db", "lock"])(
      "%s as a link to a file of root's is neither written, read nor given away",
      async (name) => {
        const { config, state, secret, isUntouched } = await aState(0o755, "private");
        rmSync(join(state, name), { force: true });
        symlinkSync(secret, join(state, name));
        const { stderr } = await verb(config, "audit");
        expect(isUntouched(), stderr).toBe(true);
        expect(stderr).not.toContain("root:x:");
      },
    );

    test("a user who is added before the first start is one of the service, which owns the state from the beginning", async () => {
      const { directory } = await aState(0o755, "private");
      const service = join(directory, "private", "service");
      mkdirSync(service, { mode: 0o700 });
      chownSync(service, DAEMON, DAEMON);
      // As /var/lib/setpointd leads to /var/lib/private/setpointd.
      symlinkSync("private/service", join(directory, "service"));
      const config = join(directory, "new.yaml");
      writeFileSync(config, stringify({ ...least, state: join(directory, "service/state") }));
      const added = await setpointd(["user", "add", "anna", "--role", "viewer", "-c", config], {
        input: "a long password\n",
        env: { SECRET: "a secret of the tests" },
      });
      expect(added).toMatchObject({ code: 0, stdout: "anna may sign in as viewer\n" });
      const state = join(service, "state");
      expect([state, join(state, "access.json")].map((path) => statSync(path).uid)).toEqual([DAEMON, DAEMON]);
    });

    test("can still read standard input", async () => {
      const { config } = await aState(0o755, "private");
      const planned = await setpointd(["plan", "--events", "-", "-c", config], { input: "[]" });
      expect(planned).toMatchObject({ code: 0, stdout: expect.stringContaining("no charger"), stderr: "" });
      const verified = await setpointd(["proof", "verify", "-", "-c", config], { input: "{}" });
      expect([verified.code, verified.stderr]).toEqual([1, expect.stringContaining("-, line 1")]);
    });

    test("nothing stays mounted", async () => {
      const { config, directory } = await aState(0o755, "private");
      await verb(config, "check");
      expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(directory);
    });
  },
);

test.skipIf(isRoot)("without root this cannot be tried: no rights are given up", () => {
  expect(process.getuid?.()).not.toBe(0);
});
