import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";

/** Nearest package.json: at the root of a checkout, or beside the bundle of an installed package. */
const manifest = findPackageJSON(import.meta.url) ?? "package.json";

/** Absolute path of a file that ships with the program, e.g. `config/demo.yaml`. */
export const shipped = (path: string): string => join(dirname(manifest), path);
