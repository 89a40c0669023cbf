import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Locked } from "./lock.ts";

/** As Node and npm call it. */
export type Arch = "x64" | "arm64";

export interface Runtime {
  readonly node: Buffer;
  readonly licence: Buffer;
}

/**
 * The runtime for an architecture: the one that npm installed and verified for this machine, or the tarball of another's,
 * verified here against the lockfile. Null: it is another's, and the registry cannot be reached.
 */
export function runtimeFor(arch: Arch, root: string, locked: Locked): Runtime | null {
  const installed = join(root, "node_modules", `node-linux-${arch}`);
  if (existsSync(installed)) return readRuntime(installed);
  const scratch = mkdtempSync(join(tmpdir(), "setpointd-pack-"));
  try {
    const tarball = fetched(`${locked.name}@${locked.version}`, scratch);
    if (tarball === null) return null;
    if (hash("sha512", readFileSync(tarball)) !== locked.sha512)
      throw new Error(`${locked.name}@${locked.version} is not what the lockfile has`);
    execFileSync("tar", ["-xzf", tarball, "-C", scratch, "package/bin/node", "package/LICENSE"]);
    return readRuntime(join(scratch, "package"));
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

const readRuntime = (folder: string): Runtime => ({
  node: readFileSync(join(folder, "bin/node")),
  licence: readFileSync(join(folder, "LICENSE")),
});

function fetched(spec: string, into: string): string | null {
  try {
    const said = execFileSync("npm", ["pack", spec, "--pack-destination", into, "--ignore-scripts"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return join(into, said.trim().split("\n").at(-1) ?? "");
  } catch (error) {
    if (error instanceof Error && "status" in error) return null;
    throw error;
  }
}
