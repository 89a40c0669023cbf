import { setTimeout as sleep } from "node:timers/promises";

import { FleetDaemon, type FleetStarted } from "../../daemon/fleet/fleet.ts";
import { realMachine } from "../../daemon/real.ts";
import { systemdNotify, Watchdog } from "../../platform/systemd.ts";
import { fleetConfiguration, logLevel } from "../configuration.ts";
import { logger } from "../logger.ts";
import { type ExitCode, fail, type Verb } from "../output.ts";
import { exitOnBug, reloadSignal, stopSignal } from "../stopSignal.ts";

/** Longest orderly stop. A thousand sites take longer than one. */
const STOP_PATIENCE_MS = 60_000;

/** `fleet`: leads sites from the database until SIGTERM or Ctrl-C. SIGHUP reloads certificates. */
async function fleet(named: string | undefined): Promise<ExitCode> {
  const level = logLevel();
  if (level === null) return 2;
  const loaded = await fleetConfiguration(named);
  if (loaded === null) return 2;
  const log = logger(1, level);
  let started: FleetStarted = { ok: false, reason: "" };
  // A bug of one site harms that site only.
  exitOnBug(log, (error) => started.ok && started.fleet.contain(error));
  for (const { path, found, expected } of loaded.warnings)
    log.warn({ path }, `works, but was it meant? ${path}: ${found}; expected ${expected}`);
  const stopped = stopSignal("SIGTERM", "SIGINT");
  const onReload = reloadSignal();
  try {
    started = await FleetDaemon.start(loaded.fleet, realMachine(log));
  } catch (error) {
    // Only a listener that cannot bind its address, or a bug, throws here.
    if (!(error instanceof Error && "syscall" in error)) throw error;
    return fail(1, `the fleet cannot start: ${error.message}`);
  }
  if (!started.ok) return fail(1, started.reason);
  const daemon = started.fleet;
  onReload(daemon.reload);
  const { webhookPort: webhook, operatorPort: operator } = daemon;
  log.info({ webhook, operator }, "the fleet process is up");
  const watchdog = Watchdog.start({
    notify: systemdNotify(process.env, log),
    env: process.env,
    healthy: () => ({ fit: true, status: `leads ${daemon.led} sites` }),
    monotonic: () => performance.now(),
    log,
  });
  log.info({ signal: await stopped }, "stopping");
  const inTime = await Promise.race([
    Promise.all([watchdog?.[Symbol.asyncDispose](), daemon[Symbol.asyncDispose]()]).then(() => true),
    sleep(STOP_PATIENCE_MS, false),
  ]);
  if (!inTime) log.error({ step: daemon.stopStep }, "stopping took too long and was cut short");
  else log.info("stopped");
  return inTime ? 0 : 1;
}

export const fleetVerb: Verb = (verb, { config, done }) => {
  verb.action(async () => done(await fleet(config())));
};
