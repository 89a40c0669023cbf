import { dirname } from "node:path";

/** Something to be packed: its path, relative and without a leading `./`, and its permissions. Everything belongs to root. */
export type Entry =
  | { readonly kind: "file"; readonly path: string; readonly mode: number; readonly content: Buffer }
  | { readonly kind: "folder"; readonly path: string; readonly mode: number };

export const file = (path: string, content: Buffer | string, mode = 0o644): Entry => ({
  kind: "file",
  path,
  mode,
  content: Buffer.from(content),
});

export const folder = (path: string, mode = 0o755): Entry => ({ kind: "folder", path, mode });

/** Sorted, with every folder before what is in it: the same entries give the same bytes, in whatever order they came. */
export function whole(entries: readonly Entry[]): readonly Entry[] {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  for (const { path } of entries) {
    for (let above = dirname(path); above !== "."; above = dirname(above)) {
      if (!byPath.has(above)) byPath.set(above, folder(above));
    }
  }
  return [...byPath.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
