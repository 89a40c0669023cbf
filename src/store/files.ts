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
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, resolve } from "node:path";

import { codeOf } from "../platform/text.ts";
import { type SealedHead, unsealed } from "./chain.ts";
import { fileFault, type Fault, refused } from "./fault.ts";

/** Name of the SQLite database in the state folder. */
export const DATABASE = "setpointd.db";

/** Without this sync, a new name in the directory does not survive a power cut. */
export const syncDirectory = (directory: string): void => syncFile(directory);

/** The written content survives a power cut once this returns. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Creates the directory for its owner alone (0700) if missing. Null: it exists and is writable. */
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

/** Reason why this user cannot use or create the directory, found without creating it. Null: it can. */
export function stateDirectoryProblem(directory: string): string | null {
  let nearest = resolve(directory);
  while (!existsSync(nearest) && nearest !== dirname(nearest)) nearest = dirname(nearest);
  try {
    accessSync(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return (deniedState(directory, error) ?? fileFault(error)).reason;
  }
}

/** A sentence for missing permissions: who needs access, and which mode. Null: another error. */
export function deniedState(directory: string, error: unknown): Fault | null {
  const code = codeOf(error);
  if (code !== "EACCES" && code !== "EPERM") return null;
  return refused(
    `state: ${directory} cannot be used by this user (permission denied): give it to the user that runs setpointd, mode 0700`,
  );
}

/** Node's recursive mkdir never ends where the file system calls every new name missing, as /proc does. */
function makeDirectory(directory: string): void {
  const parent = dirname(directory);
  if (!existsSync(parent)) makeDirectory(parent);
  mkdirSync(directory, { mode: 0o700 });
}

/** Replaces the file as a whole or not at all. On return it survives a power cut. Throws file system errors. */
export function replaceFile(path: string, content: string | Buffer): void {
  const draft = writeDraft(path, Buffer.from(content));
  renameSync(draft, path);
  syncDirectory(dirname(path));
}

/** `replaceFile` that leaves an existing file: if two processes race, the first wins. */
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
 * Gives a file that root created to the owner of the folder; the daemon could not open it otherwise. By name,
 * never through a link. Not through a descriptor, as closing a second one drops SQLite's lock.
 */
export function leaveToOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  lchownSync(path, uid, gid);
}

/** `leaveToOwner` for an open file at `path`. */
export function leaveOpenToOwner(descriptor: number, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  fchownSync(descriptor, uid, gid);
}

/** Opens one of our files, never the target of a link. Throws file system errors. */
export const openOwn = (path: string, flags: number): number =>
  openSync(path, flags | constants.O_NOFOLLOW, 0o600);

/**
 * Reads a file of the state folder. In another user's folder, root reads only a plain file with one name: a
 * link or a pipe there may lead anywhere. Throws file system errors.
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

/** True: we are root, and the folder belongs to another user. */
const isForeign = (path: string): boolean => process.getuid?.() === 0 && statSync(dirname(path)).uid !== 0;

/** Opens a file in another user's folder for reading. */
function openForeign(path: string): number {
  let descriptor: number;
  try {
    descriptor = openOwn(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw codeOf(error) === "ELOOP" ? notOurs(path) : error;
  }
  const found = fstatSync(descriptor);
  if (found.isFile() && found.nlink === 1) return descriptor;
  closeSync(descriptor);
  throw notOurs(path);
}

/** Looks like a file system error, so that callers report it as one. */
const notOurs = (path: string): Error =>
  Object.assign(
    new Error(`${path} is a link or a device, which setpointd never creates: root does not follow it`),
    { syscall: "open" },
  );

function writeDraft(path: string, content: Buffer): string {
  const draft = `${path}.${process.pid}`;
  const descriptor = openOwn(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
  try {
    leaveOpenToOwner(descriptor, draft);
    // `writeSync` writes a part on a disk with room for a part, and reports no error.
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
  return draft;
}

/** Name of the witness file in the state directory. */
export const HEAD_FILE = "head";

/**
 * A copy of the head in a file beside the database. It is written after each commit and never synced. SQLite
 * silently drops the end of a damaged write-ahead log, head included; then this file is ahead and shows it.
 */
export class Witness implements Disposable {
  readonly #descriptor: number;

  constructor(path: string) {
    this.#descriptor = openOwn(path, constants.O_RDWR | constants.O_CREAT);
    leaveOpenToOwner(this.#descriptor, path);
  }

  /**
   * Stores a head in the format of `sealed`. False: the file system rejects writes. The rows are safe without
   * it; an outdated witness raises no alarm.
   */
  write(head: string): boolean {
    try {
      writeSync(this.#descriptor, head, 0, "latin1");
      return true;
    } catch {
      return false;
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** The head in the witness file. Null: none, or unreadable. */
export function readWitness(path: string, siteKey: Buffer): SealedHead | null {
  try {
    return unsealed(siteKey, readOwn(path).toString("latin1"));
  } catch {
    return null;
  }
}
