import { isBuiltin } from "node:module";
import { relative } from "node:path";

import { rolldown } from "rolldown";

export interface Bundle {
  /** By path: `setpointd.mjs`, and in `parts/` what a verb imports or starts as a thread when it needs it. */
  readonly files: ReadonlyMap<string, string>;
  /** The npm packages that are in it, as the lockfile names them, e.g. `node_modules/zod`; sorted. */
  readonly packages: readonly string[];
}

/** The daemon with all it needs in a few readable files that run without node_modules. */
export async function bundle(root: string): Promise<Bundle> {
  await using build = await rolldown({
    input: { setpointd: "src/main.ts", webhookThread: "src/daemon/fleet/webhookThread.ts" },
    cwd: root,
    platform: "node",
    // The simulated partner and chargers are for a checkout: what is not in the package cannot be attacked there.
    external: [/\/cli\/demo\.ts$/, "./demo.ts"],
  });
  const { output } = await build.generate({
    format: "esm",
    // A thread is started from the file beside the one that starts it.
    entryFileNames: ({ name }) => (name === "setpointd" ? "setpointd.mjs" : "parts/[name].mjs"),
    chunkFileNames: "parts/[name]-[hash].mjs",
  });
  const chunks = output.map((part) => {
    if (part.type === "asset") throw new Error(`the bundle is not whole: ${part.fileName}`);
    return part;
  });
  const files = new Map(chunks.map(({ fileName, code }) => [fileName, code]));
  const missing = chunks
    .flatMap(({ imports }) => imports)
    .filter((name) => !isBuiltin(name) && !files.has(name));
  if (missing.length > 0) throw new Error(`the bundle is not whole: ${missing.join(", ")}`);
  // In a bundle these would be true for everyone, or point beside the package: src/platform/packageRoot.ts is the way.
  for (const [path, code] of files) {
    for (const trap of ["import.meta.main", 'new URL("../'])
      if (code.includes(trap)) throw new Error(`${path} of the bundle contains ${trap}`);
  }
  return { files, packages: packagesOf(root, chunks) };
}

/** The npm packages that are in these chunks. */
export function packagesOf(
  root: string,
  chunks: readonly { readonly moduleIds: readonly string[] }[],
): readonly string[] {
  const packages = chunks
    .flatMap(({ moduleIds }) => moduleIds)
    .flatMap((id) => {
      const path = relative(root, id).match(/^.*node_modules\/(@[^/]+\/)?[^/]+/);
      return path === null ? [] : [path[0]];
    });
  return [...new Set(packages)].toSorted();
}
