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

/** Campaigns, whole daemons and killed processes take minutes: they are no test of one source file. */
const SLOW =
  /^test\/(?:simulate|torture|failover|soak|fuzz|powercut|hostile|silences|e2e|page|bench|gateway|packaging)\/|^test\/store\/sqlite\/(?:crash|damage)\.test/;

/** Tests of the folder of a source file, and for the pure core the pipelines that use it. */
const isNear = (test: string, file: string): boolean =>
  test.startsWith(`${dirname(file.replace(/^src\//, "test/"))}/`) ||
  (file.startsWith("src/control/") && dirname(test) === "test/control");

/**
 * Finds the tests nearest to a source file, as groups to be run one after the other: the mirror test, those that
 * import the file themselves (of any room), those of its room that reach it through other source files; without those, those of
 * any room. A helper of the tests counts as a part of each test that imports it. `most`: of these groups, at least one.
 */
export function nearestTests(root: string, most = 3): (file: string) => readonly (readonly string[])[] {
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
    .filter((file) => file.endsWith(".test.ts") && !SLOW.test(file))
    .map((test) => ({ test, imported: reachedFrom(test, "test/"), reached: reachedFrom(test, "") }));

  return (file) => {
    const mirror = file.replace(/^src\//, "test/").replace(/\.ts$/, ".test.ts");
    const others = tests.filter(({ test }) => test !== mirror);
    const importing = others.filter(({ imported }) => imported.has(file));
    const reaching = others.filter(({ imported, reached }) => !imported.has(file) && reached.has(file));
    const near = reaching.filter(({ test }) => isNear(test, file));
    const groups = [
      tests.filter(({ test }) => test === mirror),
      importing,
      near.length + importing.length > 0 ? near : reaching,
    ];
    const found = groups.map((group) => group.map(({ test }) => test));
    const first = found.slice(0, most).filter((group) => group.length > 0);
    return first.length > 0 ? first : found.filter((group) => group.length > 0);
  };
}
