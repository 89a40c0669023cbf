// Starts the program in a checkout. JavaScript, because Node needs 40 ms to load what strips types, and needs it only
// for code that is not in the cache.
import { lstatSync, mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { join } from "node:path";

/**
 * Lets Node keep compiled code below `node_modules`, in a folder that only this user can read or write. Compiled code
 * is executed as it is found: a folder of another user, or one that others may write, is not used. In the checkout of
 * another user no folder is created: its owner could not remove it.
 */
function keepCompiledCode(root) {
  const user = process.geteuid?.();
  const isOwn = (path) => lstatSync(path).uid === user;
  const folder = join(root, "node_modules/.cache/setpointd");
  try {
    if (!isOwn(root) || !isOwn(join(root, "node_modules"))) return;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(folder);
    if (found.isDirectory() && found.uid === user && (found.mode & 0o077) === 0) enableCompileCache(folder);
  } catch {
    // For example a file system that is read-only: the program compiles itself at each start.
  }
}

/** Interval of the checks of the parent, ms. */
const PARENT_EVERY = 500;
/**
 * Stops with `npm start`. A SIGTERM to npm ends npm and its shell, and reaches nothing that the shell runs. The program
 * may have received the signal that ended npm: it stops once all the same.
 */
function stopWithNpm() {
  if (process.env.npm_lifecycle_event !== "start") return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, "SIGTERM");
  }, PARENT_EVERY);
  watch.unref();
}

// Cached code must not be readable to others either: the mask holds before the folder is created.
process.umask(0o077);
keepCompiledCode(join(import.meta.dirname, ".."));
stopWithNpm();
await import("../src/main.ts");
