import { lstatSync, readdirSync, type Stats } from "node:fs";
import { dirname, join, resolve } from "node:path";

import { asOwner, isThere, type Owner, ownerOf } from "./ownerOf.ts";
import { ownerBefore } from "./privateFolder.ts";

/**
 * A verb that root runs on the daemon's state becomes the owner of that folder for good: what lies in there could be a
 * link to anything, and must not be read or written with the rights of root. Where the owner cannot reach the folder,
 * also after `enterPrivateFolder`, root stays, and links in it are refused. Null: go on; else why not.
 */
export function becomeOwner(state: string): string | null {
  if (process.getuid?.() !== 0) return null;
  const folder = resolve(state);
  const owner = ownerBefore() ?? ownerOf(folder);
  if (owner.uid === 0) return null;
  if (!canReach(owner, folder)) return linkIn(folder);
  process.setgroups?.([owner.gid]);
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
  return null;
}

/** As `becomeOwner`, for a verb that goes on as root. */
export const refuseLinks = (state: string): string | null =>
  process.getuid?.() === 0 && ownerOf(resolve(state)).uid !== 0 ? linkIn(resolve(state)) : null;

/** What is not there yet is made below the nearest folder that is. */
const canReach = (owner: Owner, folder: string): boolean =>
  folder !== dirname(folder) && asOwner(owner, () => isThere(folder)) !== "denied";

/** The first name in the folder that leads elsewhere. Null: none does. */
function linkIn(folder: string): string | null {
  if (isThere(folder) !== "yes") return null;
  for (const name of readdirSync(folder)) {
    const found = lstatSync(join(folder, name));
    if (leadsElsewhere(found))
      return `state: ${join(folder, name)} is a link or a device, which setpointd never makes: root does not follow it`;
  }
  return null;
}

const leadsElsewhere = (found: Stats): boolean =>
  !(found.isDirectory() || found.isSocket() || (found.isFile() && found.nlink === 1));
