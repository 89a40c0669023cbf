import { startApp, surroundings } from "../app.ts";
import { configuration } from "./configuration.ts";
import { demo } from "./demo.ts";
import { logger } from "./logger.ts";
import { complain, type ExitCode } from "./outcome.ts";
import { stopSignal } from "./stopSignal.ts";

/** `run`: the daemon until SIGTERM or Ctrl-C; without a configuration the demo. */
export async function run(named: string | undefined): Promise<ExitCode> {
  if (named === undefined && process.env["SETPOINTD_CONFIG"] === undefined) return demo();
  const config = configuration(named);
  if (config === null) return 2;
  const log = logger(1, process.env["LOG_LEVEL"] ?? "info");
  const stopped = stopSignal();
  let started: Awaited<ReturnType<typeof startApp>>;
  try {
    started = await startApp(config, surroundings(log));
  } catch (error) {
    // A listener that cannot have its address: nothing else throws here but bugs.
    if (!(error instanceof Error && "syscall" in error)) throw error;
    started = { ok: false, reason: `cannot listen: ${error.message}` };
  }
  if (!started.ok) {
    complain(started.reason);
    return 1;
  }
  const signal = await stopped;
  log.info({ signal }, "stopping");
  await started.app[Symbol.asyncDispose]();
  log.info("stopped");
  return 0;
}
