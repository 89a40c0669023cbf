import { hash, createPrivateKey, type KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { fileFault } from "./fault.ts";
import { DATABASE, placeFile, prepareDirectory, readOwn } from "./files.ts";

const SITE_KEY_BYTES = 32;
/** Name in the state directory. */
export const SITE_KEY = "site.key";

/** A key outside the state folder, supplied by systemd. */
export interface HandedKey {
  /** Absolute. */
  readonly path: string;
  readonly read: () => Buffer;
}

/** Null: the key is a file in the state folder, created if missing. */
export interface HandedKeys {
  readonly site: HandedKey | null;
  readonly proof: HandedKey | null;
}

/** Place of a site key. */
export interface KeyOrigin {
  readonly path: string;
  readonly isCredential: boolean;
}

export type SiteKey =
  | { readonly ok: true; readonly siteKey: Buffer; readonly origin: KeyOrigin }
  | { readonly ok: false; readonly reason: string };

/**
 * The site key: 32 raw random bytes. A credential has precedence. Otherwise it is `<state>/site.key`, mode
 * 0600, created on first use. Needs no database.
 */
export function readOrMakeSiteKey(
  directory: string,
  credential: HandedKey | null,
  random: (bytes: number) => Buffer,
): SiteKey {
  const path = join(directory, SITE_KEY);
  const unusable = prepareDirectory(directory);
  if (unusable !== null) return { ok: false, reason: unusable.reason };
  if (credential !== null) return handed(credential);
  try {
    if (!existsSync(path)) {
      const missing = missingKey(directory);
      if (missing !== null) return { ok: false, reason: missing };
      placeFile(path, random(SITE_KEY_BYTES));
    }
    return readSiteKey(path);
  } catch (error) {
    return { ok: false, reason: fileFault(error).reason };
  }
}

/** The key of an existing state. Creates nothing. */
export function storedSiteKey(directory: string, credential: HandedKey | null): SiteKey {
  if (credential !== null) return handed(credential);
  const path = join(directory, SITE_KEY);
  const missing = existsSync(path) ? null : missingKey(directory);
  return missing === null ? readSiteKey(path) : { ok: false, reason: missing };
}

/** Reads an existing key file. */
export function readSiteKey(path: string): SiteKey {
  try {
    const siteKey = readOwn(path);
    if (siteKey.length === SITE_KEY_BYTES)
      return { ok: true, siteKey, origin: { path, isCredential: false } };
    return {
      ok: false,
      reason: `${path} holds ${siteKey.length} bytes, but a site key is ${SITE_KEY_BYTES} raw bytes: put back the right one`,
    };
  } catch (error) {
    return { ok: false, reason: fileFault(error).reason };
  }
}

const handed = ({ path, read }: HandedKey): SiteKey => ({
  ok: true,
  siteKey: read(),
  origin: { path, isCredential: true },
});

/** A new key would change the start offset of every vehicle during its event. Null: there is no state yet. */
const missingKey = (directory: string): string | null =>
  existsSync(join(directory, DATABASE))
    ? `${join(directory, SITE_KEY)} is missing: put back the key that this state was made with. Where that key is a systemd credential, name its folder in $CREDENTIALS_DIRECTORY`
    : null;

/** Message for a wrong key: the key found, and the remedy. `fingerprint`: SHA-256 of the key that created the state. */
export function wrongKeyMessage(
  { siteKey, origin }: { readonly siteKey: Buffer; readonly origin: KeyOrigin },
  fingerprint: string,
  directory: string,
): string {
  const found = origin.isCredential ? `the credential ${origin.path}` : origin.path;
  const left = origin.isCredential ? readSiteKey(join(directory, SITE_KEY)) : null;
  const remedy =
    left?.ok === true && hash("sha256", left.siteKey) === fingerprint
      ? `${join(directory, SITE_KEY)} is the right one: make the credential from it`
      : "put the old one back, or start with an empty state directory";
  return `${found} is not the key that this state was made with (its SHA-256 begins with ${shortened(hash("sha256", siteKey))}, that of the right key with ${shortened(fingerprint)}): ${remedy}`;
}

const shortened = (fingerprint: string): string => fingerprint.slice(0, 8);

/** Name in the state directory. */
export const PROOF_KEY = "proof.key";
/** Bytes of an Ed25519 seed. */
const PROOF_SEED_BYTES = 32;
/** PKCS#8 of an Ed25519 key up to its seed (RFC 8410, section 7). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** Keys that a state authenticates and signs with. */
export interface Keys {
  readonly siteKey: Buffer;
  readonly proofKey: KeyObject;
}

export type ProofKey =
  | { readonly ok: true; readonly proofKey: KeyObject }
  | { readonly ok: false; readonly reason: string };

/**
 * The key that signs proofs: an Ed25519 seed of 32 raw random bytes. A credential has precedence. Otherwise
 * it is `<state>/proof.key`, mode 0600, created on first use.
 */
export function readOrMakeProofKey(
  directory: string,
  credential: HandedKey | null,
  random: (bytes: number) => Buffer,
): ProofKey {
  if (credential !== null) return { ok: true, proofKey: proofKeyOf(credential.read()) };
  const path = join(directory, PROOF_KEY);
  const unusable = prepareDirectory(directory);
  if (unusable !== null) return { ok: false, reason: unusable.reason };
  try {
    if (!existsSync(path)) placeFile(path, random(PROOF_SEED_BYTES));
    const seed = readOwn(path);
    if (seed.length !== PROOF_SEED_BYTES)
      return {
        ok: false,
        reason: `${path} holds ${seed.length} bytes, but a key for proofs is ${PROOF_SEED_BYTES} raw bytes`,
      };
    return { ok: true, proofKey: proofKeyOf(seed) };
  } catch (error) {
    return { ok: false, reason: fileFault(error).reason };
  }
}

/** The key of a seed. */
export const proofKeyOf = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });

/** The seed is the end of the PKCS#8 form. */
export const seedOf = (proofKey: KeyObject): Buffer =>
  proofKey.export({ format: "der", type: "pkcs8" }).subarray(-PROOF_SEED_BYTES);

/** Keys of a state that is moved, each with its file and what systemd supplies for it. */
const placesOf = (directory: string, handed: HandedKeys, { siteKey, proofKey }: Keys) =>
  [
    { path: join(directory, SITE_KEY), key: siteKey, credential: handed.site },
    { path: join(directory, PROOF_KEY), key: seedOf(proofKey), credential: handed.proof },
  ] as const;

/** Reason why these keys cannot be those of a state in the folder: it has others. Null: none. */
export function keysFault(directory: string, handed: HandedKeys, keys: Keys): string | null {
  for (const { path, key, credential } of placesOf(directory, handed, keys)) {
    const found = credential?.read() ?? (existsSync(path) ? readOwn(path) : key);
    if (!found.equals(key))
      return `${credential?.path ?? path} is not the key of the state that is moved: move it away, or put the right one there`;
  }
  return null;
}

/** Stores keys that are neither in the folder nor a credential. Throws file system errors. */
export function placeKeys(directory: string, handed: HandedKeys, keys: Keys): void {
  for (const { path, key, credential } of placesOf(directory, handed, keys))
    if (credential === null && !existsSync(path)) placeFile(path, key);
}
