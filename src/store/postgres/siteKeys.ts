import { createCipheriv, createDecipheriv, hash, type KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";

import { GENESIS, sealed } from "../chain.ts";
import { prepareDirectory } from "../files.ts";
import {
  type HandedKey,
  type HandedKeys,
  PROOF_KEY,
  proofKeyOf,
  readOrMakeProofKey,
  readOrMakeSiteKey,
  seedOf,
  SITE_KEY,
} from "../keys.ts";
import type { Database, Row } from "./database.ts";
import { versionOf } from "./schema.ts";

/** Bytes of a site key, of the seed of a proof key, and of a key of the operator. */
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";
/** First word of the stored text. */
const FORM = "v1";

/** Keys of a site. */
export interface SiteKeys {
  readonly siteKey: Buffer;
  readonly proofKey: KeyObject;
}

/** Keys of the operator that encrypt the keys of sites, the newest first. */
export type OperatorKeys = () => readonly Buffer[];

type RandomBytes = (bytes: number) => Buffer;

const labelOf = (site: string): Buffer => Buffer.from(`setpointd keys of a site\n${site}`);
const printOf = (key: Buffer): string => hash("sha256", key).slice(0, 8);
const derOf = (key: KeyObject): Buffer => key.export({ format: "der", type: "pkcs8" });

/** Keys of a new site that are never written to a file. */
export const newKeys = (random: RandomBytes): SiteKeys => ({
  siteKey: random(KEY_BYTES),
  proofKey: proofKeyOf(random(KEY_BYTES)),
});

/** Keys as stored: form, begin of the SHA-256 of the operator's key, nonce, and both keys encrypted. */
export function encryptedKeys(
  operatorKey: Buffer,
  site: string,
  { siteKey, proofKey }: SiteKeys,
  random: RandomBytes,
): string {
  const nonce = random(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, operatorKey, nonce).setAAD(labelOf(site));
  const plain = Buffer.concat([siteKey, seedOf(proofKey)]);
  const body = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return [FORM, printOf(operatorKey), nonce.toString("base64"), body.toString("base64")].join(" ");
}

/** Keys from their stored text. `isOld`: they have to be encrypted again with the newest key. A text: the reason why not. */
export function decryptedKeys(
  operatorKeys: readonly Buffer[],
  site: string,
  stored: string,
): (SiteKeys & { readonly isOld: boolean }) | string {
  const [form = "", print = "", nonce = "", text = ""] = stored.split(" ");
  const place = operatorKeys.findIndex((key) => printOf(key) === print);
  const operatorKey = operatorKeys[place];
  if (form !== FORM || operatorKey === undefined) {
    const found = operatorKeys.map(printOf).join(", ");
    return `the keys of the site ${site} are encrypted with another key of the operator: the SHA-256 of siteKeys begins with ${found}, that of the right key with ${print}`;
  }
  try {
    const body = Buffer.from(text, "base64");
    const cipher = createDecipheriv(CIPHER, operatorKey, Buffer.from(nonce, "base64"))
      .setAAD(labelOf(site))
      .setAuthTag(body.subarray(-TAG_BYTES));
    const plain = Buffer.concat([cipher.update(body.subarray(0, -TAG_BYTES)), cipher.final()]);
    // A copy of its own: a part of a buffer keeps the pool that it is from in memory, 64 KB.
    const siteKey = Buffer.alloc(KEY_BYTES);
    plain.copy(siteKey);
    return {
      siteKey,
      proofKey: proofKeyOf(plain.subarray(KEY_BYTES)),
      isOld: place > 0,
    };
  } catch {
    return `the stored keys of the site ${site} were changed by another program: put back the column "keys" of its row from a backup`;
  }
}

export interface KeyOptions {
  readonly site: string;
  /** Folder of the keys, absolute. */
  readonly directory: string;
  readonly keys: HandedKeys;
  /** Null: the keys are files in the folder. */
  readonly siteKeys: OperatorKeys | null;
  readonly random: RandomBytes;
  readonly log: Logger;
}

/**
 * Keys of a site, and its row. The first process on a new site creates both. With a key of the operator they are in the
 * row, encrypted; those of a folder move there. A text: the reason why they cannot be used.
 */
export async function keysOf(database: Database, options: KeyOptions): Promise<SiteKeys | string> {
  const { site, siteKeys, directory } = options;
  // Sockets and users are in the folder, wherever the keys are.
  const unusable = prepareDirectory(directory);
  if (unusable !== null) return unusable.reason;
  const known = await rowOf(database, site);
  if (siteKeys === null) return keysOfFolder(database, known, options);
  if (known !== null && known["keys"] !== null) return storedKeys(database, known, siteKeys, options);
  const own = ownKeys(options, known === null);
  if (typeof own === "string") return own;
  const [newest = Buffer.alloc(0)] = siteKeys();
  const text = encryptedKeys(newest, site, own, options.random);
  await addRow(database, site, own, text);
  const row = await rowOf(database, site);
  if (row !== null && row["keys"] !== null) return storedKeys(database, row, siteKeys, options);
  const wrong = wrongKey(row, own, options);
  if (wrong !== null) return wrong;
  await database.query("UPDATE site SET keys = $2 WHERE id = $1 AND keys IS NULL", [site, text]);
  options.log.info("the keys of the site are in the database now, encrypted: their files can be deleted");
  return own;
}

/** First version of the schema with keys in the row. */
const WITH_KEYS = 2;

/** Keys in the row of a site, which stays as it is. Null: there are none. A text: the reason why they cannot be read. */
export async function readKeys(
  database: Database,
  site: string,
  operatorKeys: readonly Buffer[],
): Promise<SiteKeys | string | null> {
  if (((await versionOf(database)) ?? 0) < WITH_KEYS) return null;
  const row = await rowOf(database, site);
  return row === null || row["keys"] === null ? null : decryptedKeys(operatorKeys, site, String(row["keys"]));
}

/** The keys in the row, encrypted again where the operator has a newer key. */
async function storedKeys(
  database: Database,
  row: Row,
  siteKeys: OperatorKeys,
  { site, random, log }: KeyOptions,
): Promise<SiteKeys | string> {
  const stored = String(row["keys"]);
  const operatorKeys = siteKeys();
  const keys = decryptedKeys(operatorKeys, site, stored);
  const [newest] = operatorKeys;
  if (typeof keys === "string" || !keys.isOld || newest === undefined) return keys;
  const text = encryptedKeys(newest, site, keys, random);
  await database.query("UPDATE site SET keys = $2 WHERE id = $1 AND keys = $3", [site, text, stored]);
  log.info("the keys of the site are encrypted with the newest key of siteKeys now");
  return keys;
}

/** Keys of the folder, which the row knows by their SHA-256. */
async function keysOfFolder(
  database: Database,
  known: Row | null,
  options: KeyOptions,
): Promise<SiteKeys | string> {
  const own = ownKeys(options, known === null);
  if (typeof own === "string") return own;
  await addRow(database, options.site, own, null);
  return wrongKey(await rowOf(database, options.site), own, options) ?? own;
}

/** Keys of the folder or of credentials. `isNew`: missing ones are made. */
function ownKeys({ site, directory, keys, siteKeys, random }: KeyOptions, isNew: boolean): SiteKeys | string {
  const isMissing = ([name, key]: readonly [string, HandedKey | null]): boolean =>
    key === null && !existsSync(join(directory, name));
  const names = [
    [SITE_KEY, keys.site],
    [PROOF_KEY, keys.proof],
  ] as const;
  const missing = names.find(isMissing);
  if (missing !== undefined && !isNew) {
    const [name] = missing;
    return `${join(directory, name)} is missing: put the ${name} there that the site ${site} was made with, as the other process has it; or name the key of the operator in state.postgres.siteKeys where the keys are in the database`;
  }
  // Keys that belong in the database are never written to the folder.
  if (siteKeys !== null && names.every(isMissing)) return newKeys(random);
  const key = readOrMakeSiteKey(directory, keys.site, random);
  if (!key.ok) return key.reason;
  const proof = readOrMakeProofKey(directory, keys.proof, random);
  return proof.ok ? { siteKey: key.siteKey, proofKey: proof.proofKey } : proof.reason;
}

export const printsOf = ({ siteKey, proofKey }: SiteKeys): readonly [string, string] => [
  hash("sha256", siteKey),
  hash("sha256", derOf(proofKey)),
];

/** Null: the site was made with these keys. */
function wrongKey(row: Row | null, own: SiteKeys, { site, directory, keys }: KeyOptions): string | null {
  const [key, proof] = printsOf(own);
  const path =
    row?.["key_print"] !== key
      ? (keys.site?.path ?? join(directory, SITE_KEY))
      : row["proof_print"] !== proof
        ? (keys.proof?.path ?? join(directory, PROOF_KEY))
        : null;
  return path === null
    ? null
    : `${path} is not the key that the site ${site} was made with: put there the one that the other process has`;
}

async function rowOf(database: Database, site: string): Promise<Row | null> {
  const [row] = await database.query("SELECT key_print, proof_print, keys FROM site WHERE id = $1", [site]);
  return row ?? null;
}

/** Adds the row of a new site. `text`: its keys, encrypted. Null: they are files. */
async function addRow(database: Database, site: string, own: SiteKeys, text: string | null): Promise<void> {
  await database.query(
    `INSERT INTO site (id, key_print, proof_print, head_seq, head_hash, sealed, epoch, commit_no, readings, thinned_minute, keys)
     VALUES ($1, $2, $3, 0, $4, $5, 0, 0, 0, 0, $6) ON CONFLICT DO NOTHING`,
    [site, ...printsOf(own), GENESIS.hash, sealed(own.siteKey, GENESIS, 0), text],
  );
}
