import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** What a file may leave behind for the next one in its process: a clock that stands, or another environment. */
const GLOBALS =
  /useFakeTimers|globalThis|vi\.(stub|mock|doMock|spyOn|setSystemTime)|process\.(chdir|umask)|delete process\.env|process\.env(\[[^\]]*\]|\.\w+)? = /;
const IMPORT = /from "(\.{1,2}\/[^"]+)"/g;

const known = new Map<string, boolean>();

/** True: this file of a test, or one below `test/` that it imports, replaces timers or other globals. */
export function replacesGlobals(file: string): boolean {
  const before = known.get(file);
  if (before !== undefined) return before;
  // Files may import each other in a circle.
  known.set(file, false);
  const text = readFileSync(file, "utf8");
  const imported = [...text.matchAll(IMPORT)].map(([, path = ""]) => resolve(dirname(file), path));
  const does = GLOBALS.test(text) || imported.some((one) => one.includes("/test/") && replacesGlobals(one));
  known.set(file, does);
  return does;
}
