import { statSync } from "node:fs";

import type { Config } from "../../config/schema.ts";
import { type Instant, instant, fromIso } from "../../domain/units.ts";
import { type WallClock, wallClock } from "../../platform/clock.ts";
import { askDaemon, askSocket } from "../daemonClient.ts";
import type { Trials } from "./trials.ts";
import { counted } from "../../platform/text.ts";

/** The part of `/api/v1/status` that counts here. */
interface Status {
  readonly ready: boolean;
  readonly mode: string;
  readonly startedAt: string;
  /** Absent: an earlier version. Null: the site has no file of its own. */
  readonly configuration?: { readonly file: string; readonly sentence: string } | null;
  readonly problems: readonly {
    readonly kind: string;
    readonly subject: string | null;
    readonly since: string | null;
    readonly message: string;
    readonly action: string;
  }[];
}

interface OpenAlarm {
  readonly key: string;
  readonly kind: string;
  readonly state: string;
  readonly severity: string;
  readonly since: string;
  /** Null: the fact holds. Absent: an earlier version. */
  readonly goneSince?: string | null;
  readonly message: string;
  readonly action: string;
}

/** Time to answer over a socket. A daemon that needs longer is stuck. */
const ANSWER_WITHIN_MS = 10_000;

/** Checks the running daemon: its sockets, its status, its problems and alarms. True: it runs. */
export async function tryDaemon(
  { site, state, statusSocket, control }: Config,
  file: string,
  now: Instant,
  trials: Trials,
): Promise<boolean> {
  const clock = wallClock(site.timezone, () => now);
  const time = (at: string): string => clock(fromIso(at));
  trials.about("daemon");
  trials.by(`a request over ${state}/control.sock`);
  const alarms = await askDaemon(state, "GET", "/alarms", null, ANSWER_WITHIN_MS);
  if (alarms.kind === "absent") {
    trials.failed(
      "control socket",
      "setpointd is not running with this configuration",
      "systemctl start setpointd, or setpointd run; its log has the reason if it ended",
    );
    trials.untried("status", "setpointd is not running");
    return false;
  }
  if (alarms.kind === "failed" && alarms.isStandIn === true) trials.ok("control socket", alarms.reason);
  else if (alarms.kind === "failed")
    trials.failed(
      "control socket",
      alarms.reason,
      "the user that runs setpointd, or root. If it is that user: the process is stuck, restart it and keep its log",
    );
  else trials.ok("control socket", "the running daemon answers");
  trials.by(`a request over ${statusSocket}`);
  const answer = await askSocket(statusSocket, "GET", "/status", null, ANSWER_WITHIN_MS);
  if (answer.kind !== "answered") {
    trials.failed(
      "status",
      answer.kind === "failed" ? answer.reason : `no socket at ${statusSocket}`,
      "setpointd status shows the same. The log of the daemon says why it has no status socket",
    );
    return true;
  }
  if (alarms.kind === "failed" && alarms.isStandIn === true) return true;
  const status = answer.body as Status;
  if (!status.ready)
    trials.failed(
      "status",
      `up since ${time(status.startedAt)}, but the events were not evaluated yet`,
      "a few seconds after a start; if it stays so, the log has the reason",
    );
  else
    trials.ok(
      "status",
      `mode ${status.mode}, up since ${time(status.startedAt)} (times in ${site.timezone}), ${counted(status.problems.length, "problem")}`,
    );
  tryFreshness(file, status, control.mode, clock, trials);
  trials.by("the status of the running daemon");
  for (const { kind, subject, since, message, action } of status.problems)
    trials.failed(
      subject === null ? kind : `${kind} ${subject}`,
      `${message}${since === null ? "" : ` (since ${time(since)})`}`,
      action,
    );
  const listed =
    alarms.kind === "answered" ? (alarms.body as { readonly value?: readonly OpenAlarm[] }).value : [];
  tryAlarms(listed ?? [], status, time, trials);
  return true;
}

/** Alarms beside the problems above. Certificates have trials of their own. */
function tryAlarms(
  alarms: readonly OpenAlarm[],
  { problems }: Status,
  time: (at: string) => string,
  trials: Trials,
): void {
  trials.by("the alarms of the running daemon");
  const shown = new Set(["certificate", ...problems.map(({ kind }) => kind)]);
  for (const { key, kind, state, severity, since, goneSince = null, message, action } of alarms)
    if (state !== "cleared" && goneSince === null && severity !== "info" && !shown.has(kind))
      trials.failed(`alarm ${key}`, `${message} (since ${time(since)})`, action);
}

/** A changed configuration has to be applied. */
function tryFreshness(
  file: string,
  { startedAt, mode, configuration }: Status,
  configured: string,
  clock: WallClock,
  trials: Trials,
): void {
  trials.by(`the time of change of ${file}, and the start of the daemon`);
  const changedAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const isNewer = changedAt > Date.parse(startedAt);
  if (isNewer && mode !== configured)
    trials.failed(
      "configuration",
      `the daemon runs in mode ${mode}, and the configuration has mode ${configured}`,
      "setpointd apply, or a restart, which reads the configuration",
    );
  else if (configuration != null && configuration.file !== "same")
    trials.ok("configuration", configuration.sentence);
  else if (isNewer)
    trials.ok(
      "configuration",
      `changed at ${clock(instant(changedAt))}, after the start: a restart applies it`,
    );
  else trials.ok("configuration", "not changed since the start");
}
