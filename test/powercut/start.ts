/** `npm run powercut`: runs the harness with mounts of its own, or says why this machine cannot. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const HARNESS = fileURLToPath(new URL("powercut.ts", import.meta.url));
const PROBE =
  "set -e; d=$(mktemp -d); trap 'umount -l $d/m 2>/dev/null; rm -rf $d' EXIT; mkdir $d/m; truncate -s 1M $d/i; mkfs.ext4 -q -F $d/i; mount -o loop $d/i $d/m";

/** Null: it can. */
export function whyNot(): string | null {
  if (process.platform !== "linux") return "loop devices are needed: Linux only";
  if (process.getuid?.() !== 0) return "mounting needs root";
  const probe = spawnSync("unshare", ["--mount", "sh", "-c", PROBE], { encoding: "utf8" });
  return probe.status === 0 ? null : `no loop device can be mounted: ${probe.stderr || String(probe.error)}`;
}

/** The harness to its end; `said` is its line of JSON. */
export function powercut(args: readonly string[]): { readonly code: number | null; readonly said: string } {
  const run = spawnSync("unshare", ["--mount", process.execPath, HARNESS, ...args], { encoding: "utf8" });
  return { code: run.status, said: run.stdout.trim() || run.stderr };
}

if (import.meta.main) {
  const reason = whyNot();
  const { code, said } =
    reason === null ? powercut(process.argv.slice(2)) : { code: 0, said: `skipped: ${reason}` };
  process.stdout.write(`${said}\n`);
  process.exitCode = code ?? 1;
}
