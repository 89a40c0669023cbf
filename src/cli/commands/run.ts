import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Command } from "commander";
import type { Logger } from "pino";

import { type App, start, type Started } from "../../daemon/daemon.ts";
import type { Edges } from "../../daemon/edges.ts";
import { LeadLost } from "../../daemon/site.ts";
import { realEdges, realMachine } from "../../daemon/real.ts";
import type { Terms } from "../../domain/leadership.ts";
import { messageOf } from "../../platform/text.ts";
import { shipped } from "../../platform/packageRoot.ts";
import { systemdNotify, Watchdog } from "../../platform/systemd.ts";
import { configurationFile, siteConfiguration, logLevel, misplaced, setting } from "../configuration.ts";
import { logger } from "../logger.ts";
import { complain, type ExitCode, type Verb } from "../output.ts";
import { exitOnBug, reloadSignal, stopSignal } from "../stopSignal.ts";
import { cannotListen } from "./check.ts";

/** Longest orderly stop. The supervisor kills the process soon after, and a restart is safe by design. */
const STOP_PATIENCE_MS = 4_000;

/** Longest run of `setpointd bundle`: its doctor takes up to a minute. */
const ARCHIVE_PATIENCE_MS = 180_000;

/** Makes a support archive by the verb `bundle` in a process of its own: it reads and compresses for seconds. */
const supportArchive = (file: string) => async (): Promise<Buffer | string> => {
  const folder = await mkdtemp(join(tmpdir(), "setpointd-"));
  const archive = join(folder, "bundle.tar.gz");
  const verb = [process.argv[1] ?? "", "bundle", archive, "-c", file];
  try {
    await promisify(execFile)(process.execPath, [...process.execArgv, ...verb], {
      timeout: ARCHIVE_PATIENCE_MS,
    });
    return await readFile(archive);
  } catch (error) {
    const { stderr } = error as { readonly stderr?: unknown };
    return typeof stderr === "string" && stderr.trim() !== "" ? stderr.trim() : messageOf(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

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
  const configuration = configurationFile(named);
  const log = logger(1, level);
  exitOnBug(log);
  for (const { path, found, expected } of site.warnings)
    log.warn({ path }, `works, but was it meant? ${path}: ${found}; expected ${expected}`);
  const { env } = process;
  const stopped = stopSignal("SIGTERM", "SIGINT");
  const onReload = reloadSignal();
  const stop = new AbortController();
  const terms = { lost: 0 };
  void stopped.then(() => stop.abort());
  let app: App | null = null;
  onReload(() => app?.reload());
  const watch = () =>
    Watchdog.start({
      notify: systemdNotify(env, log),
      env,
      healthy: () => app?.health() ?? { fit: true, words: "standing by" },
      monotonic: () => performance.now(),
      log,
    });
  // A stand-in is ready before it leads.
  let watchdog = site.config.database === null ? null : watch();
  for (;;) {
    const own = { configuration, supportArchive: supportArchive(configuration().file) };
    const started = await startSite({ ...site, ...own }, log, stop.signal, terms);
    if (!started.ok && stop.signal.aborted) break;
    if (!started.ok) {
      complain(started.reason);
      return 1;
    }
    ({ app } = started);
    watchdog ??= watch();
    const end = await Promise.race([
      stopped.then((signal) => ({ signal })),
      app.lost.then((reason) => ({ reason })),
    ]);
    log.info(
      end,
      stop.signal.aborted ? "stopping" : "this process leads the site no more: it becomes a stand-in",
    );
    const stopping = Promise.all([
      stop.signal.aborted ? watchdog?.[Symbol.asyncDispose]() : null,
      app[Symbol.asyncDispose](),
    ]);
    const inTime = await Promise.race([stopping.then(() => true), sleep(STOP_PATIENCE_MS, false)]);
    if (!inTime) {
      log.error(
        { step: app.stopStep() },
        "stopping took too long and was cut short: a restart picks up what is recorded",
      );
      return 1;
    }
    app = null;
    if (stop.signal.aborted) break;
  }
  await watchdog?.[Symbol.asyncDispose]();
  log.info("stopped");
  return 0;
}

/** Starts the daemon. With a database it returns once this process leads the site, or `stopped` is aborted. */
async function startSite(
  site: Pick<Exclude<ReturnType<typeof siteConfiguration>, null>, "config" | "profiles"> &
    Required<Pick<Edges, "configuration" | "supportArchive">>,
  log: Logger,
  stopped: AbortSignal,
  terms: Terms,
): Promise<Started> {
  const { config, profiles, configuration, supportArchive: archive } = site;
  try {
    const edges = realEdges(config, realMachine(log), profiles, stopped, terms);
    return await start(config, { ...edges, configuration, supportArchive: archive });
  } catch (error) {
    if (error instanceof LeadLost) return await startSite(site, log, stopped, terms);
    // Only a listener that cannot bind its address, or a bug, throws here.
    if (!(error instanceof Error && "syscall" in error)) throw error;
    return { ok: false, reason: cannotListen(error, config) };
  }
}

export const runVerb: Verb = (verb, { config, done }) => {
  verb
    // An unknown verb arrives here, because this is the default verb.
    .allowExcessArguments()
    .action(async (_options: object, { args: [unknown] }: Command) => {
      done(unknown === undefined ? await run(config()) : misplaced("run", unknown));
    });
};
