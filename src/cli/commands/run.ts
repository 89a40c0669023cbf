import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";

import { start } from "../../daemon/daemon.ts";
import { realEdges, realMachine } from "../../daemon/real.ts";
import { shipped } from "../../platform/packageRoot.ts";
import { systemdNotify, Watchdog } from "../../platform/systemd.ts";
import { siteConfiguration, logLevel, misplaced, setting } from "../configuration.ts";
import { logger } from "../logger.ts";
import { complain, type ExitCode, type Verb } from "../output.ts";
import { exitOnBug, reloadSignal, stopSignal } from "../stopSignal.ts";
import { cannotListen } from "./check.ts";

/** Longest orderly stop. The supervisor kills the process soon after, and a restart is safe by design. */
const STOP_PATIENCE_MS = 4_000;

/** Runs the demo. Only a checkout has it; an installed package has no simulated partner and chargers. */
async function runDemo(level: string): Promise<ExitCode> {
  if (existsSync(shipped("config/demo.yaml"))) return (await import("./demo.ts")).demo(level);
  complain(
    `which configuration? Name it: setpointd run -c FILE; ${shipped("config/example.yaml")} is one to start from. The service setpointd runs /etc/setpointd/config.yaml. A demo comes with the source (npm start)`,
  );
  return 2;
}

/** `run`: runs the daemon until SIGTERM or Ctrl-C. SIGHUP reloads certificates. Without a configuration: the demo. */
async function run(named: string | undefined): Promise<ExitCode> {
  const level = logLevel();
  if (level === null) return 2;
  if (named === undefined && setting("SETPOINTD_CONFIG") === undefined) return runDemo(level);
  const site = siteConfiguration(named);
  if (site === null) return 2;
  const log = logger(1, level);
  exitOnBug(log);
  for (const { path, found, expected } of site.warnings)
    log.warn({ path }, `works, but was it meant? ${path}: ${found}; expected ${expected}`);
  const { env } = process;
  const stopped = stopSignal("SIGTERM", "SIGINT");
  const onReload = reloadSignal();
  let started: Awaited<ReturnType<typeof start>>;
  try {
    started = await start(site.config, realEdges(site.config, realMachine(log), site.profiles));
  } catch (error) {
    // Only a listener that cannot bind its address, or a bug, throws here.
    if (!(error instanceof Error && "syscall" in error)) throw error;
    started = { ok: false, reason: cannotListen(error, site.config) };
  }
  if (!started.ok) {
    complain(started.reason);
    return 1;
  }
  const { app } = started;
  onReload(app.reload);
  const watchdog = Watchdog.start({
    notify: systemdNotify(env, log),
    env,
    healthy: app.health,
    monotonic: () => performance.now(),
    log,
  });
  const signal = await stopped;
  log.info({ signal }, "stopping");
  const stopping = Promise.all([watchdog?.[Symbol.asyncDispose](), app[Symbol.asyncDispose]()]);
  const inTime = await Promise.race([stopping.then(() => true), sleep(STOP_PATIENCE_MS, false)]);
  if (!inTime) {
    log.error(
      { step: app.stopStep() },
      "stopping took too long and was cut short: a restart picks up what is recorded",
    );
    return 1;
  }
  log.info("stopped");
  return 0;
}

export const runVerb: Verb = (verb, { config, done }) => {
  verb
    // An unknown verb arrives here, because this is the default verb.
    .allowExcessArguments()
    .action(async (_options: object, { args: [unknown] }: Command) => {
      done(unknown === undefined ? await run(config()) : misplaced("run", unknown));
    });
};
