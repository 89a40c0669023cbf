import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { bundle } from "../../packaging/bundle.ts";
import { contents } from "../../packaging/contents.ts";
import { buildPage } from "../../packaging/page.ts";
import { scratchDirectory } from "./depot.ts";

const ROOT = dirname(dirname(import.meta.dirname));
/** Not copied: 120 MB. */
const RUNTIME = "lib/setpointd/node";

/** The program as the package installs it, in a directory of its own. */
interface Installed {
  /** The command, `bin/setpointd`. */
  readonly launcher: string;
  /** The bundle that the command runs. */
  readonly main: string;
  /** Compiled code, as systemd/setpointd.service keeps it: `NODE_COMPILE_CACHE`. */
  readonly cache: string;
}

let built: Promise<Installed> | undefined;

/** Builds once in a run of the bench. The runtime is the one that runs the bench. */
export const installed = (): Promise<Installed> => (built ??= build());

async function build(): Promise<Installed> {
  const directory = scratchDirectory();
  process.once("exit", () => directory[Symbol.dispose]());
  const tree = contents(ROOT, "x64", {
    version: "0.0.0",
    licence: "Apache-2.0",
    seconds: 0,
    bundle: await bundle(ROOT),
    page: await buildPage(ROOT),
    runtime: { node: Buffer.alloc(0), licence: Buffer.alloc(0) },
  });
  for (const entry of tree) {
    const path = join(directory.path, entry.path);
    mkdirSync(entry.kind === "folder" ? path : dirname(path), { recursive: true });
    if (entry.kind === "folder") continue;
    if (entry.path === RUNTIME) symlinkSync(process.execPath, path);
    else writeFileSync(path, entry.content, { mode: entry.mode });
  }
  return {
    launcher: join(directory.path, "bin/setpointd"),
    main: join(directory.path, "lib/setpointd/setpointd.mjs"),
    cache: join(directory.path, "cache"),
  };
}
