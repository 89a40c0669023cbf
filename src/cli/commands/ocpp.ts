import { setTimeout as sleep } from "node:timers/promises";

import { type Json, numberOf, textOf } from "../../domain/audit.ts";
import { realMachine } from "../../daemon/real.ts";
import { startOcpp, type Bridge } from "../../ocpp/start.ts";
import { systemdNotify } from "../../platform/systemd.ts";
import { logLevel, bridgeConfiguration } from "../configuration.ts";
import { logger } from "../logger.ts";
import { type ExitCode, fail, say, type Verb, writeLine } from "../output.ts";
import { exitOnBug, reloadSignal, stopSignal } from "../stopSignal.ts";

/** Longest orderly stop. */
const STOP_PATIENCE_MS = 4_000;

/** `ocpp`: the central system for chargers that speak OCPP. SIGHUP reloads its certificate. */
async function ocpp(file: string | undefined): Promise<ExitCode> {
  const level = logLevel();
  if (level === null) return 2;
  const loaded = bridgeConfiguration(file);
  if (loaded === null) return 2;
  const log = logger(1, level);
  exitOnBug(log);
  for (const { path, found, expected } of loaded.warnings)
    log.warn({ path }, `works, but was it meant? ${path}: ${found}; expected ${expected}`);
  // A bridge that is part of the demo has a channel to it, and ends with it.
  const { promise: isLeft, resolve: onLeft } = Promise.withResolvers<string>();
  if (process.connected) process.once("disconnect", () => onLeft("disconnect"));
  const stopped = Promise.race([stopSignal("SIGTERM", "SIGINT"), isLeft]);
  const onReload = reloadSignal();
  let bridge: Bridge;
  try {
    bridge = await startOcpp(loaded.config, realMachine(log));
  } catch (error) {
    // Only a listener that cannot bind its address, or a bug, throws here.
    if (!(error instanceof Error && "syscall" in error)) throw error;
    return fail(1, `the OCPP bridge cannot start: ${error.message}`);
  }
  const { port: listener, statusPort: status, stations } = bridge;
  log.info({ ocpp: listener, status, stations: stations.size }, "the OCPP bridge is up");
  onReload(() => bridge.reload());
  await systemdNotify(process.env, log)?.("READY=1");
  log.info({ signal: await stopped }, "stopping");
  const inTime = await Promise.race([
    bridge[Symbol.asyncDispose]().then(() => true),
    sleep(STOP_PATIENCE_MS, false),
  ]);
  log.info(inTime ? "stopped" : "stopping took too long and was cut short");
  return inTime ? 0 : 1;
}

/** The part of `/api/v1/stations` that the verb prints. */
interface StationsView {
  readonly site: string;
  readonly stations: readonly StationView[];
  readonly refused: { readonly count: number; readonly latest: readonly Json[] };
}

interface StationView {
  readonly identity: string;
  readonly state: string;
  readonly since: string;
  readonly ocpp: string | null;
  readonly model: string | null;
  readonly problems: readonly string[];
  readonly connectors: readonly {
    readonly id: number;
    readonly charger: string;
    readonly state: string | null;
    readonly limit: { readonly level: string; readonly until: string } | null;
    readonly lastRefusal: string | null;
  }[];
}

/** Longest wait for the answer of the bridge. */
const LONGEST_WAIT_MS = 10_000;

/** `ocpp status`: the chargers of the running bridge. 1: one of them has a problem, or the bridge does not run. */
async function ocppStatus(file: string | undefined, json: boolean): Promise<ExitCode> {
  const loaded = bridgeConfiguration(file);
  if (loaded === null) return 2;
  const { host, port } = loaded.config.status;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}/api/v1/stations`;
  let view: StationsView;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
    view = (await answer.json()) as StationsView;
  } catch {
    return fail(1, `the OCPP bridge does not answer at ${url}: is setpointd ocpp running?`);
  }
  if (json) say(JSON.stringify(view));
  else linesOf(view).forEach(writeLine);
  return view.stations.some(({ problems }) => problems.length > 0) ? 1 : 0;
}

function linesOf({ site, stations, refused }: StationsView): readonly string[] {
  const ready = stations.filter(({ state }) => state === "ready").length;
  return [
    `${site}: ${ready} of ${stations.length} chargers ready`,
    ...stations.flatMap(stationLines),
    ...refused.latest.map(
      (stranger) =>
        `refused ${numberOf(stranger, "count")} times: ${textOf(stranger, "identity")} at ${textOf(stranger, "address")}: ${textOf(stranger, "reason")}`,
    ),
  ];
}

const stationLines = ({ identity, state, since, ocpp, model, problems, connectors }: StationView) => [
  [identity, `${state} since ${since}`, ocpp === null ? null : `OCPP ${ocpp}`, model]
    .filter((part) => part !== null)
    .join(", "),
  ...connectors.map(
    ({ id, charger, state: outlet, limit, lastRefusal }) =>
      `  connector ${id}, ${charger}: ${outlet ?? "no status yet"}${limit === null ? "" : `, ${limit.level} until ${limit.until}`}${lastRefusal === null ? "" : `; refused: ${lastRefusal}`}`,
  ),
  ...problems.map((problem) => `  problem: ${problem}`),
];

export const ocppVerb: Verb = (verb, { config, done }) => {
  verb.action(async () => done(await ocpp(config())));
  verb
    .command("status")
    .description(
      "show the chargers of the running bridge, their limits and their problems; exit code 1 where one has a problem",
    )
    .option("--json", "print the JSON of /api/v1/stations", false)
    .action(async ({ json }: { json: boolean }) => done(await ocppStatus(config(), json)));
};
