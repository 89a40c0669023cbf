import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";

/** The nearest package.json is at the root of a checkout, and beside the one file that a package is bundled into. */
const manifest = findPackageJSON(import.meta.url) ?? "package.json";

/** Absolute path of a file that comes with the program, e.g. `config/demo.yaml`: the same from a checkout and installed. */
export const shipped = (path: string): string => join(dirname(manifest), path);
