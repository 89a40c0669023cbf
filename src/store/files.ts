import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
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

/** A verb that root runs on the daemon's state must leave nothing there that the daemon cannot open. */
export function leaveToOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  chownSync(path, uid, gid);
}

function writeDraft(path: string, content: Buffer): string {
  const draft = `${path}.${process.pid}`;
  const descriptor = openSync(draft, "w", 0o600);
  try {
    leaveToOwner(draft);
    writeSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return draft;
}
