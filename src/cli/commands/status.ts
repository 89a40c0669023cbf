import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";

import type { Environment } from "../../config/fields/secret.ts";
import { statusSocketPath } from "../../config/sections/state.ts";
import { type Instant, fromIso } from "../../domain/units.ts";
import type { Problem } from "../../operator/siteProblems.ts";
import { wallClock } from "../../platform/clock.ts";
import { configFile, environmentOf, kindOf, readText, stateFolderIn } from "../configuration.ts";
import { type Answer, askSocket } from "../daemonClient.ts";
import { type ExitCode, fail, say, writeLine, type Verb } from "../output.ts";
import { counted } from "../../platform/text.ts";

/** Socket of the installed daemon (RuntimeDirectory= of its unit). */
const INSTALLED_SOCKET = "/run/setpointd/status.sock";

/** The part of `/api/v1/status` that the verb prints. */
interface Status {
  readonly site: string;
  readonly timezone: string;
  readonly mode: string;
  readonly observing: { readonly sentence: string } | null;
  readonly now: string;
  readonly startedAt: string;
  readonly next: string | null;
  readonly partner: {
    readonly ok: boolean;
    readonly answeredAt: string | null;
    readonly skewMs: number | null;
  };
  readonly broker: { readonly connected: boolean };
  readonly chargers: Readonly<Record<"total" | "online" | "unreachable" | "limited" | "notSent", number>> &
    Readonly<Record<"followed" | "notFollowed" | "refused", number>>;
  readonly events: {
    readonly known: number;
    readonly active: readonly Readonly<
      Record<"id" | "name" | "asked" | "end" | "modified", string> & { vehicles: number }
    >[];
  };
  readonly holds: {
    readonly open: number;
    readonly list: readonly { readonly sentence: string; readonly reason: string }[];
  };
  /** Absent: an earlier version. Null: the site has no file of its own. */
  readonly configuration?: { readonly sentence: string } | null;
  readonly problems: readonly Problem[];
  readonly alarms: {
    readonly open: number;
    readonly acknowledged: number;
    readonly list: readonly Readonly<
      Record<"severity" | "state" | "kind" | "since" | "message" | "action", string> & {
        subject: string | null;
      }
    >[];
  };
}

/** The part of the answer of a stand-in that the verb prints. */
export interface StandInStatus {
  readonly site: string;
  readonly sentence: string;
}

const STAND_IN_HINT = [
  "  setpointd status on the machine of the leader shows the site. This gateway stores deliveries for it.",
];

/**
 * `status`: one screen on how the site is doing. Needs neither root nor secrets: the daemon's group may ask, and of the
 * configuration only `state` is read.
 */
async function status(named: string | undefined, json: boolean, now: () => Instant): Promise<ExitCode> {
  const answer = await askStatus(named);
  if (answer.kind === "answered" && answer.status === 200) {
    if (json) say(JSON.stringify(answer.body));
    else for (const line of linesOf(answer.body as Status | StandInStatus, now)) writeLine(line);
    return 0;
  }
  return fail(1, answer.kind === "absent" ? absence(named) : failureOf(answer));
}

function absence(named: string | undefined): string {
  const file = configFile(named);
  if (named !== undefined && !existsSync(named))
    return `${named} does not exist: name the configuration that setpointd runs with`;
  const kind = file === undefined ? null : kindOf(file);
  if (kind === "ocpp")
    return `${file} is the configuration of the OCPP bridge: setpointd ocpp status -c ${file} shows its chargers`;
  return kind === "fleet"
    ? `${file} is the configuration of a fleet: setpointd site list -c ${file} shows its sites, and the page of a process the status of each`
    : `setpointd does not answer at ${socketsOf(named, process.env).join(" or ")}: it is not running, or this user is not in its group`;
}

const failureOf = (answer: Exclude<Answer, { kind: "absent" }>): string =>
  answer.kind === "failed"
    ? answer.reason
    : `setpointd answers ${answer.status}: ${JSON.stringify(answer.body)}`;

/** Requests `/api/v1/status` of the running daemon, over the first socket that answers. */
export async function askStatus(named: string | undefined): Promise<Answer> {
  for (const socket of socketsOf(named, process.env)) {
    const answer = await askSocket(socket, "GET", "/status");
    if (answer.kind !== "absent") return answer;
  }
  return { kind: "absent" };
}

/** Paths to try, in order. Only the given configuration's path, if there is one. */
function socketsOf(named: string | undefined, env: Environment): readonly string[] {
  const file = configFile(named);
  const own = file === undefined ? [] : [socketOf(file, env)];
  return named === undefined ? [...new Set([INSTALLED_SOCKET, ...own])] : own;
}

/** Socket path, from the configuration's `state` alone. The default where this user cannot read the file. */
function socketOf(file: string, env: Environment): string {
  const place = { env: environmentOf(file, env), directory: dirname(resolve(file)) };
  return statusSocketPath(stateFolderIn(readText(file) ?? "", file, env), place);
}

function linesOf(status: Status | StandInStatus, now: () => Instant): readonly string[] {
  if ("sentence" in status) return [`${status.site}: ${status.sentence}`, ...STAND_IN_HINT];
  const clock = wallClock(status.timezone, now);
  const time = (at: string | null, none: string): string => (at === null ? none : clock(fromIso(at)));
  const { chargers, partner, broker, problems, alarms } = status;
  const isProblem = ({ kind, subject }: (typeof alarms.list)[number]): boolean =>
    problems.some((problem) => problem.kind === kind && problem.subject === subject);
  return [
    `${status.site}, ${status.observing?.sentence ?? `mode ${status.mode}`}, up since ${time(status.startedAt, "")}; times in ${status.timezone}`,
    `chargers: ${chargers.total}, ${chargers.online} online, ${chargers.unreachable} unreachable`,
    `commands: ${chargers.limited} limited, ${chargers.followed} followed, ${chargers.notFollowed} not followed, ${chargers.refused} refused, ${chargers.notSent} not sent`,
    `events: ${status.events.known} known, ${status.events.active.length} active, next change ${time(status.next, "none")}`,
    ...status.events.active.map(
      ({ id, name, asked, vehicles, end, modified }) =>
        `  ${id}${name === "" ? "" : ` (${name})`}: ${asked} for ${counted(vehicles, "vehicle")} until ${time(end, "")}; last changed by the partner ${time(modified, "")}`,
    ),
    `overrides: ${status.holds.open === 0 ? "none" : status.holds.open}`,
    ...status.holds.list.map(({ sentence, reason }) => `  ${sentence}; ${reason}`),
    `partner: ${partner.ok ? "answers" : "does not answer"}, last answer ${time(partner.answeredAt, "never")}`,
    `clock: ${partner.skewMs === null ? "not compared with the partner's yet" : `${(Math.abs(partner.skewMs) / 1000).toFixed(1)} s from the partner's`}`,
    `broker: ${broker.connected ? "connected" : "not connected"}`,
    ...(status.configuration == null ? [] : [status.configuration.sentence]),
    problems.length === 0 ? "problems: none" : `problems: ${problems.length}`,
    ...problems.flatMap(({ since, kind, message, action }) => [
      `  ${kind}, since ${time(since, "unknown")}: ${message}`,
      `    ${action}`,
    ]),
    alarms.open + alarms.acknowledged === 0
      ? "alarms: none"
      : `alarms: ${alarms.open} open, ${alarms.acknowledged} acknowledged; setpointd alarms shows all`,
    ...alarms.list
      .filter((alarm) => !isProblem(alarm))
      .flatMap(({ severity, state, since, message, action }) => [
        `  ${severity}${state === "acknowledged" ? ", acknowledged" : ""}, since ${time(since, "")}: ${message}`,
        `    ${action}`,
      ]),
  ];
}

export const statusVerb: Verb = (verb, { config, now, done }) => {
  verb
    .option("--json", "print one JSON object, as /api/v1/status", false)
    .action(async ({ json }: { json: boolean }) => {
      done(await status(config(), json, now));
    });
};
