import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { lstatSync, statSync, realpathSync, readdirSync, type Stats } from "node:fs";
import { dirname, resolve, sep, join } from "node:path";

import type { StateOfSite } from "../daemon/offline.ts";
import type { Broken, OnOlder, OpenedState } from "../domain/store.ts";
import { instant } from "../domain/units.ts";
import { shipped } from "../platform/packageRoot.ts";
import { codeOf } from "../platform/text.ts";
import { askDaemon } from "./daemonClient.ts";

/** Owner of the files of a state. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The path, or the nearest existing folder above it. */
const nearest = (path: string): string =>
  path === dirname(path) || lstatSync(path, { throwIfNoEntry: false }) !== undefined
    ? path
    : nearest(dirname(path));

/** Owner of a path. A missing path: owner of the nearest existing folder. A link: its own owner, unless that is root. */
function ownerOf(path: string): Owner {
  try {
    const own = lstatSync(path);
    return own.uid === 0 ? statSync(path) : own;
  } catch (error) {
    if (path === dirname(path)) throw error;
    return ownerOf(dirname(path));
  }
}

/** Runs `attempt` with the rights of the owner, by number: the user of a DynamicUser= unit has no name. */
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

/** "denied": this user may not enter the folder, or one above it. */
function isThere(folder: string): "yes" | "no" | "denied" {
  try {
    // `join` would remove the dot.
    statSync(`${folder}/.`);
    return "yes";
  } catch (error) {
    const code = codeOf(error);
    return code === "EACCES" || code === "EPERM" ? "denied" : "no";
  }
}

/** Variable for the second start: owner of the state folder as UID:GID, read before the mount. */
const MARK = "SETPOINTD_STATE_OWNER";

/**
 * Mounts an empty folder over $2 with only the state folder $1 in it, then becomes the verb. If a step fails, the verb
 * sees the original folder and refuses links in it.
 */
const SCRIPT = `(
  umask 022
  cd "$1" && mount -t tmpfs -o mode=0755 tmpfs "$2" && mkdir -p "$1" && mount --no-canonicalize --bind . "$1"
) >/dev/null 2>&1
shift 2
exec "$@"`;

/** Owner that the first start has read. Null: this is the first start. */
function ownerBefore(): Owner | null {
  const [uid, gid] = (process.env[MARK] ?? "").split(":").map(Number);
  return uid === undefined || gid === undefined ? null : { uid, gid };
}

/**
 * Lets a verb of root reach the state of a unit with DynamicUser=. That state is below /var/lib/private, which only root
 * may enter. The verb is started again in an own mount namespace without that barrier. Returns if that is not needed, or
 * not possible. Call it before standard input is read.
 */
export function enterPrivateFolder(state: string): void {
  if (process.getuid?.() !== 0 || process.execve === undefined || ownerBefore() !== null) return;
  // Before the first start the service has the folder above, and the verb makes the state folder there.
  const folder = nearest(resolve(state));
  const owner = ownerOf(folder);
  const own = lstatSync(folder);
  // A link of root's, as systemd makes it, may lead to that folder, and never to the state itself.
  const leads = own.isSymbolicLink() && own.uid === 0 && folder !== resolve(state);
  if (owner.uid === 0 || !(own.isDirectory() || leads)) return;
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

/** First folder on the path that the owner may not enter. Null: the owner reaches the folder. */
function closedTo(owner: Owner, folder: string): string | null {
  const folders = [folder];
  for (let path = folder; path !== dirname(path); path = dirname(path)) folders.unshift(dirname(path));
  return asOwner(owner, () => folders.find((path) => isThere(path) === "denied")) ?? null;
}

/** True if the mount would hide the program, the working directory or a file of the verb. */
const hides = (closed: string): boolean =>
  [process.execPath, process.cwd(), ...process.argv.slice(1)].some((path) =>
    `${realPath(path)}${sep}`.startsWith(`${closed}${sep}`),
  );

/** Path without links. A missing path has none. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

/**
 * Makes a verb of root the owner of the state folder for good. Files in there could be links to anything, so they must
 * not be read or written as root. If the owner cannot reach the folder, or the program, root stays and links are refused. Null: continue.
 * A string is the reason to stop.
 */
export function becomeOwner(state: string): string | null {
  if (process.getuid?.() !== 0) return null;
  const folder = resolve(state);
  const owner = ownerBefore() ?? ownerOf(folder);
  if (owner.uid === 0) return null;
  if (!canReach(owner, folder) || !canReach(owner, shipped("."))) return linkIn(folder);
  process.setgroups?.([owner.gid]);
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
  return null;
}

/** `becomeOwner` for a verb that stays root. */
export const refuseLinks = (state: string): string | null =>
  process.getuid?.() === 0 && ownerOf(resolve(state)).uid !== 0 ? linkIn(resolve(state)) : null;

/** True if the owner reaches the folder, or the nearest existing one above it. */
const canReach = (owner: Owner, folder: string): boolean =>
  folder !== dirname(folder) && asOwner(owner, () => isThere(folder)) !== "denied";

/** Refuses the first link or device in the folder. Null: there is none. */
function linkIn(folder: string): string | null {
  if (isThere(folder) !== "yes") return null;
  for (const name of readdirSync(folder)) {
    const found = lstatSync(join(folder, name));
    if (leadsElsewhere(found))
      return `state: ${join(folder, name)} is a link or a device, which setpointd never creates: root does not follow it`;
  }
  return null;
}

const leadsElsewhere = (found: Stats): boolean =>
  !(found.isDirectory() || found.isSocket() || (found.isFile() && found.nlink === 1));

/** Timeout for requests that read a lot: an event of a whole fleet, or the whole record. */
export const LONG_PATIENCE_MS = 600_000;

interface ReadOptions<T> {
  /** Handles a broken record. */
  readonly onBroken?: (broken: Broken) => T;
  /** `refuse`: a state of an earlier version stays as it is. Absent: it is upgraded. */
  readonly older?: OnOlder;
}

/**
 * Requests JSON from the running daemon, or reads the same from the stored state where none runs. A string is the reason
 * for a failure. `path`: of the control socket.
 */
export async function askOrRead<T>(
  site: StateOfSite,
  path: string,
  read: (opened: OpenedState) => T | Promise<T>,
  { patienceMs, ...options }: ReadOptions<T> & { readonly patienceMs?: number } = {},
): Promise<T | string> {
  const answer = await askDaemon(site.state, "GET", path, null, patienceMs);
  if (answer.kind === "absent") return withState(site, read, options);
  return answer.kind === "failed" ? answer.reason : (answer.body as T);
}

/** Opens the stored state for a verb. Creates none. A string is the reason why it cannot be opened. */
export async function withState<T>(
  site: StateOfSite,
  use: (opened: OpenedState) => T | Promise<T>,
  { onBroken, older = "upgrade" }: ReadOptions<T> = {},
): Promise<T | string> {
  // Only a verb without a daemon needs them, and the log only a state that can be opened.
  const { missingOffline, openOffline } = await import("../daemon/offline.ts");
  const missing = missingOffline(site);
  if (missing !== null) return missing;
  const { logger } = await import("./logger.ts");
  const machine = { now: () => instant(Date.now()), randomBytes, log: logger(2, "error") };
  const opened = await openOffline(site, machine, { older });
  if (!opened.ok && opened.broken !== undefined && onBroken !== undefined) return onBroken(opened.broken);
  if (!opened.ok) return opened.isMissing ? opened.reason : `the state cannot be read: ${opened.reason}`;
  await using _store = opened.store;
  return await use(opened);
}

/** Keys of a site that are in its database. Null: they are files in the state folder. */
export async function keysFromDatabase(
  site: StateOfSite,
): ReturnType<typeof import("../daemon/offline.ts").keysInDatabase> {
  if ((site.database?.siteKeys ?? null) === null) return null;
  const { keysInDatabase } = await import("../daemon/offline.ts");
  const { logger } = await import("./logger.ts");
  return await keysInDatabase(site, { log: logger(2, "error") });
}
