import { createPrivateKey, type KeyObject } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileFault } from "./fault.ts";
import { placeFile, prepareDirectory } from "./files.ts";

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

/** `<state>/proof.key`: an Ed25519 seed of 32 raw random bytes, mode 0600, made on first use. It signs proofs. */
export function readOrMakeProofKey(directory: string, random: (bytes: number) => Buffer): ProofKey {
  const path = join(directory, PROOF_KEY);
  const unusable = prepareDirectory(directory);
  if (unusable !== null) return { ok: false, reason: unusable.reason };
  try {
    if (!existsSync(path)) placeFile(path, random(LENGTH));
    const seed = readFileSync(path);
    if (seed.length !== LENGTH)
      return {
        ok: false,
        reason: `${path} holds ${seed.length} bytes, but a key for proofs is ${LENGTH} raw bytes`,
      };
    const key = Buffer.concat([PKCS8, seed]);
    return { ok: true, proofKey: createPrivateKey({ key, format: "der", type: "pkcs8" }) };
  } catch (error) {
    return { ok: false, reason: fileFault(error).reason };
  }
}
