import { spawnSync } from "node:child_process";
import { lstatSync, realpathSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";

import { asOwner, isThere, type Owner, ownerOf } from "./ownerOf.ts";

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
export function ownerBefore(): Owner | null {
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
