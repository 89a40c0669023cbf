import { statSync } from "node:fs";
import { join, resolve } from "node:path";

import type { Finding } from "../explain.ts";
import { exposedFile, exposedFolder, type Place } from "../fields/secret.ts";

/**
 * Absolute path. Relative paths start in $STATE_DIRECTORY (its first entry), otherwise beside the
 * configuration.
 */
export function statePath(path: string, place: Place): string {
  const base = place.env["STATE_DIRECTORY"]?.split(":")[0] || place.directory;
  return resolve(base, path);
}

/** The key and the record. */
const FILES = ["site.key", "setpointd.db"];

const EXPECTED = "a directory of its own for this daemon, which is made if it is missing, e.g. ./state";

/**
 * Socket for `setpointd status`: in $RUNTIME_DIRECTORY, which the daemon's group may enter, otherwise in
 * the state folder.
 */
export const statusSocketPath = (state: string, { env }: Place): string =>
  resolve(env["RUNTIME_DIRECTORY"]?.split(":")[0] || state, "status.sock");

/** As `statePath`. Warns if others can read its files. Reports a file in the place of the directory. */
export function stateDirectory(
  path: string,
  place: Place,
  report: (finding: Finding) => void,
  doubt: (finding: Finding) => void,
): string {
  const state = statePath(path, place);
  const found = obstacle(state);
  if (found !== null) report({ path: ["state"], found, expected: EXPECTED });
  const exposed = [exposedFolder(state), ...FILES.map((name) => exposedFile(join(state, name)))];
  for (const found of exposed)
    if (found !== null)
      doubt({ path: ["state"], found, expected: "for the user that runs setpointd alone: chmod -R go= it" });
  return state;
}

/** `check` may run as another user, so it cannot test whether the daemon may write here. */
function obstacle(state: string): string | null {
  try {
    return statSync(state).isDirectory() ? null : `${state}, which is not a directory`;
  } catch (error) {
    const blocked = error instanceof Error && "code" in error && error.code === "ENOTDIR";
    return blocked ? `${state}, where a file stands in the way` : null;
  }
}
