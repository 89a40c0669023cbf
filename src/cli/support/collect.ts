import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
} from "node:fs";
import { arch, cpus, freemem, release, totalmem, type, uptime } from "node:os";
import { join } from "node:path";

import type { Profile } from "../../chargers/profile/schema.ts";
import type { Config } from "../../config/schema.ts";
import { alarmView } from "../../domain/alarm.ts";
import { type Instant, instant, iso } from "../../domain/units.ts";
import { shipped } from "../../platform/packageRoot.ts";
import { rowsSince } from "../commands/audit.ts";
import { type Answer, askDaemon, askSocket } from "../daemonClient.ts";
import { runProgram, type RunProgram } from "../live/machine.ts";
import { withState } from "../storedState.ts";
import { messageOf } from "../../platform/text.ts";

/** A part of the archive, or the reason why it could not be read. */
export interface Part {
  readonly name: string;
  /** Sentence for the table of contents. */
  readonly about: string;
  readonly content: string | { readonly missing: string };
}

const DAY_MS = 86_400_000;
/** Newest rows of the record, and newest characters of the log. */
const MOST_ROWS = 50_000;
const MOST_LOG = 20_000_000;
const UNIT = "setpointd.service";

export const aDayBefore = (now: Instant): Instant => instant(now - DAY_MS);

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Versions of the program, its runtime, its libraries and the machine. */
export function versions(run: RunProgram = runProgram): Part {
  const manifest = manifestOf(shipped("package.json"));
  const libraries = Object.keys(manifest.dependencies ?? {}).map((name) => [
    name,
    manifestOf(shipped(`node_modules/${name}/package.json`)).version ?? null,
  ]);
  return {
    name: "versions.json",
    about: "setpointd, node, libraries, operating system, package",
    content: json({
      setpointd: manifest.version ?? null,
      node: process.versions,
      // A bundle has them inside: sbom.cdx.json of the package lists them.
      libraries: Object.fromEntries(libraries),
      system: { type: type(), release: release(), arch: arch(), name: osName() },
      machine: {
        cpus: cpus().length,
        model: cpus()[0]?.model ?? null,
        memory: totalmem(),
        free: freemem(),
        uptimeS: Math.round(uptime()),
      },
      package: run("dpkg-query", [
        "--show",
        "--showformat=${Package} ${Version} ${db:Status-Status}",
        "setpointd",
      ]),
    }),
  };
}

interface Manifest {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

function manifestOf(path: string): Manifest {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Manifest;
  } catch {
    return {};
  }
}

function osName(): string | null {
  try {
    return /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? null;
  } catch {
    return null;
  }
}

/** The last day of the log: of a file, otherwise of the journal. */
export function lastLog(file: string | undefined, since: Instant, run: RunProgram = runProgram): Part {
  const part = { name: "log.txt", about: "log of the last day" };
  if (file !== undefined) {
    try {
      return { ...part, content: sinceIn(endOf(file), since) };
    } catch (error) {
      return {
        ...part,
        content: { missing: `${file}: ${messageOf(error)}` },
      };
    }
  }
  const shown = run("journalctl", [
    `--unit=${UNIT}`,
    `--since=@${Math.floor(since / 1000)}`,
    "--output=short-iso-precise",
    "--no-pager",
    "--quiet",
  ]);
  if (shown !== null && shown !== "") return { ...part, content: shown.slice(-MOST_LOG) };
  return {
    ...part,
    content: {
      missing: `${shown === null ? "journalctl is not there, or this user may not read it" : `the journal has nothing of ${UNIT}`}: name the file with --log, or run it as root`,
    },
  };
}

/** The end of a file that may be much longer. */
function endOf(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    const bytes = Buffer.alloc(Math.min(size, MOST_LOG));
    const read = readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
    return bytes.subarray(0, read).toString("utf8");
  } finally {
    closeSync(descriptor);
  }
}

/** Lines since a moment. Lines without a time stay with the line before. */
function sinceIn(text: string, since: Instant): string {
  let isRecent = true;
  return text
    .split("\n")
    .filter((line) => {
      const at = /^\{"level":\d+,"time":(\d+)/.exec(line)?.[1];
      if (at !== undefined) isRecent = Number(at) >= since;
      return isRecent;
    })
    .join("\n");
}

/** Views of the running daemon, or the stored state where none runs. */
export async function stateParts(
  config: Config,
  profiles: ReadonlyMap<string, Profile>,
  since: Instant,
): Promise<readonly Part[]> {
  const status = await askSocket(config.statusSocket, "GET", "/status");
  const metrics = await askDaemon(config.state, "GET", "/metrics");
  const asked = await askDaemon(config.state, "GET", "/alarms");
  const stored = asked.kind === "absent" ? await storedParts(config) : null;
  const rows = stored?.unread ?? (await rowsSince(config, since, MOST_ROWS));
  const used = new Map<string, number>();
  for (const { profile } of config.chargers) used.set(profile, (used.get(profile) ?? 0) + 1);
  return [
    {
      name: "record.jsonl",
      about: `rows of the record of the last day, at most ${MOST_ROWS}, as setpointd audit --json prints them`,
      content:
        typeof rows === "string" ? { missing: rows } : rows.map((row) => `${JSON.stringify(row)}\n`).join(""),
    },
    { name: "status.json", about: "status of the running daemon", content: answered(status, json) },
    {
      name: "metrics.txt",
      about: "metrics of the running daemon",
      content: answered(metrics, (body) => (body as { readonly text: string }).text),
    },
    {
      name: "alarms.json",
      about: "alarms, open and cleared",
      content: stored?.alarms ?? answered(asked, (body) => json((body as { readonly value: unknown }).value)),
    },
    {
      name: "profiles.json",
      about: "names of the profiles, and how many chargers use each",
      content: json({ used: Object.fromEntries(used), known: [...profiles.keys()] }),
    },
    {
      name: "statistics.json",
      about: "files of the state with their sizes, and counts; the state itself is not included",
      content: json({
        files: filesIn(config.state),
        chargers: config.chargers.length,
        vehicles: config.vehicles.length,
        stored: stored?.statistics ?? "in status.json and metrics.txt",
      }),
    },
  ];
}

/** Content of a part that the running daemon answers. */
function answered(answer: Answer, read: (body: unknown) => string): Part["content"] {
  if (answer.kind === "absent") return { missing: "setpointd is not running" };
  if (answer.kind === "failed") return { missing: answer.reason };
  return answer.status === 200
    ? read(answer.body)
    : { missing: `the running daemon answers ${answer.status}` };
}

/** Parts of a state that no daemon holds. */
async function storedParts(config: Config): Promise<{
  readonly alarms: Part["content"];
  /** Counts. A text: the reason why there are none. */
  readonly statistics: object | string;
  /** The reason why nothing of the state is read. Null: it is read. */
  readonly unread: string | null;
}> {
  const read = await withState(
    config,
    async ({ store, storedState, epoch }) => ({
      alarms: json((await store.alarms()).map(alarmView)),
      statistics: {
        epoch,
        store: store.stats(),
        events: storedState.events.length,
        commands: storedState.commands.length,
        holds: storedState.holds.length,
        reportsWaiting: storedState.outbox.length,
      },
      unread: null,
    }),
    { older: "refuse" },
  );
  return typeof read === "string" ? { alarms: { missing: read }, statistics: read, unread: read } : read;
}

const filesIn = (folder: string): unknown =>
  existsSync(folder)
    ? readdirSync(folder).map((name) => {
        const found = statSync(join(folder, name), { throwIfNoEntry: false });
        return {
          name,
          bytes: found?.size ?? null,
          mode: found === undefined ? null : `0${(found.mode & 0o777).toString(8)}`,
          changedAt: found === undefined ? null : iso(instant(found.mtimeMs)),
        };
      })
    : "there is no state yet";
