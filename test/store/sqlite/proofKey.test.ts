import { randomBytes, sign, verify, createPublicKey } from "node:crypto";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { readOrMakeProofKey } from "../../../src/store/keys.ts";
import { aDirectory, open, opened } from "./state.ts";

test("the key for proofs is made once, for its owner alone, and is not the site key", () => {
  const directory = join(aDirectory(), "state");
  const [made, again] = [randomBytes, randomBytes].map((random) =>
    readOrMakeProofKey(directory, null, random),
  );
  if (made?.ok !== true || again?.ok !== true) throw new Error("no key");
  const text = Buffer.from("x");
  expect(verify(null, text, createPublicKey(made.proofKey), sign(null, text, again.proofKey))).toBe(true);
  expect(statSync(join(directory, "proof.key")).mode & 0o777).toBe(0o600);
  const { store, siteKey } = opened(directory);
  expect(store.proofKey.equals(made.proofKey)).toBe(true);
  expect(store.proofKey.export({ format: "der", type: "pkcs8" }).includes(siteKey)).toBe(false);
});

test("a key of another length, or none that can be read, is refused with a sentence", () => {
  const directory = aDirectory();
  writeFileSync(join(directory, "proof.key"), "short");
  expect(open(directory)).toMatchObject({ ok: false, reason: expect.stringContaining("32 raw bytes") });
  const other = aDirectory();
  mkdirSync(join(other, "proof.key"));
  expect(readOrMakeProofKey(other, null, randomBytes)).toMatchObject({
    ok: false,
    reason: expect.stringContaining("EISDIR"),
  });
});
