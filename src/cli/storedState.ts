import { spawnSync } from "node:child_process";
import { lstatSync, statSync, realpathSync, readdirSync, type Stats } from "node:fs";
import { dirname, resolve, sep, join } from "node:path";

import type { Config } from "../config/schema.ts";
import { realMachine } from "../daemon/real.ts";
import type { Broken } from "../store/sqlite/fault.ts";
import { missingStateReason, type Opened, openState } from "../store/sqlite/open.ts";
import { askDaemon } from "./daemonClient.ts";
import { logger } from "./logger.ts";

export interface Owner {
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

/** Tried with the rights of the owner, which are given back. By number: the user of a DynamicUser= unit has no name. */
function asOwner<T>({ uid, gid }: Owner, attempt: () => T): T {
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
function isThere(folder: string): "yes" | "no" | "denied" {
  try {
    // Not with join, which takes the dot away.
    statSync(`${folder}/.`);
    return "yes";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    return code === "EACCES" || code === "EPERM" ? "denied" : "no";
  }
}

/** Set in the second start: the owner of the state folder as UID:GID, found before anything was mounted. */
const MARK = "SETPOINTD_STATE_OWNER";

/**
 * Mounts an empty folder over $2, with nothing in it but the state folder $1, then becomes the verb. Where a step
 * fails, the verb finds what was there before, and refuses links in it.
 */
const SCRIPT = `(
  umask 022
  cd "$1" && mount -t tmpfs -o mode=0755 tmpfs "$2" && mkdir -p "$1" && mount --no-canonicalize --bind . "$1"
) >/dev/null 2>&1
shift 2
exec "$@"`;

/** The owner as the first start found it. Null: this is the first start. */
function ownerBefore(): Owner | null {
  const [uid, gid] = (process.env[MARK] ?? "").split(":").map(Number);
  return uid === undefined || gid === undefined ? null : { uid, gid };
}

/**
 * The state of a unit with DynamicUser= is below /var/lib/private, which only root may enter. A verb that became the
 * owner there could open nothing. Such a verb is started anew in a mount namespace of its own, in which everybody may
 * enter. Returns where that is not needed, or cannot be done. Call it before standard input is read.
 */
export function enterPrivateFolder(state: string): void {
  if (process.getuid?.() !== 0 || process.execve === undefined || ownerBefore() !== null) return;
  const folder = resolve(state);
  const owner = ownerOf(folder);
  if (owner.uid === 0 || lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  const real = realpathSync(folder);
  const closed = closedTo(owner, real);
  if (closed === null || hides(closed) || spawnSync("unshare", ["--mount", "true"]).status !== 0) return;
  const verb = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  process.execve(
    "/bin/sh",
    [
      "sh",
      "-c",
      'exec unshare --mount --propagation private -- sh -c "$@"',
      "sh",
      SCRIPT,
      "sh",
      real,
      closed,
      ...verb,
    ],
    { ...process.env, [MARK]: `${owner.uid}:${owner.gid}` },
  );
}

/** The first folder on the way that the owner may not enter. Null: the owner reaches the folder. */
function closedTo(owner: Owner, folder: string): string | null {
  const way = [folder];
  for (let path = folder; path !== dirname(path); path = dirname(path)) way.unshift(dirname(path));
  return asOwner(owner, () => way.find((path) => isThere(path) === "denied")) ?? null;
}

/** The program, the working directory or a file that the verb names would no longer be there. */
const hides = (closed: string): boolean =>
  [process.execPath, process.cwd(), ...process.argv.slice(1)].some((path) =>
    `${realPath(path)}${sep}`.startsWith(`${closed}${sep}`),
  );

/** What is not there has no links to follow. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

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

/** For what the daemon does a little at a time: an event of a whole fleet, or the whole record, is a lot to read. */
export const LONG_PATIENCE_MS = 600_000;

/** What a verb needs of the configuration to open the state. */
export type StateOfSite = Pick<Config, "state" | "keys">;

/**
 * What the running daemon answers, or, where none runs, what `read` finds in the stored state: the same, in its JSON.
 * A text says why it cannot be had, unless `onBroken` makes something of a record that does not hold. `path`: of the
 * control socket (DESIGN 6.4).
 */
export async function askOrRead<T>(
  site: StateOfSite,
  path: string,
  read: (opened: Opened & { readonly ok: true }) => T,
  patienceMs?: number,
  onBroken?: (broken: Broken) => T,
): Promise<T | string> {
  const answer = await askDaemon(site.state, "GET", path, null, patienceMs);
  if (answer.kind === "absent") return withState(site, read, onBroken);
  if (answer.kind === "failed") return answer.reason;
  if (answer.status === 200) return answer.body as T;
  const { error } = answer.body as { readonly error?: string };
  return `the running daemon refuses (${answer.status}): ${error ?? path}`;
}

/** Without a daemon a verb opens the state itself, and makes none where there is none; a text says why it cannot. */
export function withState<T>(
  { state, keys }: StateOfSite,
  ask: (opened: Opened & { readonly ok: true }) => T,
  onBroken?: (broken: Broken) => T,
): T | string {
  const nothing = missingStateReason(state);
  if (nothing !== null) return nothing;
  const { now, randomBytes, log } = realMachine(logger(2, "error"));
  const opened = openState(state, { now, random: randomBytes, keys, log, damaged: "refuse" });
  if (!opened.ok && opened.broken !== undefined && onBroken !== undefined) return onBroken(opened.broken);
  if (!opened.ok) return `the state cannot be read: ${opened.reason}`;
  using _store = opened.store;
  return ask(opened);
}
