import { isBuiltin } from "node:module";
import { relative } from "node:path";

import { rolldown } from "rolldown";

export interface Bundle {
  readonly code: string;
  /** The npm packages that are in it, as the lockfile names them, e.g. `node_modules/zod`; sorted. */
  readonly packages: readonly string[];
}

/** The daemon with all it needs in one readable file that runs without node_modules. */
export async function bundle(root: string): Promise<Bundle> {
  await using build = await rolldown({
    input: "src/main.ts",
    cwd: root,
    platform: "node",
    // The simulated partner and chargers are for a checkout: what is not in the package cannot be attacked there.
    external: [/\/cli\/demo\.ts$/, "./demo.ts"],
  });
  const { output } = await build.generate({ format: "esm", codeSplitting: false });
  const [chunk] = output;
  const missing = chunk.imports.filter((name) => !isBuiltin(name));
  if (output.length > 1 || missing.length > 0)
    throw new Error(
      `the bundle is not whole: ${[...output.map(({ fileName }) => fileName), ...missing].join(", ")}`,
    );
  // In one file these would be true for everyone, or point beside the package: src/platform/packageRoot.ts is the way.
  for (const trap of ["import.meta.main", 'new URL("../']) {
    if (chunk.code.includes(trap)) throw new Error(`the bundle contains ${trap}`);
  }
  const packages = chunk.moduleIds.flatMap((id) => {
    const path = relative(root, id).match(/^.*node_modules\/(@[^/]+\/)?[^/]+/);
    return path === null ? [] : [path[0]];
  });
  return { code: chunk.code, packages: [...new Set(packages)].toSorted() };
}
