import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Instant } from "../core/units.ts";
import { replaceFile } from "./files.ts";

const FILE = "epoch";

/** Whether a run was numbered here: a copy that was put back comes without. */
export const hasEpoch = (directory: string): boolean => existsSync(join(directory, FILE));

/**
 * The epoch of this run, stored before it is used: above the last one whatever the clock says, and the Unix
 * time in seconds where that is more, so that it also rises when the file is lost (DESIGN 5.7).
 * `seen`: the highest epoch in any stored command, for the day when file and clock are both wrong.
 * Throws file system errors.
 */
export function nextEpoch(directory: string, now: Instant, seen: number): number {
  const path = join(directory, FILE);
  const epoch = Math.max(stored(path) + 1, seen + 1, Math.floor(now / 1000));
  replaceFile(path, `${epoch}\n`);
  return epoch;
}

/** Zero where there is none, or where it is not a number. */
function stored(path: string): number {
  if (!existsSync(path)) return 0;
  const text = readFileSync(path, "latin1").trim();
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}
