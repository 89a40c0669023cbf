import type { KeyObject } from "node:crypto";

import type { Config } from "../config/schema.ts";
import { Accounts } from "../operator/accounts.ts";
import { prepareDirectory, readOwn, replaceFile, stateDirectoryProblem } from "../store/files.ts";
import { readOrMakeProofKey, readOrMakeSiteKey, readSiteKey, storedSiteKey } from "../store/keys.ts";

/*
 * Files of the state folder, for verbs: they need no open store, and no database. `offline.ts` opens the store.
 */

type FolderOfSite = Pick<Config, "state" | "keys">;
type RandomBytes = (count: number) => Buffer;

/** The site key, or the reason why it cannot be used. */
export type SiteKeyRead =
  | { readonly ok: true; readonly siteKey: Buffer }
  | { readonly ok: false; readonly reason: string };

/** Reason why this user cannot use the folder, or create it. Null: none. */
export const stateFolderProblem = (state: string): string | null => stateDirectoryProblem(state);

/** The site key. A missing one is created. */
export const siteKeyOrNew = ({ state, keys }: FolderOfSite, random: RandomBytes): SiteKeyRead =>
  readOrMakeSiteKey(state, keys.site, random);

/** The site key of an existing state. Creates none. */
export const siteKeyOf = ({ state, keys }: FolderOfSite): SiteKeyRead => storedSiteKey(state, keys.site);

/** The site key in a file that a person names. */
export const siteKeyIn = (file: string): SiteKeyRead => readSiteKey(file);

/** The private key that signs proofs. A missing one is created. */
export const proofKeyOrNew = (
  { state, keys }: FolderOfSite,
  random: RandomBytes,
): { readonly ok: true; readonly proofKey: KeyObject } | { readonly ok: false; readonly reason: string } =>
  readOrMakeProofKey(state, keys.proof, random);

/** Users and tokens of the operator's listener. A verb may run before the first start. */
export const accountsIn = (state: string): Accounts =>
  new Accounts(state, {
    read: readOwn,
    replace: replaceFile,
    prepare: () => prepareDirectory(state)?.reason ?? null,
  });
