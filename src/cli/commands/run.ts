import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Command } from "commander";
import type { Logger } from "pino";

import { type App, start, type Started } from "../../daemon/daemon.ts";
import type { Edges } from "../../daemon/edges.ts";
import { LeadLost } from "../../daemon/site.ts";
import { realEdges, realMachine } from "../../daemon/real.ts";
import type { Terms } from "../../domain/leadership.ts";
import { SessionStore } from "../../operator/http/access.ts";
import type { LastConfigurationChange } from "../../operator/siteConfigurations.ts";
import { messageOf } from "../../platform/text.ts";
import { shipped } from "../../platform/packageRoot.ts";
import { systemdNotify, Watchdog } from "../../platform/systemd.ts";
import { configFile, environmentOf, logLevel, misplaced, setting } from "../configuration.ts";
import { logger } from "../logger.ts";
import { complain, fail, type ExitCode, type Verb } from "../output.ts";
import { ProcessConfigurations } from "../siteConfigurations.ts";
import { exitOnBug, reloadSignal, type SetReload, stopSignal } from "../stopSignal.ts";
import { cannotListen } from "./check.ts";

/** Longest orderly stop. The supervisor kills the process soon after, and a restart is safe by design. */
const STOP_PATIENCE_MS = 4_000;
/** Longest stop before another configuration starts. No supervisor waits for it. */
const CHANGE_PATIENCE_MS = 30_000;
/** Starts of the configuration that ran before, once another one failed, and the wait between them. */
const MOST_TRIES = 10;
const TRY_AGAIN_MS = 1_000;
/** A daemon that has not evaluated its chargers by then counts as started. */
const READY_WITHIN_MS = 10_000;
const READY_EVERY_MS = 20;

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
  return fail(
    2,
    `which configuration? Name it: setpointd run -c FILE; ${shipped("config/example.yaml")} is one to start from. The service setpointd runs /etc/setpointd/config.yaml. A demo comes with the source (npm start)`,
  );
}

/** `run`: runs the daemon until SIGTERM or Ctrl-C. SIGHUP reloads certificates. Without a configuration: the demo. */
async function run(named: string | undefined): Promise<ExitCode> {
  const level = logLevel();
  if (level === null) return 2;
  if (named === undefined && setting("SETPOINTD_CONFIG") === undefined) return runDemo(level);
  const file = resolve(configFile(named) ?? "");
  const log = logger(1, level);
  const { env } = process;
  const { now } = realMachine(log);
  const configurations = ProcessConfigurations.open({ file, env: environmentOf(file, env), now, log });
  if (configurations === null) return 2;
  exitOnBug(log, (error) => configurations.isChanging && startAgain(log, error));
  for (const { path, found, expected } of configurations.site.warnings)
    log.warn({ path }, `works, but was it meant? ${path}: ${found}; expected ${expected}`);
  const stopped = stopSignal("SIGTERM", "SIGINT");
  const onReload = reloadSignal();
  const stop = new AbortController();
  void stopped.then(() => stop.abort());
  // Not in the loop: a promise that lasts would retain every daemon that has run.
  const stopping = stopped.then((signal) => ({ signal }));
  let app: App | null = null;
  const watch = () =>
    Watchdog.start({
      notify: systemdNotify(env, log),
      env,
      healthy: () => app?.health() ?? { fit: true, status: "standing by" },
      monotonic: () => performance.now(),
      log,
    });
  // A stand-in is ready before it leads.
  let watchdog = configurations.site.config.database === null ? null : watch();
  const parts: StartParts = {
    configurations,
    supportArchive: supportArchive(file),
    sessions: new SessionStore(),
    log,
    stopped: stop.signal,
    terms: { lost: 0 },
    onReload,
  };
  /** Begin of the time without control: of the process, or of the stop. Monotonic clock, ms. */
  let since = 0;
  let triesLeft = 0;
  for (;;) {
    const starting = startSite(parts);
    await settleStandIn(starting, configurations, since);
    const started = await starting;
    if (!started.ok && stop.signal.aborted) break;
    if (!started.ok) {
      const left = await triesAfter(started.reason, triesLeft, configurations, log);
      if (left === null) return 1;
      triesLeft = left;
      continue;
    }
    const running = started.app;
    app = running;
    onReload(() => {
      running.reload();
      configurations.warnOfFile();
    });
    watchdog ??= watch();
    void whenReady(running, () => app === running).then((isReady) => {
      if (isReady) noteStart(running, configurations.started(performance.now() - since));
    });
    const end = await Promise.race([
      stopping,
      running.lost.then((reason) => ({ reason })),
      configurations.wanted.then(() => ({ configuration: configurations.last()?.fingerprint })),
    ]);
    since = performance.now();
    onReload(null);
    const isChange = "configuration" in end && !stop.signal.aborted;
    log.info(end, endOf(stop.signal.aborted, isChange));
    // A check of a daemon that stops would find it unwell.
    if (isChange) app = null;
    const patience = isChange ? CHANGE_PATIENCE_MS : STOP_PATIENCE_MS;
    if (!(await stopWithin(patience, running, stop.signal.aborted ? watchdog : null, log))) {
      if (isChange) startAgain(log, null);
      return 1;
    }
    app = null;
    if (stop.signal.aborted) break;
    if (isChange) configurations.taken();
  }
  await watchdog?.[Symbol.asyncDispose]();
  log.info("stopped");
  return 0;
}

/** Tries that are left after a start that failed. Null: none. The reason is printed. */
async function triesAfter(
  reason: string,
  triesLeft: number,
  configurations: ProcessConfigurations,
  log: Logger,
): Promise<number | null> {
  const back = configurations.failed(reason);
  if (back !== null) {
    log.error({ reason }, `configuration ${back.fingerprint} did not start: ${back.from} starts again`);
    return MOST_TRIES;
  }
  if (triesLeft === 0) {
    // The last lines of a journal are what people see.
    log.flush();
    complain(reason);
    return null;
  }
  // Another program may have an address for a moment.
  await sleep(TRY_AGAIN_MS);
  return triesLeft - 1;
}

/** Stops the daemon, and the watchdog with it. False: that took too long, and goes on. */
async function stopWithin(
  patienceMs: number,
  app: App,
  watchdog: Watchdog | null,
  log: Logger,
): Promise<boolean> {
  const ended = Promise.all([watchdog?.[Symbol.asyncDispose](), app[Symbol.asyncDispose]()]);
  const inTime = await Promise.race([ended.then(() => true), sleep(patienceMs, false)]);
  if (!inTime)
    log.error(
      { step: app.stopStep() },
      "stopping took too long and was cut short: a restart picks up what is recorded",
    );
  return inTime;
}

function endOf(isStop: boolean, isChange: boolean): string {
  if (isStop) return "stopping";
  return isChange
    ? "the configuration is changed: stopping, then starting with it"
    : "this process leads the site no more: it becomes a stand-in";
}

/** Replaces this process by a new one, which continues the change. Returns where the system cannot do that. */
function startAgain(log: Logger, error: unknown): false {
  // A fatal line is written at once.
  log.fatal({ err: error }, "this process replaces itself, and continues the change of the configuration");
  const { execPath, execArgv, argv } = process;
  process.execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], process.env);
  return false;
}

/** Resolves with true once the chargers were evaluated, or it took too long. False: the daemon has ended before. */
async function whenReady(app: App, isCurrent: () => boolean): Promise<boolean> {
  for (const until = performance.now() + READY_WITHIN_MS; isCurrent(); await sleep(READY_EVERY_MS))
    if (app.isReady() || performance.now() > until) return true;
  return false;
}

/** Records how a change of the configuration ended. */
function noteStart(app: App, change: LastConfigurationChange | null): void {
  if (change === null) return;
  const { fingerprint, from, by, reason, tookMs, failure } = change;
  const facts = { configuration: change.result, fingerprint, from, by, reason };
  if (failure === null)
    app.note(
      `configuration ${fingerprint} runs in place of ${from}, as ${by} asked; chargers were without control for ${((tookMs ?? 0) / 1000).toFixed(1)} s`,
      { ...facts, tookMs: Math.round(tookMs ?? 0) },
    );
  else
    app.note(`configuration ${fingerprint} did not start, so ${from} runs again: ${failure}`, {
      ...facts,
      failure,
      alarm: true,
    });
}

/** Another process may lead the site meanwhile: a configuration with which this one stands by has started. */
async function settleStandIn(
  starting: Promise<Started>,
  configurations: ProcessConfigurations,
  since: number,
): Promise<void> {
  if (configurations.site.config.database === null || !configurations.isChanging) return;
  const isWaiting = await Promise.race([starting.then(() => false), sleep(READY_WITHIN_MS, true)]);
  if (isWaiting) configurations.started(performance.now() - since);
}

interface StartParts extends Required<Pick<Edges, "supportArchive">> {
  readonly configurations: ProcessConfigurations;
  /** Survive a change of the configuration. */
  readonly sessions: SessionStore;
  readonly log: Logger;
  readonly stopped: AbortSignal;
  readonly terms: Terms;
  readonly onReload: SetReload;
}

/** Starts the daemon. With a database it returns once this process leads the site, or `stopped` is aborted. */
async function startSite(parts: StartParts): Promise<Started> {
  const { configurations, supportArchive: archive, sessions, log, stopped, terms, onReload } = parts;
  const { config, profiles } = configurations.site;
  try {
    // A changed configuration with a mistyped address gives way to the one before.
    const { isChanging: isAddressNeeded } = configurations;
    const processParts = { stopped, terms, sessions, isAddressNeeded, onReload };
    const edges = realEdges(config, realMachine(log), profiles, processParts);
    return await start(config, { ...edges, configurations, supportArchive: archive });
  } catch (error) {
    if (error instanceof LeadLost) return await startSite(parts);
    if (error instanceof Error && "syscall" in error)
      return { ok: false, reason: cannotListen(error, config) };
    // Only a bug ends here. The configuration before may not have it.
    if (!configurations.isChanging) throw error;
    return { ok: false, reason: messageOf(error) };
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
