import { statSync } from "node:fs";

/** Permission bits of the others, and the right of the group to write: a secret may be the group's to read. */
const OTHERS = 0o027;
/** Of a file that setpointd makes for its owner alone. */
const NOT_THE_OWNER = 0o077;

/** `/etc/x, which others can read (mode 0644)`; null: they cannot, or there is nothing. */
export const exposedSecret = (path: string): string | null => exposed(path, OTHERS & ~0o001);
export const exposedFile = (path: string): string | null => exposed(path, NOT_THE_OWNER);
/** A folder that the group may look into is for `setpointd status`. */
export const exposedFolder = (path: string): string | null => exposed(path, OTHERS);

function exposed(path: string, bits: number): string | null {
  try {
    const mode = statSync(path).mode & 0o777;
    if ((mode & bits) === 0) return null;
    const can = (mode & bits & 0o022) === 0 ? "read" : "change";
    return `${path}, which others can ${can} (mode 0${mode.toString(8)})`;
  } catch {
    return null;
  }
}
