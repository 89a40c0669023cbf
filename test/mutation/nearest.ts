import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const IMPORTED = /(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;
/** All TypeScript files of a folder, from the root of the project. */
export const filesIn = (root: string, folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`)
    .toSorted();

const importsOf = (root: string, file: string): readonly string[] =>
  [...readFileSync(join(root, file), "utf8").matchAll(IMPORTED)].map(([, path = ""]) =>
    normalize(join(dirname(file), path)),
  );

/** The folders of tests that exercise a source file: its own, and for the pure core the pipelines that use it. */
function roomsOf(file: string): readonly string[] {
  const own = `${dirname(file.replace(/^src\//, "test/"))}/`;
  return own.startsWith("test/control/") ? [own, "test/control/", "test/scenarios/"] : [own];
}

/**
 * Finds the tests nearest to a source file, as groups to be run one after the other: the mirror test, those that
 * import the file themselves, those that reach it through other source files. A helper of the tests counts as a part of
 * each test that imports it.
 */
export function nearestTests(root: string): (file: string) => readonly (readonly string[])[] {
  const imports = new Map(
    [...filesIn(root, "src"), ...filesIn(root, "test")].map((file) => [file, importsOf(root, file)]),
  );
  /** The files that a test imports, followed through those that begin with this path. */
  const reachedFrom = (file: string, through: string, seen = new Set<string>()): ReadonlySet<string> => {
    for (const imported of imports.get(file) ?? []) {
      if (seen.has(imported)) continue;
      seen.add(imported);
      if (imported.startsWith(through)) reachedFrom(imported, through, seen);
    }
    return seen;
  };
  const tests = [...imports.keys()]
    .filter((file) => file.endsWith(".test.ts"))
    .map((test) => ({ test, imported: reachedFrom(test, "test/"), reached: reachedFrom(test, "") }));

  return (file) => {
    const mirror = file.replace(/^src\//, "test/").replace(/\.ts$/, ".test.ts");
    const rooms = roomsOf(file);
    const near = tests.filter(({ test }) => test !== mirror && rooms.some((room) => test.startsWith(room)));
    const groups = [
      tests.filter(({ test }) => test === mirror),
      near.filter(({ imported }) => imported.has(file)),
      near.filter(({ imported, reached }) => !imported.has(file) && reached.has(file)),
    ];
    return groups.filter((group) => group.length > 0).map((group) => group.map(({ test }) => test));
  };
}
