import { setTimeout as sleep } from "node:timers/promises";

import { loadOcppConfig } from "../../config/ocpp.ts";
import { realMachine } from "../../daemon/real.ts";
import { startOcpp, type Bridge } from "../../ocpp/start.ts";
import { systemdNotify } from "../../platform/systemd.ts";
import { logLevel, printMistakes } from "../configuration.ts";
import { logger } from "../logger.ts";
import { complain, type ExitCode, type Verb } from "../output.ts";
import { ocppStatus } from "./ocppStatus.ts";
import { exitOnBug, reloadSignal, stopSignal } from "../stopSignal.ts";

/** Longest orderly stop. */
const STOP_PATIENCE_MS = 4_000;

/** `ocpp`: the central system for chargers that speak OCPP. SIGHUP reloads its certificate. */
async function ocpp(file: string | undefined): Promise<ExitCode> {
  const level = logLevel();
  if (level === null) return 2;
  if (file === undefined) {
    complain("which configuration? Name the bridge's own with -c FILE, e.g. ocpp.yaml");
    return 2;
  }
  const loaded = loadOcppConfig(file, process.env);
  if (!loaded.ok) {
    printMistakes(loaded.mistakes, file);
    return 2;
  }
  const log = logger(1, level);
  exitOnBug(log);
  for (const { path, found, expected } of loaded.warnings)
    log.warn({ path }, `works, but was it meant? ${path}: ${found}; expected ${expected}`);
  // As a part of the demo it has a channel to it, and ends with it.
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
    complain(`the OCPP bridge cannot start: ${error.message}`);
    return 1;
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
