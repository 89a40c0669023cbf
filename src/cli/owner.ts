import { lstatSync, readdirSync, statSync, type Stats } from "node:fs";
import { dirname, join, resolve } from "node:path";

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** What is missing has the owner of the nearest folder that is there; a link, that of who made it, unless that was root. */
function ownerOf(path: string): Owner {
  try {
    const own = lstatSync(path);
    return own.uid === 0 ? statSync(path) : own;
  } catch (error) {
    if (path === dirname(path)) throw error;
    return ownerOf(dirname(path));
  }
}

/**
 * A verb that root runs on the daemon's state becomes the owner of that folder for good: what lies in there could be a
 * link to anything, and must not be read or written with the rights of root. Where the owner cannot reach the folder,
 * as below /var/lib/private, root stays, and links in it are refused. Null: go on; else why not.
 */
export function becomeOwner(state: string): string | null {
  if (process.getuid?.() !== 0) return null;
  const folder = resolve(state);
  const owner = ownerOf(folder);
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

/** Tried with the rights of the owner, which are given back. */
function canReach({ uid, gid }: Owner, folder: string): boolean {
  const groups = process.getgroups?.() ?? [];
  process.setgroups?.([gid]);
  process.setegid?.(gid);
  process.seteuid?.(uid);
  try {
    // What is not there yet is made below the nearest folder that is.
    return folder !== dirname(folder) && isThere(folder) !== "denied";
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
    process.setgroups?.(groups);
  }
}

function isThere(folder: string): "yes" | "no" | "denied" {
  try {
    statSync(join(folder, "."));
    return "yes";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    return code === "EACCES" || code === "EPERM" ? "denied" : "no";
  }
}

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
