import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

import type { Config } from "../../config/schema.ts";
import { configuredCertificates } from "../../daemon/certificates.ts";
import type { Instant } from "../../domain/units.ts";
import type { Trials } from "./trials.ts";

/** Runs a program of the machine. Null: it is not there, or fails. */
export type RunProgram = (name: string, args: readonly string[]) => string | null;

const PROGRAM_WITHIN_MS = 10_000;
const LONGEST_OUTPUT = 256 * 1024 * 1024;

export const runProgram: RunProgram = (name, args) => {
  const { status, stdout, error } = spawnSync(name, args, {
    encoding: "utf8",
    timeout: PROGRAM_WITHIN_MS,
    maxBuffer: LONGEST_OUTPUT,
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C.UTF-8" },
  });
  return error === undefined && status === 0 ? stdout : null;
};

/** Reads whether the clock of this machine is synchronized. */
export function tryTimeService(run: RunProgram, trials: Trials): void {
  trials.about("clock");
  trials.by("timedatectl show");
  const shown = run("timedatectl", ["show", "--property=NTP", "--property=NTPSynchronized"]);
  if (shown === null)
    return trials.untried(
      "time service",
      "timedatectl is not there or does not answer: only the partner's clock is compared",
    );
  const isOn = /^NTP=yes$/m.test(shown);
  if (/^NTPSynchronized=yes$/m.test(shown)) trials.ok("time service", "the clock is synchronized by NTP");
  else
    trials.failed(
      "time service",
      `the clock is not synchronized by NTP, and the time service is ${isOn ? "on" : "off"}`,
      isOn
        ? "a time server that answers: check its address, and UDP port 123 in the firewall"
        : "timedatectl set-ntp true, and a time server that this machine reaches",
    );
}

/** Room for the stop of a run, the reserve and the write-ahead log. */
const LEAST_FREE = 100e6;

/** Checks the folder of the state, and the space for what the configuration lets it keep. */
export function tryDisk({ state, retention, database }: Config, denied: string | null, trials: Trials): void {
  trials.about("disk");
  trials.by(`the rights on ${state}`);
  if (denied !== null)
    return trials.failed(
      "state",
      denied,
      // The kernel mounts a disk read-only after write errors.
      /^EROFS\b/.test(denied)
        ? "a file system that is mounted for writing: dmesg shows whether the disk failed"
        : "the folder of the user that runs setpointd, mode 0700",
    );
  const nearest = nearestFolder(state);
  if (nearest === resolve(state)) trials.ok("state", `${state} is there and can be written`);
  else trials.ok("state", `${state} is made at the first start, in ${nearest}`);
  trials.by(`the free space of the file system of ${nearest}`);
  const { free, used } = spaceOf(state);
  const isElsewhere = database !== null;
  const kept = isElsewhere
    ? "the state is in the database, and this folder stays small"
    : `the state has ${size(used)} and may grow to ${size(retention.bytes)} (retention.bytes)`;
  if (free < LEAST_FREE)
    trials.failed(
      "disk space",
      `${size(free)} are free; ${kept}`,
      `at least ${size(LEAST_FREE)}: without space nothing is recorded, and no event is accepted`,
    );
  else if (!isElsewhere && free < retention.bytes - used)
    trials.failed(
      "disk space",
      `${size(free)} are free; ${kept}`,
      `more space, or retention.bytes of at most ${size(used + free - LEAST_FREE)}: a full disk stops new events`,
    );
  else trials.ok("disk space", `${size(free)} are free; ${kept}`);
}

/** Checks the ends of all certificates of the configuration. */
export function tryCertificates(config: Config, now: Instant, trials: Trials): void {
  trials.about("certificates");
  trials.by("the files that the configuration names");
  const all = configuredCertificates(config, now);
  if (all.length === 0) trials.untried("certificates", "none is configured");
  for (const { name, found, fault } of all) {
    if (fault === null) trials.ok(name, found);
    else
      trials.failed(
        name,
        fault,
        `a new file for ${name}, then SIGHUP to the daemon (systemctl reload setpointd)`,
      );
  }
}

/** Bytes that are free for the state, and those that it takes. */
function spaceOf(state: string): { readonly free: number; readonly used: number } {
  const nearest = nearestFolder(state);
  const { bavail, bsize } = statfsSync(nearest);
  return { free: bavail * bsize, used: nearest === resolve(state) ? sizeOf(state) : 0 };
}

/** Warning that the disk cannot hold what the retention keeps. Null: it can, or the state is in a database. */
export function shortOfSpace({
  state,
  retention,
  database,
}: Pick<Config, "state" | "retention" | "database">): string | null {
  if (database !== null) return null;
  const { free, used } = spaceOf(state);
  if (free >= retention.bytes - used) return null;
  return `${size(free)} are free on the disk of ${state}, and the state has ${size(used)} and may grow to ${size(retention.bytes)} (retention.bytes): a full disk stops new events`;
}

function nearestFolder(folder: string): string {
  let nearest = resolve(folder);
  while (!existsSync(nearest) && nearest !== dirname(nearest)) nearest = dirname(nearest);
  return nearest;
}

/** Bytes of the files in a folder. A file may vanish meanwhile. */
const sizeOf = (folder: string): number =>
  readdirSync(folder)
    .map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0);

const size = (bytes: number): string =>
  bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
