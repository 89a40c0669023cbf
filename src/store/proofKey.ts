import { createPrivateKey, type KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileFault } from "./fault.ts";
import { placeFile, prepareDirectory, readOwn } from "./files.ts";
import type { HandedKey } from "./siteKey.ts";

/** Name in the state directory. */
export const PROOF_KEY = "proof.key";
/** Of an Ed25519 seed. */
const LENGTH = 32;
/** PKCS#8 of an Ed25519 key up to its seed (RFC 8410, section 7). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** What a state authenticates and signs with. */
export interface Keys {
  readonly siteKey: Buffer;
  readonly proofKey: KeyObject;
}

export type ProofKey =
  | { readonly ok: true; readonly proofKey: KeyObject }
  | { readonly ok: false; readonly reason: string };

/**
 * The key that signs proofs: an Ed25519 seed of 32 raw random bytes. It is the credential where there is one. Else it
 * is `<state>/proof.key`, mode 0600, made on first use.
 */
export function readOrMakeProofKey(
  directory: string,
  credential: HandedKey | null,
  random: (bytes: number) => Buffer,
): ProofKey {
  if (credential !== null) return { ok: true, proofKey: keyOf(credential.read()) };
  const path = join(directory, PROOF_KEY);
  const unusable = prepareDirectory(directory);
  if (unusable !== null) return { ok: false, reason: unusable.reason };
  try {
    if (!existsSync(path)) placeFile(path, random(LENGTH));
    const seed = readOwn(path);
    if (seed.length !== LENGTH)
      return {
        ok: false,
        reason: `${path} holds ${seed.length} bytes, but a key for proofs is ${LENGTH} raw bytes`,
      };
    return { ok: true, proofKey: keyOf(seed) };
  } catch (error) {
    return { ok: false, reason: fileFault(error).reason };
  }
}

const keyOf = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
