import { hash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readOrMakeSiteKey, readSiteKey, storedSiteKey } from "../../../src/store/keys.ts";
import { aDirectory, open, opened } from "./state.ts";

test("the site key is made once, as 32 raw bytes that only the owner can read, and kept", () => {
  const directory = join(aDirectory(), "state");
  const made = readOrMakeSiteKey(directory, null, randomBytes);
  expect(readOrMakeSiteKey(directory, null, randomBytes)).toEqual(made);
  const path = join(directory, "site.key");
  expect(made).toMatchObject({ ok: true, siteKey: readFileSync(path) });
  expect(statSync(path).size).toBe(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(readdirSync(directory)).toEqual(["site.key"]);
});

test("`plan` before the first `run` leaves the key that `run` then uses", () => {
  const directory = aDirectory();
  const planned = readOrMakeSiteKey(directory, null, randomBytes);
  expect(planned).toMatchObject({ ok: true, siteKey: opened(directory).siteKey });
});

test("a key of another length is refused with what is expected", () => {
  const directory = aDirectory();
  writeFileSync(join(directory, "site.key"), "secret\n");
  const answer = readOrMakeSiteKey(directory, null, randomBytes);
  expect(answer).toMatchObject({ ok: false, reason: expect.stringContaining("holds 7 bytes") });
});

test("a key that went missing is not replaced while there is a state that it was used for", () => {
  const directory = aDirectory();
  opened(directory).store[Symbol.dispose]();
  rmSync(join(directory, "site.key"));
  expect(open(directory)).toMatchObject({ ok: false, reason: expect.stringContaining("is missing") });
  expect(readdirSync(directory)).not.toContain("site.key");
});

test("a key is read where it is, and nothing is made where none is", () => {
  const directory = aDirectory();
  opened(directory).store[Symbol.dispose]();
  const path = join(directory, "site.key");
  expect(readSiteKey(path)).toMatchObject({ ok: true, siteKey: readFileSync(path) });
  writeFileSync(path, "short");
  expect(readSiteKey(path)).toMatchObject({ ok: false, reason: expect.stringContaining("32 raw bytes") });
  rmSync(path);
  expect(readSiteKey(path)).toMatchObject({ ok: false, reason: expect.stringContaining("ENOENT") });
  expect(readdirSync(directory)).not.toContain("site.key");
});

test("a changed key refuses to start, and the state is still good with the old one", () => {
  const directory = aDirectory();
  opened(directory).store[Symbol.dispose]();
  const path = join(directory, "site.key");
  const key = readFileSync(path);
  writeFileSync(path, randomBytes(32));
  expect(open(directory)).toMatchObject({ ok: false, reason: expect.stringContaining("is not the key") });
  writeFileSync(path, key);
  expect(opened(directory).setAside).toBeNull();
});

const handed = (key: Buffer) => ({
  site: { path: "/run/credentials/site.key", read: () => key },
  proof: null,
});

describe("a site key that systemd hands over", () => {
  test("is used as it is, and no file is made", () => {
    const directory = aDirectory();
    const key = randomBytes(32);
    expect(opened(directory, { keys: handed(key) }).siteKey).toEqual(key);
    expect(readdirSync(directory)).not.toContain("site.key");
    expect(storedSiteKey(directory, handed(key).site)).toMatchObject({ ok: true, siteKey: key });
  });

  test("without it the state that it made is refused, and no new key is made", () => {
    const directory = aDirectory();
    opened(directory, { keys: handed(randomBytes(32)) }).store[Symbol.dispose]();
    const reason = expect.stringMatching(/is missing.*\$CREDENTIALS_DIRECTORY/);
    expect(open(directory)).toMatchObject({ ok: false, reason });
    expect(storedSiteKey(directory, null)).toMatchObject({ ok: false, reason });
    expect(readdirSync(directory)).not.toContain("site.key");
  });

  test("another one is refused with both prints, and with the file that would be right", () => {
    const directory = aDirectory();
    const right = opened(directory);
    right.store[Symbol.dispose]();
    const wrong = randomBytes(32);
    const refusal = (): string => {
      const state = open(directory, { keys: handed(wrong) });
      return state.ok ? "" : state.reason;
    };
    for (const key of [wrong, right.siteKey]) expect(refusal()).toContain(hash("sha256", key).slice(0, 8));
    expect(refusal()).toContain(`${directory}/site.key is the right one: make the credential from it`);
    writeFileSync(join(directory, "site.key"), randomBytes(32));
    expect(refusal()).toContain("put the old one back");
    rmSync(join(directory, "site.key"));
    expect(refusal()).toContain("put the old one back");
  });
});
