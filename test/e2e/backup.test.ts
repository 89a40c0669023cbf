import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";

import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";

const SECOND = 1000;

const verb = (site: Site, ...args: readonly string[]) => setpointd([...args, "-c", site.config]);

/** As docs/backup.md says: an empty folder, the copy as setpointd.db, its keys as site.key and proof.key. */
function restore(site: Site, file: string): void {
  const state = join(site.directory, "restored");
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(state, "setpointd.db"), readFileSync(file), { mode: 0o600 });
  writeFileSync(join(state, "site.key"), readFileSync(`${file}.key`), { mode: 0o600 });
  writeFileSync(join(state, "proof.key"), readFileSync(`${file}.proof-key`), { mode: 0o600 });
  site.configure({ state: "./restored" });
}

describe.skipIf(!mosquittoAvailable)("backing up and restoring", () => {
  test("a copy made while an event runs is restored on an empty folder: the record holds, the event goes on with a higher epoch (F13)", async () => {
    await using site = await aSite();
    const { floor, partner } = site;
    await using daemon = await site.run();
    await daemon.deliver(partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND, randomizeStartMs: 10 })));
    const before = await floor.nth("bay-01", 1);
    const file = join(site.directory, "copy.db");
    const backup = await verb(site, "backup", file);
    expect(backup).toMatchObject({ code: 0, stderr: "" });
    expect(backup.stdout).toMatch(/rows of the record, 1 events\n.*site key, a secret/);
    expect([file, `${file}.key`].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600]);
    expect(readdirSync(site.directory).filter((name) => name.startsWith("copy."))).toEqual([
      "copy.db",
      "copy.db.key",
      "copy.db.proof-key",
    ]);
    expect((await daemon.get("/healthz")).status).toBe(200);
    await daemon.end("SIGKILL");

    restore(site, file);
    const verified = await verb(site, "audit", "verify");
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining("the record is whole")]);
    await partner[Symbol.asyncDispose]();
    await using restored = await site.run();
    const again = await floor.nth("bay-01", 2);
    expect(again.set).toEqual(before.set);
    await restored.deliver(anEvent("EV-2", { lastsMs: 60 * SECOND, amperes: 8, priority: 0 }));
    expect((await floor.nth("bay-01", 3)).set.epoch).toBeGreaterThan(before.set.epoch);
    const whole = await verb(site, "audit", "verify");
    expect([whole.code, whole.stderr]).toEqual([0, ""]);
  });

  test("a charger that was limited after the copy is released by the restored daemon", async () => {
    await using site = await aSite();
    const daemon = await site.run();
    const file = join(site.directory, "copy.db");
    expect((await verb(site, "backup", file)).code).toBe(0);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await site.floor.nth("bay-01", 1);
    await daemon.end("SIGKILL");
    restore(site, file);
    await using restored = await site.run();
    expect((await site.floor.nth("bay-01", 2)).set.kind).toBe("release");
    expect(
      (await restored.view<{ words: string }[]>("/api/v1/audit")).map(({ words }) => words).join(),
    ).toContain("put back from a copy");
  });

  test("a copy is not made over the state itself", async () => {
    await using site = await aSite();
    await using _daemon = await site.run();
    const { code, stderr } = await verb(site, "backup", join(site.state, "setpointd.db"));
    expect([code, stderr]).toEqual([1, expect.stringContaining("in the folder of the state itself")]);
  });

  test("without a daemon what is stored is copied, and the copy is an ordinary SQLite file", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await site.floor.nth("bay-01", 1);
    await daemon.end("SIGTERM");
    const file = join(site.directory, "copy.db");
    expect((await verb(site, "backup", file)).code).toBe(0);
    const before = readFileSync(file);
    const again = await verb(site, "backup", file);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("copy.db exists already")]);
    expect(readFileSync(file).equals(before)).toBe(true);
    using copy = new DatabaseSync(file, { readOnly: true });
    expect(copy.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    expect(copy.prepare("SELECT id FROM event").all()).toEqual([{ id: "EV-1" }]);
  });

  test("a backup that cannot be made reports why in one sentence, and leaves no file behind", async () => {
    await using site = await aSite();
    const nothing = await verb(site, "backup", join(site.directory, "copy.db"));
    expect([nothing.code, nothing.stdout]).toEqual([1, ""]);
    expect(nothing.stderr).toMatch(/^no backup was made: there is no state in /);
    await using daemon = await site.run();
    const nowhere = await verb(site, "backup", join(site.directory, "missing", "copy.db"));
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringMatching(/^no backup was made: ENOENT/)]);
    expect(readdirSync(site.directory).some((name) => name.startsWith("copy."))).toBe(false);
    expect(existsSync(join(site.directory, "missing"))).toBe(false);
    expect((await daemon.get("/healthz")).status).toBe(200);
  });
});
