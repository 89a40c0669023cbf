import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";

import { explain, pathText } from "../../config/explain.ts";
import { bridgedChargers, isOcppFile } from "../../config/ocpp.ts";
import type { Address } from "../../config/fields/address.ts";
import type { Config } from "../../config/schema.ts";
import { expiryWarnings } from "../../daemon/certificates.ts";
import { loadSite } from "../../daemon/chargerModels.ts";
import { stateFolderProblem } from "../../daemon/stateFolder.ts";
import { isToBeFreed, reallySent } from "../../domain/command.ts";
import { REPORT_REQUESTS_PER_HOUR } from "../../domain/report.ts";
import { formatLevel } from "../../domain/setpoint.ts";
import { retentionForecast } from "../../retention/rules.ts";
import {
  configFile,
  environmentOf,
  isFleetFile,
  misplaced,
  printMistakes,
  bridgeConfiguration,
} from "../configuration.ts";
import { shortOfSpace } from "../live/machine.ts";
import { complain, fail, type ExitCode, say, type Verb, type VerbContext } from "../output.ts";
import { becomeOwner, enterPrivateFolder, askOrRead } from "../storedState.ts";

/** `check`: explains every mistake in the configuration. `live`: then tries partner, brokers and chargers. */
async function check(
  named: string | undefined,
  live: boolean,
  { now: clock, randomBytes }: Pick<VerbContext, "now" | "randomBytes">,
): Promise<ExitCode> {
  const now = clock();
  const file = configFile(named);
  if (file === undefined) return fail(2, "which configuration? Name it with -c FILE");
  if (isOcppFile(file)) return checkOcpp(file, live);
  if (isFleetFile(file)) {
    const { checkFleet } = await import("./site.ts");
    return checkFleet(file, live, randomBytes);
  }
  const bridged = bridgedChargers(join(dirname(file), "ocpp.yaml"));
  const { loaded, profiles } = loadSite(file, environmentOf(file, process.env), "needed", bridged);
  if (!loaded.ok) {
    printMistakes(loaded.mistakes, file);
    return 2;
  }
  enterPrivateFolder(loaded.config.state);
  if (loaded.warnings.length > 0) complain(`Works, but was it meant?\n\n${explain(loaded.warnings, file)}`);
  const { site, chargers, vehicles, control, state } = loaded.config;
  const bound = vehicles.filter(({ charger }) => charger !== null).length;
  say(
    `${file} is fine: site ${site.id} (${site.timezone}), chargers: ${chargers.length}, vehicles: ${vehicles.length} (${bound} with a fixed charger)`,
  );
  const { database } = loaded.config;
  const place =
    database === null ? state : `PostgreSQL (schema ${database.schema}), sockets and users in ${state}`;
  say(`mode ${control.mode}, state in ${place}, deliveries ${formatDeliveries(loaded.config)}`);
  for (const line of keyLines(loaded.config)) say(line);
  for (const line of retentionLines(loaded.config)) say(line);
  for (const warning of expiryWarnings(loaded.config, now)) complain(warning);
  const denied = becomeOwner(state) ?? stateFolderProblem(state);
  const short = denied === null ? shortOfSpace(loaded.config) : null;
  for (const problem of [denied, short]) if (problem !== null) complain(problem);
  for (const { charger, level } of await leftBehind(loaded.config)) {
    complain(
      `${charger} is not in this configuration, but is limited to ${level}: put it back, release it, then remove it`,
    );
  }
  if (!live) return 0;
  const { checkLive } = await import("../live/checkLive.ts");
  return checkLive(loaded.config, profiles);
}

/** `check` of the configuration of `setpointd ocpp`. */
function checkOcpp(file: string, live: boolean): ExitCode {
  const loaded = bridgeConfiguration(file);
  if (loaded === null) return 2;
  const { site, stations, state } = loaded.config;
  if (loaded.warnings.length > 0) complain(`Works, but was it meant?\n\n${explain(loaded.warnings, file)}`);
  const outlets = stations.reduce((sum, { connectors }) => sum + connectors.length, 0);
  say(
    `${file} is fine: OCPP chargers of site ${site}, stations: ${stations.length}, connectors: ${outlets}, state in ${state}`,
  );
  if (live)
    complain(`--live is for the daemon's configuration; setpointd ocpp status -c ${file} shows the stations`);
  return 0;
}

/** Source of each key. */
const keyLines = ({ state, keys, database }: Config): readonly string[] => {
  if ((database?.siteKeys ?? null) !== null)
    return ["site.key, proof.key: in the database, encrypted with state.postgres.siteKeys"];
  return [["site.key", keys.site] as const, ["proof.key", keys.proof] as const].map(([name, credential]) =>
    credential === null
      ? `${name}: the file ${join(state, name)}${existsSync(join(state, name)) ? "" : ", made at the first start"}`
      : `${name}: the credential ${credential.path}`,
  );
};

const retentionLines = ({ retention, report, chargers }: Config): readonly string[] =>
  retentionForecast(retention, {
    chargers: chargers.length,
    keepReadings: report.keepReadings,
    reportsPerHour: REPORT_REQUESTS_PER_HOUR,
  });

function formatDeliveries({ webhook }: Config): string {
  if (webhook === null) return "by polling only";
  const { kind } = webhook.auth;
  return kind === "none"
    ? "as hints only: not signed, they trigger a fetch of the list"
    : `signed by ${kind}`;
}

/** Limited chargers that are no longer in the configuration, from the running daemon or the stored state. */
async function leftBehind(config: Config): Promise<readonly Limited[]> {
  const limited = await askOrRead<readonly Limited[]>(
    config,
    "/limited",
    ({ storedState }) =>
      storedState.commands
        .map(reallySent)
        .filter((sent) => sent !== null)
        .filter(isToBeFreed)
        .map(({ command }) => ({ charger: command.charger, level: formatLevel(command.desired) })),
    { older: "refuse" },
  );
  // An unreadable state is not a mistake in the configuration.
  if (typeof limited === "string") return [];
  return limited.filter(({ charger }) => !config.chargers.some(({ id }) => id === charger));
}

interface Limited {
  readonly charger: string;
  readonly level: string;
}

/** Lower ports need CAP_NET_BIND_SERVICE. */
const FIRST_FREE_PORT = 1024;

interface Listener {
  /** Key in the configuration. */
  readonly key: string;
  readonly listen: Address;
}

/** Reason why a listener cannot bind its address, with its key and a remedy. */
export function cannotListen(error: Error & ListenError, config: Config): string {
  const { code, address, port, hostname } = error;
  const all = listenersOf(config);
  const found =
    all.find(({ listen }) => listen.port === port && listen.host === address) ??
    all.find(({ listen }) => listen.port === port || listen.host === hostname);
  if (found === undefined) return `cannot listen: ${error.message}`;
  const { key, listen } = found;
  const host = listen.host.includes(":") ? `[${listen.host}]` : listen.host;
  const where = `${host}:${listen.port}`;
  return `${key}: ${where} ${trouble(code, listen) ?? `cannot be listened on (${error.message})`}`;
}

/** Members of Node's error about an address that cannot be bound, or a name that cannot be resolved. */
interface ListenError {
  readonly code?: unknown;
  readonly address?: unknown;
  readonly port?: unknown;
  readonly hostname?: unknown;
}

function listenersOf({ webhook, operator, mqtt, brokers }: Config): readonly Listener[] {
  const all: Listener[] = [{ key: "operator.listen", listen: operator.listen }];
  if (webhook !== null) all.push({ key: "webhook.listen", listen: webhook.listen });
  const named = [...brokers].map(([name, broker]) => [pathText(["brokers", name]), broker] as const);
  for (const [key, { reach }] of [["mqtt", mqtt] as const, ...named])
    if (reach.kind === "embedded") all.push({ key: `${key}.embedded.listen`, listen: reach.listen });
  return all;
}

function trouble(code: unknown, { port }: Address): string | null {
  switch (code) {
    case "EADDRINUSE":
      return "is in use by another program: stop that, or choose another port";
    case "EADDRNOTAVAIL":
      return "is no address of this machine: name one that it has, or 0.0.0.0 for all of them";
    case "ENOTFOUND":
      return "is a name that this machine does not know: name an address that it has";
    case "EACCES":
      return port < FIRST_FREE_PORT
        ? `needs a right, as every port under ${FIRST_FREE_PORT} does: choose a higher port, or give setpointd CAP_NET_BIND_SERVICE`
        : null;
    default:
      return null;
  }
}

export const checkVerb: Verb = (verb, { config, now, randomBytes, done }) => {
  verb
    .option(
      "--live",
      "then try it: token, events, webhook, brokers, topics, clock, a message of each charger within 30 s; commands no charger and does not disturb a running daemon",
      false,
    )
    .allowExcessArguments()
    .action(async ({ live }: { live: boolean }, { args: [file] }: Command) => {
      done(file === undefined ? await check(config(), live, { now, randomBytes }) : misplaced("check", file));
    });
};
