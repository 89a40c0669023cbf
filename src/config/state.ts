import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { Finding } from "./mistakes.ts";
import type { Place } from "./secret.ts";

/** Absolute; a relative one is in $STATE_DIRECTORY (the first, where systemd lists several), else beside the configuration. */
export function statePath(path: string, place: Place): string {
  const base = place.env["STATE_DIRECTORY"]?.split(":")[0] || place.directory;
  return resolve(base, path);
}

const EXPECTED = "a directory of its own for this daemon, which is made if it is missing, e.g. ./state";

/** As `statePath`; reported where no directory is and none can be made, because a file has that name. */
export function stateDirectory(path: string, place: Place, report: (finding: Finding) => void): string {
  const state = statePath(path, place);
  const found = obstacle(state);
  if (found !== null) report({ path: ["state"], found, expected: EXPECTED });
  return state;
}

/** Whether who runs the daemon may write there is not for `check` to say: it may be run by someone else. */
function obstacle(state: string): string | null {
  try {
    return statSync(state).isDirectory() ? null : `${state}, which is not a directory`;
  } catch (error) {
    const blocked = error instanceof Error && "code" in error && error.code === "ENOTDIR";
    return blocked ? `${state}, where a file stands in the way` : null;
  }
}
