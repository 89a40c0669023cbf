import { fileFault } from "../store/fault.ts";
import { type Moved, MoveProgress, NotMoved } from "../store/movedState.ts";
import { refuseKnownSite, storeInDatabase, useDatabase } from "../store/postgres/move.ts";
import { refuseKnownState, storeInFolder, useFolder } from "../store/sqlite/move.ts";
import type { Machine } from "./edges.ts";
import { databaseOptions, type StateOfSite } from "./offline.ts";

/**
 * Copies the whole state of a stopped site between a folder and a database, and verifies the copy. A string is the reason
 * why nothing was moved.
 */
export async function moveState(
  from: StateOfSite,
  to: StateOfSite,
  machine: Pick<Machine, "now" | "randomBytes" | "log" | "monotonic">,
  print: (line: string) => void,
): Promise<Moved | string> {
  const { now, monotonic, randomBytes: random } = machine;
  const progress = new MoveProgress(print, monotonic);
  const folderOf = ({ state, keys }: StateOfSite) => ({
    directory: state,
    keys,
    now,
    monotonic,
    random,
    progress,
  });
  if (from.site.id !== to.site.id)
    return `the target is a configuration of the site ${to.site.id}, and this is ${from.site.id}`;
  try {
    if (from.database === null && to.database !== null) {
      const options = { ...databaseOptions(to, to.database, machine), progress };
      await refuseKnownSite(options);
      return await useFolder(folderOf(from), (state) => storeInDatabase(options, state));
    }
    if (from.database !== null && to.database === null) {
      refuseKnownState(to.state);
      return await useDatabase({ ...databaseOptions(from, from.database, machine), progress }, (state) =>
        storeInFolder(folderOf(to), state),
      );
    }
  } catch (error) {
    return error instanceof NotMoved ? error.message : fileFault(error).reason;
  }
  return from.database === null
    ? "both are folders: setpointd backup copies a folder, and docs/backup.md says how to restore it"
    : "both are databases: pg_dump copies a schema, as docs/two-gateways.md says";
}
