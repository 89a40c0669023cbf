import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DATABASE } from "./database.ts";
import { fileFault } from "./fault.ts";
import { placeFile, prepareDirectory } from "./files.ts";

const LENGTH = 32;

export type SiteKey =
  | { readonly ok: true; readonly siteKey: Buffer }
  | { readonly ok: false; readonly reason: string };

/** `<state>/site.key`: 32 raw random bytes, mode 0600, made on first use (DESIGN 5.3). Needs no database. */
export function readOrMakeSiteKey(directory: string, random: (bytes: number) => Buffer): SiteKey {
  const path = join(directory, "site.key");
  const unusable = prepareDirectory(directory);
  if (unusable !== null) return { ok: false, reason: unusable.reason };
  try {
    if (!existsSync(path)) {
      // A new key would give every vehicle another offset in the middle of its event.
      if (existsSync(join(directory, DATABASE))) {
        return { ok: false, reason: `${path} is missing: put back the key that this state was made with` };
      }
      placeFile(path, random(LENGTH));
    }
    return readSiteKey(path);
  } catch (error) {
    return { ok: false, reason: fileFault(error).reason };
  }
}

/** A key that is there already, wherever it is. */
export function readSiteKey(path: string): SiteKey {
  try {
    const siteKey = readFileSync(path);
    if (siteKey.length === LENGTH) return { ok: true, siteKey };
    return {
      ok: false,
      reason: `${path} holds ${siteKey.length} bytes, but a site key is ${LENGTH} raw bytes: put back the right one`,
    };
  } catch (error) {
    return { ok: false, reason: fileFault(error).reason };
  }
}
