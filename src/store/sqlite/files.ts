import {
  accessSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lchownSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { fileFault, type Fault, refused } from "./fault.ts";

/** Only then does a new name in the directory survive a power cut. */
export const syncDirectory = (directory: string): void => syncFile(directory);

/** What was written to it survives a power cut. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Made for its owner alone (0700) where missing. Null: it is there and can be written to. */
export function prepareDirectory(directory: string): Fault | null {
  try {
    if (!existsSync(directory)) {
      makeDirectory(resolve(directory));
      syncDirectory(dirname(resolve(directory)));
    }
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return deniedState(directory, error) ?? fileFault(error);
  }
}

/** Why this user cannot use or make the directory, found out without making it. Null: it can. */
export function stateTrouble(directory: string): string | null {
  let nearest = resolve(directory);
  while (!existsSync(nearest) && nearest !== dirname(nearest)) nearest = dirname(nearest);
  try {
    accessSync(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return (deniedState(directory, error) ?? fileFault(error)).reason;
  }
}

/** Where it is only that this user may not: who may, and how it becomes so. Null: it is something else. */
export function deniedState(directory: string, error: unknown): Fault | null {
  const code = error instanceof Error && "code" in error ? error.code : null;
  if (code !== "EACCES" && code !== "EPERM") return null;
  return refused(
    `state: ${directory} cannot be used by this user (permission denied): give it to the user that runs setpointd, mode 0700`,
  );
}

/** Node's own recursive mkdir never ends where a file system calls every new name missing, as /proc does. */
function makeDirectory(directory: string): void {
  const parent = dirname(directory);
  if (!existsSync(parent)) makeDirectory(parent);
  mkdirSync(directory, { mode: 0o700 });
}

/** Whole or not at all, and for good: on return it survives a power cut. Throws file system errors. */
export function replaceFile(path: string, content: string | Buffer): void {
  const draft = writeDraft(path, Buffer.from(content));
  renameSync(draft, path);
  syncDirectory(dirname(path));
}

/** As `replaceFile`, but a file that is there already stays as it is: of two that race, the first wins. */
export function placeFile(path: string, content: Buffer): void {
  const draft = writeDraft(path, content);
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(draft);
  }
  syncDirectory(dirname(path));
}

/**
 * What root makes in the daemon's folder must be the daemon's, or that could not open it. By name, never through a
 * link; not through a descriptor, as closing a second one drops SQLite's lock.
 */
export function leaveToOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  lchownSync(path, uid, gid);
}

/** The same for a file that is open anyway. `path`: where it is. */
export function leaveOpenToOwner(descriptor: number, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  fchownSync(descriptor, uid, gid);
}

/** Opens a file of ours, never what a link in its place leads to. Throws file system errors. */
export const openOwn = (path: string, flags: number): number =>
  openSync(path, flags | constants.O_NOFOLLOW, 0o600);

/**
 * Reads a file of the state folder. In the folder of another user, root reads a file of one name only: a link or a
 * pipe there may lead anywhere. Throws file system errors.
 */
export function readOwn(path: string): Buffer {
  if (!isForeign(path)) return readFileSync(path);
  const descriptor = openForeign(path);
  try {
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Copies a file of the state folder, under the rules of `readOwn`. Throws file system errors. */
export function copyOwn(from: string, to: string): void {
  if (!isForeign(from)) return copyFileSync(from, to, constants.COPYFILE_FICLONE);
  const descriptor = openForeign(from);
  try {
    copyFileSync(`/dev/fd/${descriptor}`, to, constants.COPYFILE_FICLONE);
  } finally {
    closeSync(descriptor);
  }
}

/** Root, in the folder of another user. */
const isForeign = (path: string): boolean => process.getuid?.() === 0 && statSync(dirname(path)).uid !== 0;

/** Opens a file in the folder of another user for reading. */
function openForeign(path: string): number {
  let descriptor: number;
  try {
    descriptor = openOwn(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const isLink = error instanceof Error && "code" in error && error.code === "ELOOP";
    throw isLink ? notOurs(path) : error;
  }
  const found = fstatSync(descriptor);
  if (found.isFile() && found.nlink === 1) return descriptor;
  closeSync(descriptor);
  throw notOurs(path);
}

/** As an error of the file system. */
const notOurs = (path: string): Error =>
  Object.assign(
    new Error(`${path} is a link or a device, which setpointd never makes: root does not follow it`),
    { syscall: "open" },
  );

function writeDraft(path: string, content: Buffer): string {
  const draft = `${path}.${process.pid}`;
  const descriptor = openOwn(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
  try {
    leaveOpenToOwner(descriptor, draft);
    writeSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return draft;
}
