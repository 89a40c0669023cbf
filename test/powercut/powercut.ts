/**
 * `npm run powercut -- --cuts N --seed N`: cuts the power under a daemon's store again and again, and looks at what
 * is left. Says one line of JSON. Linux and root only, within `unshare --mount`: loop devices, mounts of its own.
 */
import { spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { pino } from "pino";

import { openState } from "../../src/store/sqlite/open.ts";
import { NOON } from "../store/sqlite/words.ts";
import { DiskImage } from "./images.ts";

const ROWS = 3;
/** Then the disk gets full: a new one. */
const CUTS_PER_DISK = 25;

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

const { values } = parseArgs({
  options: {
    cuts: { type: "string", default: "200" },
    seed: { type: "string", default: String(randomInt(1e9)) },
    unsafe: { type: "boolean", default: false },
  },
});
let state = Number(values.seed);
/** In [0, 1): mulberry32. */
function chance(): number {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}

/** A writer on that disk; `acknowledged` rows have been said to be durable. */
function startWriter(directory: string) {
  const unsafe = values.unsafe ? ["--import", here("unsafe.ts")] : [];
  const child = spawn(
    process.execPath,
    [...unsafe, here("../store/sqlite/writer.ts"), directory, String(ROWS)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const writer = { acknowledged: 0, child, gone: once(child, "exit") };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const said: { readonly turn?: number; readonly ok?: boolean } = JSON.parse(line);
    if (said.ok === true) writer.acknowledged = (said.turn ?? 0) + ROWS;
  });
  return writer;
}

/** What is wrong with what a cut left behind; null: nothing. */
function faultIn(directory: string, acknowledged: number): string | null {
  if (!existsSync(join(directory, "setpointd.db")))
    return acknowledged === 0 ? null : "the database is not there";
  const opened = openState(directory, {
    now: () => NOON,
    random: randomBytes,
    keys: { site: null, proof: null },
    log: pino({ level: "silent" }),
  });
  if (!opened.ok) return opened.reason;
  using store = opened.store;
  if (opened.setAside !== null) return "the state was set aside";
  const rows = store.reads.audit({ newest: true, limit: 1 })[0]?.seq ?? 0;
  if (rows < acknowledged) return `${acknowledged - rows} acknowledged rows are lost`;
  if (rows % ROWS !== 0) return "half a commit";
  const verified = store.reads.verify();
  return verified.ok ? null : verified.reason;
}

const folder = mkdtempSync(join(tmpdir(), "powercut-"));
const faults: string[] = [];
let [cuts, most] = [0, 0];
try {
  while (cuts < Number(values.cuts)) {
    using disk = DiskImage.make(folder, "disk", 32);
    const writer = startWriter(join(disk.mounted, "state"));
    try {
      for (let n = 0; n < CUTS_PER_DISK && cuts < Number(values.cuts); n += 1) {
        await sleep(5 + 60 * chance());
        const { acknowledged } = writer;
        using left = disk.cut(folder, "left");
        const fault = faultIn(join(left.mounted, "state"), acknowledged);
        if (fault !== null) faults.push(`cut ${cuts}: ${fault}`);
        cuts += 1;
        most = Math.max(most, acknowledged);
      }
    } finally {
      writer.child.kill("SIGKILL");
      await writer.gone;
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${JSON.stringify({ seed: Number(values.seed), cuts, rows: most, faults })}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
