import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";

/** Nearest package.json: at the root of a checkout, or beside the bundle of an installed package. */
const manifest = findPackageJSON(import.meta.url) ?? "package.json";

/** Absolute path of a file that ships with the program, e.g. `config/demo.yaml`. */
export const shipped = (path: string): string => join(dirname(manifest), path);

/** Version of the program. */
export const version = (): string => {
  const content: unknown = JSON.parse(readFileSync(manifest, "utf8"));
  return typeof content === "object" && content !== null && "version" in content
    ? String(content.version)
    : "?";
};
