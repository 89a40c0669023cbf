import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readOrMakeSiteKey, readSiteKey } from "../../src/store/siteKey.ts";
import { aDirectory, open, opened } from "./state.ts";

test("the site key is made once, as 32 raw bytes that only the owner can read, and kept", () => {
  const directory = join(aDirectory(), "state");
  const made = readOrMakeSiteKey(directory, randomBytes);
  expect(readOrMakeSiteKey(directory, randomBytes)).toEqual(made);
  const path = join(directory, "site.key");
  expect(made).toEqual({ ok: true, siteKey: readFileSync(path) });
  expect(statSync(path).size).toBe(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(readdirSync(directory)).toEqual(["site.key"]);
});

test("`plan` before the first `run` leaves the key that `run` then uses", () => {
  const directory = aDirectory();
  const planned = readOrMakeSiteKey(directory, randomBytes);
  expect(planned).toMatchObject({ ok: true, siteKey: opened(directory).siteKey });
});

test("a key of another length is refused with what is expected", () => {
  const directory = aDirectory();
  writeFileSync(join(directory, "site.key"), "secret\n");
  const answer = readOrMakeSiteKey(directory, randomBytes);
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
  expect(readSiteKey(path)).toEqual({ ok: true, siteKey: readFileSync(path) });
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
