import { dirname } from "node:path";
import { gzipSync } from "node:zlib";

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
function whole(entries: readonly Entry[]): readonly Entry[] {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  for (const { path } of entries) {
    for (let above = dirname(path); above !== "."; above = dirname(above)) {
      if (!byPath.has(above)) byPath.set(above, folder(above));
    }
  }
  return [...byPath.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

const BLOCK = 512;
/** Longer ones would need the prefix field of ustar; we have none. */
const LONGEST_PATH = 100;

/** A gzipped ustar archive that depends on nothing but its arguments. `seconds` since the epoch is when all of it was made. */
export function tarGz(entries: readonly Entry[], seconds: number, prefix: string): Buffer {
  const blocks = whole(entries).flatMap((entry) => [
    header(entry, seconds, prefix),
    ...(entry.kind === "file" ? [entry.content, padding(entry.content.length)] : []),
  ]);
  // zlib writes no time and no name into the header of gzip.
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: 6 });
}

function header(entry: Entry, seconds: number, prefix: string): Buffer {
  const path = `${prefix}${entry.path}${entry.kind === "folder" ? "/" : ""}`;
  if (Buffer.byteLength(path) > LONGEST_PATH) throw new Error(`${path} is too long for a ustar header`);
  const block = Buffer.alloc(BLOCK);
  const number = (value: number, at: number, digits: number): void => {
    block.write(value.toString(8).padStart(digits, "0"), at, "latin1");
  };
  block.write(path, 0, "utf8");
  number(entry.mode, 100, 7);
  number(0, 108, 7);
  number(0, 116, 7);
  number(entry.kind === "file" ? entry.content.length : 0, 124, 11);
  number(seconds, 136, 11);
  block.write(" ".repeat(8), 148, "latin1");
  block.write(entry.kind === "file" ? "0" : "5", 156, "latin1");
  block.write("ustar\x0000", 257, "latin1");
  block.write("root", 265, "latin1");
  block.write("root", 297, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

const padding = (length: number): Buffer => Buffer.alloc((BLOCK - (length % BLOCK)) % BLOCK);
