import { lstatSync, statSync } from "node:fs";
import { dirname } from "node:path";

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** What is missing has the owner of the nearest folder that is there; a link, that of who made it, unless that was root. */
export function ownerOf(path: string): Owner {
  try {
    const own = lstatSync(path);
    return own.uid === 0 ? statSync(path) : own;
  } catch (error) {
    if (path === dirname(path)) throw error;
    return ownerOf(dirname(path));
  }
}

/** Tried with the rights of the owner, which are given back. By number: the user of a DynamicUser= unit has no name. */
export function asOwner<T>({ uid, gid }: Owner, attempt: () => T): T {
  const groups = process.getgroups?.() ?? [];
  process.setgroups?.([gid]);
  process.setegid?.(gid);
  process.seteuid?.(uid);
  try {
    return attempt();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
    process.setgroups?.(groups);
  }
}

/** "denied": this user may not enter the folder, or not come to it. */
export function isThere(folder: string): "yes" | "no" | "denied" {
  try {
    // Not with join, which takes the dot away.
    statSync(`${folder}/.`);
    return "yes";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    return code === "EACCES" || code === "EPERM" ? "denied" : "no";
  }
}
