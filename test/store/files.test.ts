import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

/** Replaces a file in a process whose files may have at most 20 KB, as on a disk with room for a part. */
function replaced(path: string, size: number): string {
  const code = `import { replaceFile } from ${JSON.stringify(new URL("../../src/store/files.ts", import.meta.url))};
    try { replaceFile(process.argv[1], "y".repeat(${size})); console.log("replaced"); }
    catch (error) { console.log(error.code); }`;
  const limited = 'ulimit -f 40; exec "$0" --input-type=module -e "$1" "$2"';
  return spawnSync("sh", ["-c", limited, process.execPath, code, path], { encoding: "utf8" }).stdout.trim();
}

test("a file that there is no room for keeps its content, and leaves no draft", () => {
  const directory = mkdtempSync(join(tmpdir(), "files-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "users.json");
  writeFileSync(path, "x");
  const size = () => readFileSync(path).length;
  expect([replaced(path, 1_000), size()]).toEqual(["replaced", 1_000]);
  expect([replaced(path, 100_000), size()]).toEqual(["EFBIG", 1_000]);
  expect(readdirSync(directory)).toEqual(["users.json"]);
});
