import { createHash, createHmac, randomBytes } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";

const SECOND = 1000;
const HOUR = 3600 * SECOND;

const printOf = (key: Buffer): string => createHash("sha256").update(key).digest("hex").slice(0, 8);

/** A credentials directory as systemd makes one for the unit, and what is in it by name. */
function credentials(site: Site, keys: Readonly<Record<string, Buffer>>) {
  const directory = join(site.directory, "credentials");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  for (const secret of ["client-secret", "webhook-secret"])
    copyFileSync(join(site.directory, secret), join(directory, secret));
  for (const [name, key] of Object.entries(keys)) writeFileSync(join(directory, name), key, { mode: 0o400 });
  return { CREDENTIALS_DIRECTORY: directory };
}

const verb = (site: Site, env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
  setpointd([...args, "-c", site.config], { env });

const keysIn = (site: Site): readonly string[] =>
  readdirSync(site.state).filter((name) => name.endsWith(".key"));

/** Each test runs several processes. */
const PATIENCE_MS = 300_000;

describe.skipIf(!mosquittoAvailable)("the site key as a systemd credential", { timeout: PATIENCE_MS }, () => {
  test("the daemon and every verb use it, and no key file is made in the state folder", async () => {
    await using site = await aSite();
    const [siteKey, proofKey] = [randomBytes(32), randomBytes(32)];
    const env = credentials(site, { "site.key": siteKey, "proof.key": proofKey });
    const event = anEvent("EV-1", { startIn: HOUR, lastsMs: HOUR, randomizeStartMs: HOUR });
    const list = join(site.directory, "events.json");
    writeFileSync(list, JSON.stringify([event]));
    const start = new Date(event.intervalPeriod.start).toISOString();
    const u =
      createHmac("sha256", siteKey)
        .update(JSON.stringify(["EV-1", "veh-1", start, HOUR]))
        .digest()
        .readUIntBE(0, 6) /
      2 ** 48;

    const planned = await verb(site, env, "plan", "--json", "--events", list);
    expect(JSON.parse(planned.stdout)[0]).toMatchObject({ offsetMs: Math.floor(u * (HOUR + 1)) });
    expect(existsSync(site.state) ? keysIn(site) : []).toEqual([]);
    const publicKey = await verb(site, env, "proof", "key");
    {
      await using daemon = await site.run(env);
      await daemon.deliver(event);
      const { stdout } = await verb(site, env, "proof", "EV-1");
      writeFileSync(join(site.directory, "proof.txt"), stdout);
      const backup = await verb(site, env, "backup", join(site.directory, "running.db"));
      expect([backup.code, backup.stderr]).toEqual([0, ""]);
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    writeFileSync(join(site.directory, "public.pem"), publicKey.stdout);
    const proof = join(site.directory, "proof.txt");
    const verified = await verb(
      site,
      env,
      "proof",
      "verify",
      proof,
      "--public-key",
      join(site.directory, "public.pem"),
    );
    expect([verified.code, verified.stderr]).toEqual([0, ""]);
    expect(verified.stdout).toContain("were made with this site's key");
    for (const args of [
      ["audit", "verify"],
      ["release", "--all"],
    ])
      expect([args, await verb(site, env, ...args)]).toEqual([args, expect.objectContaining({ code: 0 })]);
    const checked = await verb(site, env, "check");
    expect(checked.stdout).toContain(`site.key: the credential ${env.CREDENTIALS_DIRECTORY}/site.key`);
    expect(checked.stdout).toContain(`proof.key: the credential ${env.CREDENTIALS_DIRECTORY}/proof.key`);
    expect(checked.stderr).toBe("");
    expect(keysIn(site)).toEqual([]);
  });

  test("a backup holds no copy of it, and is restored with the credential alone", async () => {
    await using site = await aSite();
    const env = credentials(site, { "site.key": randomBytes(32) });
    {
      await using daemon = await site.run(env);
      await daemon.deliver(anEvent("EV-1", { lastsMs: HOUR }));
      await site.floor.nth("bay-01", 1);
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    const file = join(site.directory, "copy.db");
    const backup = await verb(site, env, "backup", file);
    expect(backup).toMatchObject({ code: 0, stderr: "" });
    expect(backup.stdout).toContain("site.key is not in this backup: it is the credential");
    // The key that signs proofs was made in the state folder, as there is no such credential.
    expect(keysIn(site)).toEqual(["proof.key"]);
    expect(readdirSync(site.directory).filter((name) => name.startsWith("copy."))).toEqual([
      "copy.db",
      "copy.db.proof-key",
    ]);

    rmSync(site.state, { recursive: true });
    mkdirSync(site.state, { mode: 0o700 });
    copyFileSync(file, join(site.state, "setpointd.db"));
    const without = await verb(site, {}, "audit", "verify");
    expect([without.code, without.stderr]).toEqual([1, expect.stringContaining("site.key is missing")]);
    expect(without.stderr).toContain("$CREDENTIALS_DIRECTORY");
    expect(keysIn(site)).toEqual([]);
    const verified = await verb(site, env, "audit", "verify");
    expect([verified.code, verified.stderr]).toEqual([0, ""]);
  });

  test("a state made with another key is refused: what was found, and what would be right", async () => {
    await using site = await aSite();
    const [right, wrong] = [randomBytes(32), randomBytes(32)];
    {
      await using daemon = await site.run(credentials(site, { "site.key": right }));
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    const env = credentials(site, { "site.key": wrong });
    const path = `${env.CREDENTIALS_DIRECTORY}/site.key`;
    for (const args of [["run"], ["audit", "verify"]]) {
      const { code, stderr } = await verb(site, env, ...args);
      expect([code, stderr]).toEqual([1, expect.stringContaining(`the credential ${path}`)]);
      expect(stderr).toContain(printOf(wrong));
      expect(stderr).toContain(printOf(right));
    }
    expect(keysIn(site)).toEqual(["proof.key"]);
    const good = await verb(site, credentials(site, { "site.key": right }), "audit", "verify");
    expect([good.code, good.stderr]).toEqual([0, ""]);
  });

  test("a key is moved from the state folder into a credential, and back", async () => {
    await using site = await aSite();
    {
      await using daemon = await site.run();
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    const made = join(site.state, "site.key");
    const wrong = credentials(site, { "site.key": randomBytes(32) });
    const refused = await verb(site, wrong, "audit", "verify");
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining(`${made} is the right one: make the credential from it`),
    ]);

    const env = credentials(site, { "site.key": readFileSync(made) });
    const both = await verb(site, env, "check");
    expect([both.code, both.stderr]).toEqual([0, expect.stringContaining(`${made} beside the credential`)]);
    const kept = join(site.directory, "kept.key");
    renameSync(made, kept);
    expect(await verb(site, env, "audit", "verify")).toMatchObject({ code: 0, stderr: "" });
    expect(keysIn(site)).toEqual(["proof.key"]);
    renameSync(kept, made);
    expect(await verb(site, {}, "audit", "verify")).toMatchObject({ code: 0, stderr: "" });
  });

  test.for([
    ["of 31 bytes", Buffer.alloc(31, 7), "holds 31 bytes"],
    ["that is empty, as its stand-in in a unit is", Buffer.from("\n"), "holds 1 byte"],
  ] as const)("a single %s is a mistake, also for a verb without secrets", async ([, key, found]) => {
    await using site = await aSite();
    const env = credentials(site, { "site.key": key });
    writeFileSync(join(site.directory, "events.json"), "[]");
    for (const args of [["check"], ["run"], ["plan", "--events", join(site.directory, "events.json")]]) {
      const { code, stderr } = await verb(site, env, ...args);
      expect([code, stderr]).toEqual([2, expect.stringContaining(found)]);
      expect(stderr).toContain("32 raw bytes");
    }
    expect(existsSync(site.state)).toBe(false);
  });
});
