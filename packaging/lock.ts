import { readFileSync } from "node:fs";
import { join } from "node:path";

import * as z from "zod";

const locked = z.object({
  version: z.string(),
  integrity: z.string().optional(),
  license: z.string().optional(),
});

const lockfile = z.object({ packages: z.record(z.string(), z.unknown()) });

/** One package as the lockfile has it. */
export interface Locked {
  readonly name: string;
  readonly version: string;
  /** SPDX identifier or expression. */
  readonly licence: string;
  /** SHA-512 of its tarball, in hex. */
  readonly sha512: string;
}

/** Looks a package up by its place, e.g. `node_modules/zod`. Throws where it is not locked with a hash: nothing else is shipped. */
export function readLock(root: string): (place: string) => Locked {
  const { packages } = lockfile.parse(JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")));
  return (place) => {
    const { version, integrity, license } = locked.parse(packages[place]);
    const [algorithm, digest] = integrity?.split("-", 2) ?? [];
    if (algorithm !== "sha512" || digest === undefined)
      throw new Error(`${place} is locked without a SHA-512`);
    return {
      name: place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length),
      version,
      licence: license ?? "NOASSERTION",
      sha512: Buffer.from(digest, "base64").toString("hex"),
    };
  };
}
